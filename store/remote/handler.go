package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Handler offers a store to other machines, all of it. It does not authenticate clients: the
// server in front of it does. The handles of one Handler mean nothing to another.
type Handler struct {
	store  store.Store
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
func NewHandler(st store.Store) *Handler {
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
		l.drop()
	}
	for _, l := range logs {
		l.expiry.Stop()
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// call is one request being answered.
type call struct {
	*Handler
	ctx   context.Context
	store store.Store // the handler's, or that of its trash
	request
	in      *frames
	out     *answer
	take    func(n int64) error // before more is held in memory; all is given back in the end
	longest int64               // line of the answer
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Serve(w, r, func(int64) error { return nil })
}

// Serve is ServeHTTP for a server that limits what requests hold in memory. It calls hold before
// it holds n more bytes, which it does until it returns. If hold returns an error, nothing is
// done, and the client tries again unless the error is store.ErrTooLarge.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, hold func(n int64) error) {
	op, ok := operations[path.Base(r.URL.Path)]
	switch {
	case !ok:
		http.Error(w, "the store has no such operation", http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "every operation of a store is a POST", http.StatusMethodNotAllowed)
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
	c := &call{Handler: h, ctx: ctx, store: h.store, in: newFrames(body, maxFrame(h.limits))}
	c.take = func(n int64) error {
		err := hold(n)
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
		w.Header().Set("Retry-After", "1")
		http.Error(w, full.Error(), http.StatusTooManyRequests)
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
	if op.writes && (c.Trash || c.isTrash(c.Handle)) {
		return &store.Error{Op: "write", Kind: store.ErrInvalid, Err: errors.New("what is in the trash can only be read"), Hint: "restore it first"}
	}
	if c.Trash {
		if c.store, err = c.Handler.store.Trash().Read(); err != nil {
			return err
		}
		if !op.keeps {
			defer c.store.Close()
		}
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

// flush sends what was written so far.
func (a *answer) flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.w.Flush(); err != nil {
		return err
	}
	return a.control.Flush()
}
