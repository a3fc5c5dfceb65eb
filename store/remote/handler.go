package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Served is what a Handler offers of a store. It is a part of store.Store.
type Served interface {
	Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error)
	Open(ctx context.Context, name string) (store.Log, error)
	Stat(ctx context.Context, name string) (store.Stat, error)
	store.Lister
	Remove(ctx context.Context, name string) error
	RemoveAt(ctx context.Context, name string, end store.Pos) error
	Blobs() store.Blobs
	Notes(room string) store.Notes
	Limits() store.Limits
	Where() string
}

// Handler offers a store to other machines. It does not authenticate clients: the server in front
// of it does. The handles of one Handler mean nothing to another.
type Handler struct {
	store  Served
	limits store.Limits
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	pace   pace

	watching context.Context // ends with Stop
	stop     context.CancelFunc

	mu     sync.Mutex // guards what follows
	logs   map[string]*handle
	leases map[string]*lease
}

// pace is how long things may take. Tests use shorter times.
type pace struct {
	beat  time.Duration // the longest silence of a working server
	stall time.Duration // how long the other side may take for its next bytes
	idle  time.Duration // how long an unused handle is kept
	lease time.Duration // how long a client may be silent that has a lease
	life  time.Duration // how long a lease lasts, however often the client says that it is alive
	pin   time.Duration // the same for a pin, which keeps everybody from appending to a log
}

var normal = pace{
	beat: 10 * time.Second, stall: time.Minute, idle: 10 * time.Minute,
	lease: 30 * time.Second, life: time.Hour, pin: 2 * time.Minute,
}

// NewHandler returns a handler for a store. The operation is the last element of a request's
// path. Close it before the store.
func NewHandler(st Served) *Handler {
	h := &Handler{store: st, limits: st.Limits(), pace: normal, logs: make(map[string]*handle), leases: make(map[string]*lease)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.watching, h.stop = context.WithCancel(h.ctx)
	return h
}

// Stop ends the watches, which would never end by themselves, and nothing else. A server
// calls it to let other requests finish before it closes the handler.
func (h *Handler) Stop() { h.stop() }

// Close ends all requests, and releases everything that clients have open.
func (h *Handler) Close() error {
	h.cancel()
	h.mu.Lock()
	logs, leases := h.logs, h.leases
	h.logs, h.leases = make(map[string]*handle), make(map[string]*lease)
	h.mu.Unlock()
	var errs []error
	for _, l := range leases {
		l.finish()
	}
	for _, l := range logs {
		l.expiry.Stop()
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// call is one request being answered.
type call struct {
	*Handler
	ctx context.Context
	request
	Caller
	in      *frames
	out     *answer
	take    func(n int64) error // before more is held in memory; all is given back in the end
	longest int64               // line of the answer
}

// Caller is what a server knows about a client.
type Caller struct {
	// OnlyReads is for a client that may not change anything. It sees no notes either: some are
	// secrets, such as the tokens of a server.
	OnlyReads bool
	// Hold is called before n more bytes are held in memory, which they are until the request
	// ends. If it returns an error, nothing is done, and the client tries again unless the error
	// is store.ErrTooLarge.
	Hold func(n int64) error
	// Fail answers a request of which nothing was done with a status. The error may be one of Hold.
	Fail func(status int, err error)
}

// ServeHTTP implements http.Handler, for clients that may do everything.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Serve(w, r, Caller{
		Hold: func(int64) error { return nil },
		Fail: func(status int, err error) { http.Error(w, err.Error(), status) },
	})
}

// Serve is ServeHTTP for a client that may do less.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, by Caller) {
	op, ok := operations[path.Base(r.URL.Path)]
	switch {
	case !ok:
		by.Fail(http.StatusNotFound, errors.New("the store has no such operation"))
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		by.Fail(http.StatusMethodNotAllowed, errors.New("every operation of a store is a POST"))
		return
	case by.OnlyReads && !op.reads:
		by.Fail(http.StatusForbidden, errors.New("this client may only read"))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	defer context.AfterFunc(h.ctx, cancel)()
	_ = control.EnableFullDuplex() // otherwise a beat during an upload would swallow a part of it
	w.Header().Set("Content-Type", mimeType)
	w.Header().Set("Cache-Control", "no-store")
	body := &patient{ctx, control, h.pace.stall, r.Body}
	c := &call{Handler: h, ctx: ctx, Caller: by, in: newFrames(body, maxFrame(h.limits))}
	c.take = func(n int64) error {
		err := by.Hold(n)
		if err == nil || errors.Is(err, store.ErrTooLarge) {
			return err
		}
		return &busy{err}
	}
	c.in.take = c.take
	c.out = newAnswer(w, control, h.pace)
	defer c.out.stop()
	err := c.run(op)
	full, isBusy := errors.AsType[*busy](err)
	switch {
	case isBusy && c.out.stop():
		by.Fail(http.StatusTooManyRequests, full.why)
	case isBusy:
		return // without an end, as below
	case err != nil && (h.ctx.Err() != nil || errors.Is(err, store.ErrClosed)):
		return // without an end: the server is going down, so the client tries again
	case err != nil:
		_ = c.out.json(kindError, describe(err, path.Base(r.URL.Path), h.store.Where()))
	default:
		_ = c.out.frame(kindEnd)
	}
	if c.out.flush() == nil {
		_, _ = io.CopyN(io.Discard, c.in.r, maxRest)
	}
}

// busy is the error of a request for which there is no memory now.
type busy struct{ why error }

func (b *busy) Error() string { return b.why.Error() }

// maxRest is how much of a useless rest of a request is read. If the server closed the
// connection at once, a client that is still sending might not see the answer.
const maxRest = 64 << 20

func (c *call) run(op operation) error {
	kind, payload, err := c.in.next()
	if err != nil {
		return bad(err)
	}
	if kind != kindJSON || json.Unmarshal(payload, &c.request) != nil {
		return bad(malformed("the request begins without its arguments"))
	}
	if err := store.CheckRoom(c.Room); err != nil {
		return err // whatever the store does with it
	}
	return op.run(c)
}

// bad is the error of a body that is malformed or cut off.
func bad(err error) error {
	return &store.Error{Op: "read the request", Kind: store.ErrInvalid, Err: err}
}

// lines yields the lines of a request. If it is cut off, the last value is an error.
func (c *call) lines(yield func([]byte, error) bool) {
	for {
		kind, payload, err := c.in.next()
		switch {
		case err != nil:
			yield(nil, bad(err))
			return
		case kind == kindEnd:
			return
		case kind != kindData:
			yield(nil, bad(malformed("this is not a line")))
			return
		}
		if !yield(payload, nil) {
			return
		}
	}
}

// data returns the bytes of a request, which are in pieces.
func (c *call) data(limit int64) ([]byte, error) {
	all := []byte{}
	for piece, err := range c.lines {
		if err != nil {
			return nil, err
		}
		if int64(len(all)+len(piece)) > limit {
			return nil, tooLarge("read the request", limit)
		}
		if err := c.take(int64(len(piece))); err != nil {
			return nil, err
		}
		all = append(all, piece...)
	}
	return all, nil
}

// line answers with a line. A client may take long to receive it.
func (c *call) line(l store.Line) error {
	if n := int64(len(l.Data)); n > c.longest {
		if err := c.take(n - c.longest); err != nil {
			return err
		}
		c.longest = n
	}
	return c.out.line(l)
}

// all answers with bytes that are in memory.
func (c *call) all(data []byte) error {
	if err := c.take(int64(len(data))); err != nil {
		return err
	}
	return c.out.data(data)
}

// patient is a body whose sender may be slow, but not silent.
type patient struct {
	ctx     context.Context
	control *http.ResponseController
	stall   time.Duration
	r       io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.stall))
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	if err != nil { // the server itself keeps reading, to notice when the client leaves
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answer writes frames. It beats when it has been silent for a while.
type answer struct {
	control *http.ResponseController
	pace    pace

	mu    sync.Mutex // guards what follows
	begun bool       // something was sent
	w     *bufio.Writer
	quiet bool // nothing was written since the last beat
	done  bool
	timer *time.Timer
}

func newAnswer(w io.Writer, control *http.ResponseController, pace pace) *answer {
	a := &answer{control: control, pace: pace, quiet: true}
	a.w = bufio.NewWriterSize(deadlined{w, control, pace.stall, &a.begun}, chunk)
	a.timer = time.AfterFunc(pace.beat, a.beat)
	return a
}

// deadlined is a client that must keep reading. If it does not, it is cut off, and may
// request the rest later.
type deadlined struct {
	io.Writer
	control *http.ResponseController
	stall   time.Duration
	begun   *bool
}

func (d deadlined) Write(b []byte) (int, error) {
	_ = d.control.SetWriteDeadline(time.Now().Add(d.stall))
	*d.begun = true
	return d.Writer.Write(b)
}

func (a *answer) beat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return
	}
	if a.quiet {
		_ = writeFrame(a.w, kindBeat)
	}
	if a.w.Flush() == nil {
		_ = a.control.Flush()
	}
	a.quiet = true
	a.timer.Reset(a.pace.beat)
}

// stop ends the beats. It reports whether nothing was sent, so that there can be another answer.
func (a *answer) stop() (unused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	a.timer.Stop()
	return !a.begun
}

func (a *answer) frame(kind byte, pieces ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet = false
	return writeFrame(a.w, kind, pieces...)
}

func (a *answer) json(kind byte, v any) error { return a.frame(kind, mustJSON(v)) }

func (a *answer) result(r result) error { return a.json(kindJSON, r) }

func (a *answer) line(l store.Line) error { return a.frame(kindLine, lineHeadOf(l), l.Data) }

// data writes bytes in pieces.
func (a *answer) data(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), chunk)
		if err := a.frame(kindData, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// flush sends the frames that were written so far.
func (a *answer) flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.w.Flush(); err != nil {
		return err
	}
	return a.control.Flush()
}
