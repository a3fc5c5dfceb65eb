package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
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
	statement, args := appendLines, []any{s.tenant, l.key.log, l.life, int64(at), end, positions, lines}
	if refs := refsIn(lines); len(refs) > 0 {
		statement, args = appendNaming, append(args, refs)
	} else if len(lines) == 1 {
		statement, args = appendLine, append(args[:5], lines[0])
	}
	alone := func(ctx context.Context) (int64, error) {
		added, err := s.pool.Exec(ctx, s.sql(statement), args...)
		return added.RowsAffected(), err
	}
	send := alone
	if statement == appendLine && len(lines[0]) <= togetherLine && !s.single {
		send = func(ctx context.Context) (int64, error) {
			send = alone // the next time
			return s.together.append(ctx, &addition{log: l, at: int64(at), end: end, line: lines[0]}, alone)
		}
	}
	wasLost := false
	err := s.write(ctx, op, l.name, func(ctx context.Context) error {
		if wasLost {
			if there, err := l.isThere(ctx, at, end, lines); there || err != nil {
				return err
			}
		}
		added, err := send(ctx)
		if err != nil || added == int64(len(lines)) {
			wasLost = wasLost || judge(err) == lost
			return err
		}
		if err := l.checkEnd(ctx, op, at); err != nil {
			return err
		}
		return errMoved // to that very place
	})
	if err != nil {
		return 0, err
	}
	s.hub.changed(l.key)
	return store.Pos(end), nil
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
func (l *log) isThere(ctx context.Context, at store.Pos, end int64, lines [][]byte) (there bool, err error) {
	s := l.store
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		h, err := s.head(ctx, tx, l.key, " FOR UPDATE")
		if err != nil || h.life != l.life || h.tail < end {
			if errors.Is(err, pgx.ErrNoRows) || err == nil && h.life != l.life {
				err = &store.Error{Op: "append", Name: l.name, Kind: store.ErrUnknown, Err: errors.New("the connection was lost, and then the log removed or rewritten")}
			}
			return err
		}
		rows, err := tx.Query(ctx, s.sql(`SELECT data FROM coppice.lines
			WHERE tenant = $1 AND log = $2 AND life = $3 AND pos >= $4 AND pos < $5 ORDER BY pos`), s.tenant, l.key.log, l.life, int64(at), end)
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
