package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-dev/coppice/store"
)

// The steps of an append:
//
//	Append         one call, from beginning to end
//	  prepare      checks the lines and computes where each begins
//	  send         waits until the lines are written, or until the context is done
//	    deliver    tries until the server has answered
//	      attempt  one statement: by itself, or with appends to other logs (together.go)
//
// A statement whose answer was lost may have been executed. So the next attempt first looks whether
// the lines are there.

// Append implements store.Log.
func (l *log) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	const op = "append"
	r, err := l.prepare(ctx, op, at, lines)
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return at, l.store.read(ctx, op, l.name, func(ctx context.Context) error { return l.checkEnd(ctx, op, at) })
	}
	if err := l.send(ctx, r); err != nil {
		return 0, err
	}
	return store.Pos(r.end), nil
}

// prepare checks the lines of an append and computes where each begins.
func (l *log) prepare(ctx context.Context, op string, at store.Pos, lines [][]byte) (*request, error) {
	if err := l.ready(ctx, op); err != nil {
		return nil, err
	}
	if err := l.store.admitWrite(ctx, op, l.name); err != nil {
		return nil, err
	}
	if at < 0 {
		return nil, l.fail(op, at, store.ErrInvalid)
	}
	r := &request{log: l, at: int64(at), end: int64(at), positions: make([]int64, len(lines)), lines: slices.Clone(lines)}
	for i, line := range lines {
		if line == nil {
			r.lines[i] = []byte{} // nil would be NULL
		}
		if err := l.store.checkLine(op, l.name, line); err != nil {
			return nil, err
		}
		r.positions[i] = r.end
		r.end += int64(len(line)) + 1
	}
	if err := store.MaxSession.Check(op, l.name, r.end, l.store.limits.Log); err != nil && len(lines) > 0 {
		return nil, l.tooLarge(ctx, op, at, err)
	}
	r.refs = refsIn(r.lines)
	return r, nil
}

// tooLarge returns the error of an append that goes over the limit, or a better one.
func (l *log) tooLarge(ctx context.Context, op string, at store.Pos, limit error) error {
	err := l.store.read(ctx, op, l.name, func(ctx context.Context) error { return l.checkEnd(ctx, op, at) })
	if err != nil {
		return err
	}
	return limit
}

// request is an append: lines that are to be written at a position. One goroutine works on it; only
// state is shared, with the caller that may stop waiting.
type request struct {
	log       *log
	at, end   int64
	positions []int64
	lines     [][]byte
	refs      [][]byte // of the blobs that the lines name

	state       atomic.Int32 // see unsent
	isLost      bool         // an answer was lost, so the server may have the lines
	wasTogether bool         // it has had its one attempt together with others
}

// The states of a request. Whoever moves it out of unsent decides whether the lines may still be
// written when the caller's context is done:
//
//	unsent ── startSending ──► sent        before each statement with the lines
//	unsent ◄──── record ────── sent        the server has answered that it added none of them
//	unsent ──── abandon ─────► abandoned   the caller no longer waits: they are never sent
//
// A request in the state sent cannot be abandoned. Its caller gets store.ErrUnknown.
const (
	unsent int32 = iota
	sent
	abandoned
)

// errAbandoned ends a request whose caller has its answer already.
var errAbandoned error = &store.Error{Op: "append", Err: context.Canceled}

// startSending must be called before the lines are sent, and reports whether they may be.
func (r *request) startSending() bool {
	return r.state.CompareAndSwap(unsent, sent) || r.state.Load() == sent
}

// abandon reports whether the lines were not sent, and now never will be.
func (r *request) abandon() bool { return r.state.CompareAndSwap(unsent, abandoned) }

// record notes the answer to a statement.
func (r *request) record(added int64, err error) {
	switch {
	case classify(err) == lost:
		r.isLost = true
	case added == 0 && !r.isLost:
		r.state.CompareAndSwap(sent, unsent)
	}
}

// copyLines makes the lines independent of the caller's memory.
func (r *request) copyLines() {
	for i, line := range r.lines {
		r.lines[i] = bytes.Clone(line)
	}
}

// send writes the lines of a request, and returns when ctx is done. If they were not sent by then,
// they never are. Otherwise they can no longer be stopped: another goroutine goes on with a copy of
// them, and holds the blobs that they name.
func (l *log) send(ctx context.Context, r *request) error {
	if ctx.Done() == nil {
		return l.deliver(ctx, r)
	}
	r.copyLines()
	var held *hold
	if len(r.refs) > 0 {
		held = l.store.holds.rejoin()
	}
	done := make(chan error, 1)
	go func() {
		err := l.deliver(context.WithoutCancel(ctx), r)
		if held != nil {
			l.store.holds.leave(held)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if r.abandon() {
		return &store.Error{Op: "append", Name: l.name, Err: ctx.Err()}
	}
	select { // perhaps just now
	case err := <-done:
		return err
	default:
		return &store.Error{
			Op: "append", Name: l.name, Kind: store.ErrUnknown, Err: fmt.Errorf("the server has it and has not answered yet: %w", ctx.Err()),
			Hint: "open it again and look",
		}
	}
}

// deliver attempts a request until the server has answered.
func (l *log) deliver(ctx context.Context, r *request) error {
	err := l.store.write(ctx, "append", l.name, func(ctx context.Context) error { return l.attempt(ctx, r) })
	if err == nil {
		l.store.hub.changed(l.key)
	}
	return err
}

// errMoved means that a row has changed since it was read a moment ago: look again.
var errMoved error = &pgconn.PgError{Code: "40001", Message: "changed by another program again and again"}

// attempt sends a request once, unless the lines are there already. If the server added none, it
// finds out why.
func (l *log) attempt(ctx context.Context, r *request) error {
	if r.isLost {
		if there, err := l.isThere(ctx, r); there || err != nil {
			return err
		}
	}
	added, err := l.store.together.append(ctx, r)
	if err != nil || added == int64(len(r.lines)) {
		return err
	}
	if err = l.checkEnd(ctx, "append", store.Pos(r.at)); err == nil {
		return errMoved // to that very place
	}
	if r.isLost { // the statement whose answer was lost may have come only now
		if there, lookErr := l.isThere(ctx, r); there || lookErr != nil {
			return lookErr
		}
	}
	return err
}

// An append moves the end of the log, if that is where the caller thinks, and inserts the lines;
// it has succeeded if there are as many rows. Most appends are of one line that names no blob.
// For the server, that statement costs half as much as the others.
const (
	moveEnd = `WITH head AS (
			UPDATE coppice.logs SET tail = $5, modified = now(), marked = true
			WHERE tenant = $1 AND log = $2 AND slot = 0 AND life = $3 AND tail = $4 RETURNING life
		)`
	appendLine = moveEnd + `
		INSERT INTO coppice.lines (tenant, log, life, pos, data) SELECT $1, $2, head.life, $4, $6 FROM head`
	insertAppended = `
		INSERT INTO coppice.lines (tenant, log, life, pos, data)
		SELECT $1, $2, head.life, l.pos, l.data FROM head, unnest($6::bigint[], $7::bytea[]) l (pos, data)`
	appendLines  = moveEnd + insertAppended
	appendNaming = moveEnd + `, named AS (
			INSERT INTO coppice.refs (tenant, log, life, ref)
			SELECT $1, $2, head.life, r FROM head, unnest($8::bytea[]) r ON CONFLICT DO NOTHING
		)` + insertAppended
)

// statement returns the statement that appends the lines, and its arguments.
func (r *request) statement() (string, []any) {
	args := []any{r.log.store.tenant, r.log.key.log, r.log.life, r.at, r.end}
	switch {
	case len(r.refs) > 0:
		return appendNaming, append(args, r.positions, r.lines, r.refs)
	case r.isPlain():
		return appendLine, append(args, r.lines[0])
	}
	return appendLines, append(args, r.positions, r.lines)
}

// isPlain reports whether the request is one line that names no blob.
func (r *request) isPlain() bool { return len(r.lines) == 1 && len(r.refs) == 0 }

// sendAlone sends a request in a statement of its own and returns how many lines were added. It
// first waits for a connection: until there is one, the caller can abandon the request.
func (r *request) sendAlone(ctx context.Context) (int64, error) {
	s := r.log.store
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	if !r.startSending() {
		return 0, errAbandoned
	}
	statement, args := r.statement()
	tag, err := conn.Exec(ctx, s.sql(statement), args...)
	r.record(tag.RowsAffected(), err)
	return tag.RowsAffected(), err
}

// checkEnd returns why nothing can be appended at a position.
func (l *log) checkEnd(ctx context.Context, op string, at store.Pos) error {
	h, err := l.current(ctx, l.store.pool, op)
	if err == nil && h.tail != int64(at) {
		err = l.fail(op, at, store.ErrConflict)
	}
	return err
}

// isThere reports whether the lines of a request are in the log. It is asked when an answer was
// lost. The lock makes it wait for a statement that is still being executed. One that is still on
// its way finds the end moved by what we do next, or the other way round.
func (l *log) isThere(ctx context.Context, r *request) (there bool, err error) {
	s := l.store
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		h, err := s.head(ctx, tx, l.key, " FOR UPDATE")
		if err != nil || h.life != l.life || h.tail < r.end {
			if errors.Is(err, pgx.ErrNoRows) || err == nil && h.life != l.life {
				err = &store.Error{Op: "append", Name: l.name, Kind: store.ErrUnknown, Err: errors.New("the connection was lost, and then the log removed or rewritten")}
			}
			return err
		}
		rows, err := tx.Query(ctx, s.sql(`SELECT data FROM coppice.lines
			WHERE tenant = $1 AND log = $2 AND life = $3 AND pos >= $4 AND pos < $5 ORDER BY pos`), s.tenant, l.key.log, l.life, r.at, r.end)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		there = err == nil && slices.EqualFunc(found, r.lines, bytes.Equal)
		return err
	})
	return there, err
}
