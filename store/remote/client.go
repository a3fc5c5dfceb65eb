package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Options adjusts how a store is opened. The zero value uses http.DefaultClient without a token.
type Options struct {
	// Client makes the requests. It must not have a timeout, because some answers last as
	// long as they are read.
	Client *http.Client
	// Token is sent as a bearer token.
	Token string
	// Patience is how long to keep trying a server that does not answer. Default: 10 seconds.
	Patience time.Duration
}

const (
	defaultPatience = 10 * time.Second
	firstPause      = 20 * time.Millisecond
	longestPause    = time.Second
	// grace is how long an append whose context is done may take to find out its outcome.
	grace = 5 * time.Second
)

// Store is a store on another machine.
type Store struct {
	connection
	limits store.Limits

	ctx    context.Context // ends with Close, with store.ErrClosed
	cancel context.CancelCauseFunc
	mu     sync.Mutex // guards what follows
	logs   map[*log]struct{}
}

var _ store.Store = (*Store)(nil)

// Open returns the store at a URL, such as https://host/v1/store, which a Handler serves there.
func Open(ctx context.Context, where string, o *Options) (*Store, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	client, err := Client(where, opts.Token, opts.Client)
	if err != nil {
		return nil, err
	}
	s := &Store{
		connection: connection{strings.TrimSuffix(where, "/"), client, opts.Patience, 3 * normal.beat, normal.lease / 5},
		logs:       make(map[*log]struct{}),
	}
	if s.patience == 0 {
		s.patience = defaultPatience
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	var hello result
	if err := s.once(ctx, &query{op: "hello", each: one(&hello)}); err != nil {
		return nil, s.fail("open store", "", err)
	}
	if hello.Version != version || hello.Limits == nil {
		err := fmt.Errorf("%s has version %d of the protocol, this program version %d", s.url, hello.Version, version)
		return nil, &store.Error{Op: "open store", Kind: store.ErrInvalid, Err: err, Hint: "use the same version of Coppice on both sides"}
	}
	s.limits = *hello.Limits
	return s, nil
}

// bound returns a context that ends with ctx, and with the store.
func (s *Store) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// ready returns nil if the store is open, ctx is not done and the name can be one.
func (s *Store) ready(ctx context.Context, op, name string) error {
	if s.ctx.Err() != nil {
		return &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return &store.Error{Op: op, Name: name, Err: err}
	}
	return nil
}

func (s *Store) admit(ctx context.Context, op, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	return s.ready(ctx, op, name)
}

// fail turns an error that does not come from the other store into a *store.Error.
func (s *Store) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := err.(*refusal); ok {
		return own.err
	}
	l, isLost := errors.AsType[*lost](err)
	switch {
	case isLost && errors.Is(l.err, store.ErrClosed):
		return &store.Error{Op: op, Name: name, Kind: store.ErrClosed}
	case isLost && (errors.Is(l.err, context.Canceled) || errors.Is(l.err, context.DeadlineExceeded)):
		return &store.Error{Op: op, Name: name, Err: l.err}
	case isLost:
		hint, err := Unreachable(s.url, l.err)
		return &store.Error{Op: op, Name: name, Kind: store.ErrUnavailable, Err: err, Hint: hint}
	case errors.Is(err, errGone):
		return &store.Error{Op: op, Name: name, Kind: store.ErrLocked, Err: err, Hint: "try again"}
	case errors.Is(err, errFrame):
		return &store.Error{Op: op, Name: name, Err: fmt.Errorf("%s: %w", s.url, err), Hint: "check that this is the address of a Coppice server"}
	}
	return err
}

// unsure is fail for an operation that may or may not have happened.
func (s *Store) unsure(op, name string, err error) error {
	if l, ok := errors.AsType[*lost](err); ok && l.sent {
		return &store.Error{Op: op, Name: name, Kind: store.ErrUnknown, Err: l.err, Hint: "check whether it has happened"}
	}
	return s.fail(op, name, err)
}

// read makes a request that can be repeated.
func (s *Store) read(ctx context.Context, what string, q *query) error {
	q.repeat = true
	return s.fail(what, q.args.Name, s.run(ctx, what, q))
}

// write makes a request that must not be repeated.
func (s *Store) write(ctx context.Context, what string, q *query) error {
	return s.unsure(what, q.args.Name, s.run(ctx, what, q))
}

func (s *Store) run(ctx context.Context, what string, q *query) error {
	if err := s.ready(ctx, what, q.args.Name); err != nil {
		return err
	}
	ctx, done := s.bound(ctx)
	defer done()
	return s.ask(ctx, q)
}

// one decodes the only result of an answer.
func one(r *result) func(frame) error { return func(f frame) error { return f.result(r) } }

// maxResults is how many results an answer may have.
const maxResults = 10_000_000

// results returns all results of a query.
func (s *Store) results(ctx context.Context, what string, q *query) (all []result, err error) {
	q.begin = func() { all = nil }
	q.each = func(f frame) error {
		if len(all) == maxResults {
			return malformed("too many results")
		}
		all = append(all, result{})
		return f.result(&all[len(all)-1])
	}
	err = s.read(ctx, what, q)
	return all, err
}

// bytes returns the bytes of an answer, which are in pieces.
func (s *Store) bytes(ctx context.Context, what string, q *query) ([]byte, error) {
	data := []byte{}
	q.begin = func() { data = data[:0] }
	q.each = func(f frame) error {
		if f.kind != kindData || int64(len(data)+len(f.payload)) > maxBlob(s.limits) {
			return malformed("more bytes than there can be")
		}
		data = append(data, f.payload...)
		return nil
	}
	err := s.read(ctx, what, q)
	return data, err
}

// pieces cuts bytes into the pieces in which they are sent.
func pieces(data []byte) (all [][]byte) {
	for len(data) > 0 {
		n := min(len(data), chunk)
		all, data = append(all, data[:n]), data[n:]
	}
	return all
}
