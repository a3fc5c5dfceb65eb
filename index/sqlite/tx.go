package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// tx is a transaction that prepares each statement once; its end closes them.
type tx struct {
	*sql.Tx
	stmts map[string]*sql.Stmt
}

func (t *tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	s, ok := t.stmts[query]
	if ok {
		return s, nil
	}
	s, err := t.PrepareContext(ctx, query)
	if err == nil {
		t.stmts[query] = s
	}
	return s, err
}

// ExecContext implements room.Tx.
func (t *tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, plain(args)...)
}

// QueryContext implements room.Querier.
func (t *tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, plain(args)...)
}

// QueryRowContext implements room.Querier.
func (t *tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return t.Tx.QueryRowContext(ctx, query, plain(args)...) // which reports it
	}
	return s.QueryRowContext(ctx, plain(args)...)
}

// plain turns arguments into what SQLite takes.
func plain(args []any) []any {
	for i, arg := range args {
		if m, ok := arg.(room.Match); ok {
			args[i] = m.Query
		}
	}
	return args
}

// insertSizes are how many rows a statement writes, the most first. The smaller ones write a
// remainder: preparing a statement of another length would take longer.
var insertSizes = [...]int{64, 8, 1}

// InsertContext implements room.Tx.
func (t *tx) InsertContext(ctx context.Context, table, columns, tail string, args []any) error {
	width := strings.Count(columns, ",") + 1
	for _, rows := range insertSizes {
		key := table + strconv.Itoa(rows) // of no other statement
		for n := rows * width; len(args) >= n; args = args[n:] {
			s, ok := t.stmts[key]
			if !ok {
				one := "(" + strings.Repeat("?, ", width-1) + "?)"
				// OR FAIL: an error ends the transaction. So SQLite need not be able to undo half
				// of a statement, for which it would copy every page before it changes it.
				var err error
				s, err = t.PrepareContext(ctx, "INSERT OR FAIL INTO "+table+" ("+columns+") VALUES "+strings.Repeat(one+", ", rows-1)+one+tail)
				if err != nil {
					return err
				}
				t.stmts[key] = s
			}
			if _, err := s.ExecContext(ctx, args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddTexts implements room.Tx. It builds the segment of the documents in a goroutine, which
// never touches the database: only one may use a transaction.
func (t *tx) AddTexts(ctx context.Context, texts []room.Text, words []string) func(error) error {
	built := make(chan *segment, 1)
	go func() { built <- buildSegment(texts, words) }()
	return func(err error) error {
		segment := <-built // even after an error, so that no goroutine outlives the transaction
		if err != nil || len(texts) == 0 {
			return err
		}
		return t.insertSegment(ctx, segment, texts)
	}
}

// insertSegment adds a segment of documents to the full-text table. It changes the list of
// segments behind FTS5's back, so FTS5 must not hold anything in memory that it would write
// over the list, or rely on: see forgetStructure.
func (t *tx) insertSegment(ctx context.Context, g *segment, texts []room.Text) error {
	if err := t.forgetStructure(ctx); err != nil {
		return err
	}
	var data []byte
	if err := t.QueryRowContext(ctx, `SELECT block FROM fts_data WHERE id = ?`, structureRow).Scan(&data); err != nil {
		return err
	}
	s, err := decodeStructure(data)
	if err != nil {
		return err
	}
	number, origin, err := s.free()
	if err != nil {
		return err
	}
	for _, p := range g.pages {
		if err := t.insertPage(ctx, int64(number)<<segmentShift|p.number, p.data); err != nil {
			return err
		}
	}
	for _, p := range g.splits {
		if _, err := t.ExecContext(ctx, `INSERT INTO fts_idx (segid, term, pgno) VALUES (?, ?, ?)`, int64(number), p.term, p.page); err != nil {
			return err
		}
	}
	// A deletion finds the segment by the origin. The sizes are not used.
	ids := []byte{'['}
	for i := range texts {
		ids = append(strconv.AppendInt(ids, texts[i].ID, 10), ',')
	}
	ids[len(ids)-1] = ']'
	_, err = t.ExecContext(ctx, `INSERT INTO fts_docsize (id, sz, origin) SELECT value, x'000000', ? FROM json_each(?)`, int64(origin), string(ids))
	if err != nil {
		return err
	}
	work := s.add(ftsSegment{number: number, first: 1, last: uint64(g.last), oldest: origin, newest: origin, docs: uint64(len(texts))})
	if err := t.insertPage(ctx, structureRow, s.encode()); err != nil || work == 0 {
		return err
	}
	_, err = t.ExecContext(ctx, `INSERT INTO fts (fts, rank) VALUES ('merge', ?)`, work)
	return err
}

func (t *tx) insertPage(ctx context.Context, row int64, data []byte) error {
	_, err := t.ExecContext(ctx, `REPLACE INTO fts_data (id, block) VALUES (?, ?)`, row, data)
	return err
}

// forgetStructure makes FTS5 write the rows that it holds back, and read the list of segments again
// when it next needs it. FTS5 keeps the list until another connection writes, and does not
// expect that its own connection writes segments. Beginning a savepoint makes it write, and
// rolling back to one makes it drop the list.
func (t *tx) forgetStructure(ctx context.Context) error {
	for _, query := range []string{
		`SAVEPOINT structure`,
		`DELETE FROM fts WHERE rowid = -1`, // deletes nothing, but FTS5 now takes part in the transaction
		`ROLLBACK TO structure`,
		`RELEASE structure`,
	} {
		if _, err := t.Tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// DropTexts implements room.Tx.
func (t *tx) DropTexts(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if _, err := t.ExecContext(ctx, `DELETE FROM fts WHERE rowid = ?`, id); err != nil {
			return err
		}
	}
	return nil
}
