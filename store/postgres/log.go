package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-dev/coppice/store"
)

// log is one handle.
type log struct {
	store *Store
	name  string
	key   key
	life  int64 // of the content that was opened

	once sync.Once
	done chan struct{} // closed by Close

	mu    sync.Mutex // guards what follows
	pages pages
}

func (s *Store) handle(name string, k key, life int64) *log {
	return &log{store: s, name: name, key: k, life: life, done: make(chan struct{})}
}

// errMoved means that a row is no longer what it was a moment ago: look again.
var errMoved error = &pgconn.PgError{Code: "40001", Message: "changed by another program again and again"}

// An append moves the end of the log, if that is where the caller thinks, and inserts the lines;
// it has succeeded if there are as many rows. Most appends are of one line that names no blob.
// For the server, that statement costs half as much as the others. Several of those may go in one:
// see together.go.
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

// Append implements store.Log.
func (l *log) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	const op = "append"
	if err := l.ready(ctx, op); err != nil {
		return 0, err
	}
	if err := l.store.admitWrite(ctx, op, l.name); err != nil {
		return 0, err
	}
	if at < 0 {
		return 0, l.fail(op, at, store.ErrInvalid)
	}
	s, end, positions := l.store, int64(at), make([]int64, len(lines))
	lines = slices.Clone(lines)
	for i, line := range lines {
		if line == nil {
			lines[i] = []byte{} // nil would be NULL
		}
		if err := s.checkLine(op, l.name, line); err != nil {
			return 0, err
		}
		positions[i] = end
		end += int64(len(line)) + 1
	}
	if err := store.MaxSession.Check(op, l.name, end, s.limits.Log); err != nil && len(lines) > 0 {
		return 0, l.tooLarge(ctx, op, at, err)
	}
	if len(lines) == 0 {
		err := s.read(ctx, op, l.name, func(ctx context.Context) error { return l.checkEnd(ctx, op, at) })
		return at, err
	}
	if err := l.hand(ctx, &sent{at: int64(at), end: end, positions: positions, lines: lines, refs: refsIn(lines)}); err != nil {
		return 0, err
	}
	return store.Pos(end), nil
}

// hand sends lines, and no longer waits for them when ctx is done. If they were not sent by then,
// they never are. Otherwise nobody can take them back: they go on in other hands, with their
// own memory, and protect the blobs that they name.
func (l *log) hand(ctx context.Context, w *sent) error {
	if ctx.Done() == nil {
		return l.send(ctx, w)
	}
	w.keep()
	var held *hold
	if len(w.refs) > 0 {
		held = l.store.holds.rejoin()
	}
	done := make(chan error, 1)
	go func() {
		err := l.send(context.WithoutCancel(ctx), w)
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
	if w.takeBack() {
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

// send writes lines.
func (l *log) send(ctx context.Context, w *sent) error {
	const op = "append"
	s := l.store
	statement, args := appendLines, []any{s.tenant, l.key.log, l.life, w.at, w.end, w.positions, w.lines}
	if len(w.refs) > 0 {
		statement, args = appendNaming, append(args, w.refs)
	} else if len(w.lines) == 1 {
		statement, args = appendLine, append(args[:5], w.lines[0])
	}
	alone := func(ctx context.Context) (int64, error) {
		if !w.give() {
			return 0, errTakenBack
		}
		added, err := s.pool.Exec(ctx, s.sql(statement), args...)
		w.answered(added.RowsAffected(), err)
		return added.RowsAffected(), err
	}
	send := alone
	if statement == appendLine && len(w.lines[0]) <= togetherLine && !s.single {
		send = func(ctx context.Context) (int64, error) {
			send = alone // the next time
			return s.together.append(ctx, &addition{log: l, sent: w}, alone)
		}
	}
	err := s.write(ctx, op, l.name, func(ctx context.Context) error {
		if w.isLost {
			if there, err := l.isThere(ctx, w); there || err != nil {
				return err
			}
		}
		added, err := send(ctx)
		if err != nil || added == int64(len(w.lines)) {
			return err
		}
		if err := l.checkEnd(ctx, op, store.Pos(w.at)); err != nil {
			if w.isLost { // the statement whose answer was lost may have come only now
				if there, lookErr := l.isThere(ctx, w); there || lookErr != nil {
					return lookErr
				}
			}
			return err
		}
		return errMoved // to that very place
	})
	if err == nil {
		s.hub.changed(l.key)
	}
	return err
}

// sent are lines that are to be appended.
type sent struct {
	at, end   int64
	positions []int64
	lines     [][]byte
	refs      [][]byte     // of the blobs that they name
	whose     atomic.Int32 // see give
	isLost    bool         // an answer was lost, so the server may have them
}

// Who has the lines. They go back and forth between the first two while the server refuses them for
// now. What may have come to the server is its own for good.
const (
	ours int32 = iota
	theServers
	theCallers // who no longer waits: they must not be sent
)

// errTakenBack is the end of an append whose caller has its answer already.
var errTakenBack error = &store.Error{Op: "append", Err: context.Canceled}

// give must be called before lines are sent, and reports whether they may be.
func (w *sent) give() bool {
	return w.whose.CompareAndSwap(ours, theServers) || w.whose.Load() == theServers
}

// takeBack reports whether lines were not sent, and never will be.
func (w *sent) takeBack() bool { return w.whose.CompareAndSwap(ours, theCallers) }

// answered notes the answer to a statement.
func (w *sent) answered(added int64, err error) {
	switch {
	case judge(err) == lost:
		w.isLost = true
	case added == 0 && !w.isLost:
		w.whose.CompareAndSwap(theServers, ours)
	}
}

// keep makes the lines independent of the caller's memory.
func (w *sent) keep() {
	for i, line := range w.lines {
		w.lines[i] = bytes.Clone(line)
	}
}

// tooLarge returns the error of an append that goes over the limit, or a better one.
func (l *log) tooLarge(ctx context.Context, op string, at store.Pos, limit error) error {
	err := l.store.read(ctx, op, l.name, func(ctx context.Context) error { return l.checkEnd(ctx, op, at) })
	if err != nil {
		return err
	}
	return limit
}

// checkEnd returns why nothing can be appended at a position.
func (l *log) checkEnd(ctx context.Context, op string, at store.Pos) error {
	h, err := l.current(ctx, l.store.pool, op)
	if err == nil && h.tail != int64(at) {
		err = l.fail(op, at, store.ErrConflict)
	}
	return err
}

// isThere reports whether lines that may have been appended at a position were. It is asked
// when an answer was lost. The lock makes it wait for a statement that is still being
// executed. One that is still on its way finds the end moved by what we do next, or the other
// way round.
func (l *log) isThere(ctx context.Context, w *sent) (there bool, err error) {
	s, lines := l.store, w.lines
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		h, err := s.head(ctx, tx, l.key, " FOR UPDATE")
		if err != nil || h.life != l.life || h.tail < w.end {
			if errors.Is(err, pgx.ErrNoRows) || err == nil && h.life != l.life {
				err = &store.Error{Op: "append", Name: l.name, Kind: store.ErrUnknown, Err: errors.New("the connection was lost, and then the log removed or rewritten")}
			}
			return err
		}
		rows, err := tx.Query(ctx, s.sql(`SELECT data FROM coppice.lines
			WHERE tenant = $1 AND log = $2 AND life = $3 AND pos >= $4 AND pos < $5 ORDER BY pos`), s.tenant, l.key.log, l.life, w.at, w.end)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		there = err == nil && len(found) == len(lines)
		for i := 0; there && i < len(found); i++ {
			there = bytes.Equal(found[i], lines[i])
		}
		return err
	})
	return there, err
}

// Start has nothing to wait for: what the server has confirmed is as durable as it will be.
func (l *log) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, err := l.Append(ctx, at, lines...)
	return end, func() error { return nil }, err
}

// End implements store.Log.
func (l *log) End(ctx context.Context) (store.Pos, error) {
	const op = "end"
	if err := l.ready(ctx, op); err != nil {
		return 0, err
	}
	var h head
	start, edits := time.Now(), l.store.edits.Load()
	err := l.store.read(ctx, op, l.name, func(ctx context.Context) (err error) {
		h, err = l.current(ctx, l.store.pool, op)
		return err
	})
	if err == nil {
		l.met(start, edits, nil)
	}
	return store.Pos(h.tail), err
}

// current returns the log's row if the log is still what was opened.
func (l *log) current(ctx context.Context, q querier, op string) (head, error) {
	h, err := l.store.head(ctx, q, l.key, "")
	return h, l.isSame(op, h, err)
}

// isSame returns why a log's row is not that of the log that was opened.
func (l *log) isSame(op string, h head, err error) error {
	if err == nil && h.life != l.life {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrReplaced}
	}
	return absent(op, l.name, err)
}

// Flush has nothing to wait for: see Start.
func (l *log) Flush(ctx context.Context) error { return l.ready(ctx, "flush") }

// Current implements store.Log. It asks the server only if nothing else has for a moment: every
// other method that reads or writes notices a rewrite by itself.
func (l *log) Current() error {
	l.mu.Lock()
	isFresh := l.isFresh()
	l.mu.Unlock()
	if isFresh {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if _, err := l.End(ctx); errors.Is(err, store.ErrReplaced) {
		return err
	}
	return nil
}

// Pin implements store.Log. The lock is a shared one, so that several copies can be made at
// once.
func (l *log) Pin(ctx context.Context) (func(), error) {
	const op = "copy"
	if err := l.ready(ctx, op); err != nil {
		return nil, err
	}
	return l.store.locks.hold(ctx, op, l.name, func(ctx context.Context, tx pgx.Tx) error {
		h, err := l.store.head(ctx, tx, l.key, " FOR SHARE")
		return l.isSame(op, h, err)
	})
}

// Close implements store.Log.
func (l *log) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// ready returns nil if the handle is open and ctx not done.
func (l *log) ready(ctx context.Context, op string) error {
	if closed(l.done) {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrClosed}
	}
	return l.store.ready(ctx, op, l.name)
}

func (l *log) fail(op string, at store.Pos, kind error) error {
	return &store.Error{Op: op, Name: l.name, Offset: int64(at), At: true, Kind: kind}
}
