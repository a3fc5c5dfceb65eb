package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// Because the place of a line is the number of bytes before it, a page can be asked for by its
// size. The first is small, for those who look at a few lines: often the first one, or the last
// ones. The following ones are larger.
const (
	openPage  = 16 << 10 // which comes with opening a log
	firstPage = 64 << 10
	endPage   = 256 << 10
	lastPage  = 2 << 20
)

// There are never more lines than bytes, so the LIMIT leaves out nothing. It tells the server to
// go along the index, even if it knows nothing about the table yet.
//
// A page of lines, and with it, in the same round trip but later, the log's row. If the log is
// then still the one that was opened, so it was when the lines were read.
const (
	pageAfter = `SELECT pos, data FROM coppice.lines
		WHERE tenant = $1 AND log = $2 AND life = $3 AND pos >= $4 AND pos < $4 + $5 ORDER BY pos LIMIT $5`
	pageBefore = `SELECT pos, data FROM coppice.lines
		WHERE tenant = $1 AND log = $2 AND life = $3 AND pos < $4 AND pos >= $4 - $5 ORDER BY pos DESC LIMIT $5`
	// lineBefore is for a line that is longer than a page.
	lineBefore = `SELECT pos, data FROM coppice.lines
		WHERE tenant = $1 AND log = $2 AND life = $3 AND pos < $4 AND $5::bigint > 0 ORDER BY pos DESC LIMIT 1`
)

// farthest is a position that no log reaches, and with which the server can still calculate.
const farthest = 1 << 62

// page reads lines, and where the log ends.
func (l *log) page(ctx context.Context, op, statement string, from, size int64) (lines []store.Line, tail int64, err error) {
	s := l.store
	if from < 0 || from > farthest {
		return nil, 0, l.fail(op, store.Pos(from), store.ErrInvalid)
	}
	start, edits := time.Now(), s.edits.Load()
	err = s.read(ctx, op, l.name, func(ctx context.Context) error {
		b := new(pgx.Batch)
		b.Queue(s.sql(statement), s.tenant, l.key.log, l.life, from, size)
		b.Queue(s.sql(selectHead), s.tenant, l.key.log, l.key.slot)
		results := s.pool.SendBatch(ctx, b)
		defer results.Close()
		rows, err := results.Query()
		if err != nil {
			return err
		}
		lines, err = collectLines(rows)
		if err != nil {
			return err
		}
		var h head
		err = results.QueryRow().Scan(&h.life, &h.tail, &h.modified)
		tail = h.tail
		return l.isSame(op, h, err)
	})
	if err == nil && statement == pageAfter {
		l.remember(start, edits, lines)
	} else if err == nil {
		backward := slices.Clone(lines)
		slices.Reverse(backward)
		l.remember(start, edits, backward)
	}
	return lines, tail, err
}

// collectLines returns lines from rows that have their positions and bytes, and then what is
// scanned into more.
func collectLines(rows pgx.Rows, more ...any) ([]store.Line, error) {
	return pgx.CollectRows(rows, func(in pgx.CollectableRow) (line store.Line, err error) {
		var pos int64
		err = in.Scan(append([]any{&pos, &line.Data}, more...)...)
		line.Pos, line.Next = store.Pos(pos), store.Pos(pos+int64(len(line.Data))+1)
		return line, err
	})
}

// Forward implements store.Log.
func (l *log) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		_, err := l.forward(ctx, "read", from, func(line store.Line) bool { return yield(line, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.Line{}, err)
		}
	}
}

// justNow is how old an answer may be to count as the present state.
const justNow = 20 * time.Millisecond

// errStopped means that who iterates has seen enough.
var errStopped = errors.New("stopped")

// forward gives out the lines from a position to the end, which it returns.
func (l *log) forward(ctx context.Context, op string, from store.Pos, give func(store.Line) bool) (store.Pos, error) {
	size, empty := int64(firstPage), 0
	for _, line := range l.recall(from, false) {
		if err := l.ready(ctx, op); err != nil {
			return from, err
		}
		if from = line.Next; !give(l.cut(line)) {
			return from, errStopped
		}
	}
	for {
		if err := l.ready(ctx, op); err != nil {
			return from, err
		}
		read, changes := time.Now(), l.store.hub.changes.Load()
		lines, tail, err := l.page(ctx, op, pageAfter, int64(from), size)
		switch {
		case err != nil:
			return from, err
		case len(lines) > 0 && lines[0].Pos != from, int64(from) > tail, empty > 1:
			return from, l.fail(op, from, store.ErrInvalid)
		case len(lines) == 0 && int64(from) < tail:
			empty++ // the line came between the two statements, or there is none at that place
			continue
		}
		empty = 0
		for _, line := range lines {
			if err := l.ready(ctx, op); err != nil {
				return from, err
			}
			if from != line.Pos {
				return from, l.gap(op, from)
			}
			if from = line.Next; !give(l.cut(line)) {
				return from, errStopped
			}
		}
		// The end is where it is now. What was read a moment ago is as good, unless this
		// program has appended since.
		if int64(from) >= tail && (len(lines) == 0 || time.Since(read) < justNow && l.store.hub.changes.Load() == changes) {
			return from, nil
		}
		size = min(2*size, lastPage)
	}
}

// Backward implements store.Log.
func (l *log) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	const op = "read"
	return func(yield func(store.Line, error) bool) {
		fail := func(err error) { yield(store.Line{}, err) }
		at := from
		for _, line := range slices.Backward(l.recall(from, true)) {
			if err := l.ready(ctx, op); err != nil {
				fail(err)
				return
			}
			if at = line.Pos; !yield(l.cut(line), nil) {
				return
			}
		}
		for size := int64(endPage); at != 0 || from == 0; size = min(2*size, lastPage) {
			if err := l.ready(ctx, op); err != nil {
				fail(err)
				return
			}
			lines, tail, err := l.page(ctx, op, pageBefore, int64(at), size)
			if err == nil && len(lines) == 0 && at > 0 {
				lines, tail, err = l.page(ctx, op, lineBefore, int64(at), size)
			}
			switch {
			case err != nil:
				fail(err)
				return
			case int64(from) > tail, len(lines) > 0 && lines[0].Next != at, len(lines) == 0 && at > 0:
				fail(l.fail(op, from, store.ErrInvalid))
				return
			}
			for _, line := range lines {
				if err := l.ready(ctx, op); err != nil {
					fail(err)
					return
				}
				if line.Next != at {
					fail(l.gap(op, at))
					return
				}
				if at = line.Pos; !yield(l.cut(line), nil) {
					return
				}
			}
			if at == 0 {
				return
			}
		}
	}
}

// cut shortens a line that is over the limit of the store.
func (l *log) cut(line store.Line) store.Line {
	if limit := l.store.limits.Entry; int64(len(line.Data)) > limit {
		line.Data, line.Cut = line.Data[:limit], true
	}
	return line
}

// gap is the error for lines that are not there. None of our statements leaves any.
func (l *log) gap(op string, at store.Pos) error {
	return &store.Error{Op: op, Name: l.name, Offset: int64(at), At: true, Kind: store.ErrCorrupt, Err: fmt.Errorf("lines are missing in the table")}
}

// Watch implements store.Log.
func (l *log) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	const op = "watch"
	return func(yield func(store.Line, error) bool) {
		wake, release := l.store.hub.watch(l.key)
		defer release()
		for {
			next := wake() // taken before looking, so that no change is missed in between
			end, err := l.forward(ctx, op, from, func(line store.Line) bool { return yield(line, nil) })
			switch {
			case errors.Is(err, errStopped), ctx.Err() != nil:
				return
			case err != nil:
				yield(store.Line{}, err)
				return
			}
			from = end
			select {
			case <-next:
			case <-ctx.Done():
			case <-l.done:
			case <-l.store.done:
			}
		}
	}
}
