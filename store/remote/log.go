package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// log is one handle.
type log struct {
	store *Store
	name  string

	ctx    context.Context // ends with Close, with store.ErrClosed
	cancel context.CancelCauseFunc

	reopening sync.Mutex // held while the log is opened again; taken before mu
	mu        sync.Mutex // guards what follows
	handle    string
	seen      seen
	broken    error // why it takes no more appends
	closed    bool
	appends   sync.WaitGroup // added to with mu held, unless closed
}

func (s *Store) newLog(name string) *log {
	l := &log{store: s, name: name}
	l.ctx, l.cancel = context.WithCancelCause(s.ctx)
	return l
}

func (l *log) ready(ctx context.Context, op string) error {
	if l.ctx.Err() != nil {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrClosed}
	}
	return l.store.ready(ctx, op, l.name)
}

func (l *log) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handle
}

func (l *log) saw(from, to store.Pos, lines ...[]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen.add(from, to, lines...)
}

// bound returns a context that ends with ctx, and with the handle.
func (l *log) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(store.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// maxGone is how many times in a row a handle may be gone.
const maxGone = 5

// once makes a request about the log. If the server has forgotten the handle, it did nothing,
// so once opens the log again.
func (l *log) once(ctx context.Context, q *query) error {
	for tries := 0; ; tries++ {
		q.args.Handle = l.current()
		err := l.store.once(ctx, q)
		if !errors.Is(err, errGone) || tries == maxGone {
			return err
		}
		if err := l.again(ctx, q.args.Handle); err != nil {
			return err
		}
	}
}

// again gets another handle for one that is gone.
func (l *log) again(ctx context.Context, gone string) error {
	l.reopening.Lock()
	defer l.reopening.Unlock()
	l.mu.Lock()
	handle, was := l.handle, seen{slices.Clone(l.seen.Runs), l.seen.Apart}
	l.mu.Unlock()
	if handle != gone {
		return nil // another goroutine has
	}
	if was.Apart {
		return &store.Error{
			Op: "open", Name: l.name, Kind: store.ErrReplaced,
			Err: errors.New("the server has forgotten it, and too many separate parts were read to compare them"), Hint: "open it again",
		}
	}
	var r result
	args := request{Name: l.name, Seen: &was}
	if err := l.store.ask(ctx, &query{op: "open", args: args, repeat: true, each: one(&r)}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handle = r.Handle
	return nil
}

// simple makes a request that can be repeated.
func (l *log) simple(ctx context.Context, what string, q *query) error {
	if err := l.ready(ctx, what); err != nil {
		return err
	}
	ctx, done := l.bound(ctx)
	defer done()
	var retry pauses
	for {
		err := l.once(ctx, q)
		if _, isLost := err.(*lost); !isLost || !retry.wait(ctx, l.store.patience) {
			return l.fail(what, because(ctx, err))
		}
	}
}

// fail names the log in an error.
func (l *log) fail(op string, err error) error {
	err = l.store.fail(op, l.name, err)
	if e, ok := err.(*store.Error); ok && e.Name == "" {
		e.Name = l.name
	}
	return err
}

// Forward implements store.Log.
func (l *log) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.each(ctx, "read", from, false)
}

// Backward implements store.Log.
func (l *log) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.each(ctx, "read", from, true)
}

// Watch implements store.Log.
func (l *log) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range l.each(ctx, "watch", from, false) {
			if err != nil && ctx.Err() != nil && l.ctx.Err() == nil || !yield(line, err) {
				return
			}
		}
	}
}

// each yields lines from a position on. If the connection is lost, it continues where it was.
func (l *log) each(ctx context.Context, op string, at store.Pos, back bool) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		at := at
		if err := l.ready(ctx, op); err != nil {
			yield(store.Line{}, err)
			return
		}
		bound, done := l.bound(ctx)
		defer done()
		for retry := (pauses{}); ; {
			got := false
			err := l.once(bound, &query{op: op, args: request{At: at, Back: back}, each: func(f frame) error {
				line, err := l.parseFrame(f, at, back)
				if err == nil && bound.Err() != nil {
					err = &lost{context.Cause(bound), true}
				}
				if err != nil {
					return err
				}
				if at = line.Next; back {
					at = line.Pos
				}
				got, retry = true, pauses{}
				if !yield(line, nil) {
					return errStop
				}
				return nil
			}})
			if err == nil && op == "watch" {
				err = &lost{errEarly, true}
			}
			_, isLost := err.(*lost)
			switch {
			case err == errStop, err == nil && (back || !got):
				return
			case err == nil, isLost && retry.wait(bound, l.store.patience):
				// Lines may have been appended while the last ones were being read.
			default:
				yield(store.Line{}, l.fail(op, because(bound, err)))
				return
			}
		}
	}
}

// because returns err, or the reason why ctx ended if that is why the answer was lost: a server
// that is told to close a log may hang up before the client does.
func because(ctx context.Context, err error) error {
	if _, isLost := err.(*lost); isLost && ctx.Err() != nil {
		return &lost{context.Cause(ctx), true}
	}
	return err
}

var (
	errStop  = errors.New("the caller stopped reading")
	errEarly = errors.New("the server ended a watch")
)

// parseFrame returns the line of a frame, which must come next.
func (l *log) parseFrame(f frame, at store.Pos, back bool) (store.Line, error) {
	if f.kind != kindLine {
		return store.Line{}, malformed(fmt.Sprintf("a frame of kind %q where a line should be", f.kind))
	}
	line := parseLine(f.payload)
	if line.Pos < 0 || line.Next <= line.Pos || back && line.Next > at || !back && line.Pos < at {
		return line, malformed(fmt.Sprintf("a line from %d to %d, read from %d", line.Pos, line.Next, at))
	}
	l.saw(line.Pos, line.Next, line.Data)
	return line, nil
}

// End implements store.Log.
func (l *log) End(ctx context.Context) (store.Pos, error) {
	var r result
	err := l.simple(ctx, "end", &query{op: "end", each: one(&r)})
	return r.End, err
}

// Flush implements store.Log.
func (l *log) Flush(ctx context.Context) error {
	return l.simple(ctx, "flush", &query{op: "flush"})
}

// Current implements store.Log.
func (l *log) Current() error {
	return l.simple(context.Background(), "read", &query{op: "current"})
}

// Pin implements store.Log.
func (l *log) Pin(ctx context.Context) (func(), error) {
	return l.store.leased(ctx, func(ctx context.Context) (string, error) {
		var r result
		err := l.simple(ctx, "copy", &query{op: "hold", each: one(&r)})
		return r.Lease, err
	})
}

// Close implements store.Log.
func (l *log) Close() error {
	l.mu.Lock()
	closed, handle := l.closed, l.handle
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.appends.Wait()
	l.cancel(store.ErrClosed)
	l.store.forget(l)
	ctx, cancel := context.WithTimeout(context.Background(), l.store.patience)
	defer cancel()
	err := l.store.once(ctx, &query{op: "close", args: request{Handle: handle}})
	if _, isLost := err.(*lost); isLost {
		return nil // the server closes it by itself
	}
	return l.fail("close", err)
}
