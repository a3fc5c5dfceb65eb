package index

import (
	"database/sql"
	"slices"
	"strings"
)

// # Rows that wait
//
// One statement for each row is slow: starting it takes longer than writing the row. So the
// rows of the large tables wait in a bulk, and one statement writes many.
//
// Waiting rows must be invisible. A statement that names a table first writes the rows
// that wait for it: see prepared.waiting. The text of the statement decides, so no
// caller has to remember. Only findWritten ignores waiting rows, for callers that know
// them already.

// bulkSizes are how many rows a statement writes, the most first. The smaller ones write a
// remainder: preparing a statement of another length would take longer.
var bulkSizes = [...]int{64, 8, 1}

// bulk has rows of one table that wait to be written.
type bulk struct {
	table   string // as statements name it
	head    string // INSERT INTO table (columns) VALUES
	tail    string // what follows the rows, such as ON CONFLICT
	columns int
	args    []any // of the rows that wait, one after the other
	stmts   [len(bulkSizes)]*sql.Stmt
}

// newBulk returns a bulk for a statement without its values.
func newBulk(table, columns, tail string) *bulk {
	return &bulk{
		table: table, tail: tail, columns: strings.Count(columns, ",") + 1,
		// OR FAIL: an error ends the transaction. So SQLite need not be able to undo half
		// of a statement, for which it would copy every page before it changes it.
		head: "INSERT OR FAIL INTO " + table + " (" + columns + ") VALUES ",
	}
}

func (b *bulk) isEmpty() bool { return len(b.args) == 0 }

// add queues a row, and writes all queued rows once there are enough.
func (w *writer) add(b *bulk, row ...any) error {
	b.args = append(b.args, row...)
	if len(b.args) < bulkSizes[0]*b.columns {
		return nil
	}
	return w.writeBulk(b)
}

// writeBulk writes the rows that wait.
func (w *writer) writeBulk(b *bulk) error {
	rest := b.args
	for i, rows := range bulkSizes {
		for n := rows * b.columns; len(rest) >= n; rest = rest[n:] {
			if b.stmts[i] == nil {
				one := "(" + strings.Repeat("?, ", b.columns-1) + "?)"
				s, err := w.tx.PrepareContext(w.ctx, b.head+strings.Repeat(one+", ", rows-1)+one+b.tail)
				if err != nil {
					return err
				}
				b.stmts[i] = s
			}
			if _, err := b.stmts[i].ExecContext(w.ctx, rest[:n]...); err != nil {
				return err
			}
		}
	}
	clear(b.args) // do not keep alive what the rows pointed to
	b.args = b.args[:0]
	return nil
}

// prepared is a statement of the transaction.
type prepared struct {
	*sql.Stmt
	waiting []*bulk // the bulks of the tables that it names
}

// bulks returns all bulks of a writer.
func (w *writer) bulks() []*bulk {
	return []*bulk{w.entryRows, w.docRows, w.usageRows, w.termRows, w.fileRows}
}

// writeWaiting writes all rows that wait, before the transaction ends.
func (w *writer) writeWaiting() error {
	for _, b := range w.bulks() {
		if err := w.writeBulk(b); err != nil {
			return err
		}
	}
	return nil
}

// stmt prepares a statement once in a transaction, whose end closes it, and writes the rows
// that wait for the tables that it names.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	p, ok := w.stmts[query]
	if !ok {
		s, err := w.tx.PrepareContext(w.ctx, query)
		if err != nil {
			return nil, err
		}
		p = &prepared{Stmt: s}
		for _, b := range w.bulks() {
			if names(query, b.table) {
				p.waiting = append(p.waiting, b)
			}
		}
		w.stmts[query] = p
	}
	for _, b := range p.waiting {
		if b.isEmpty() {
			continue
		}
		if err := w.writeBulk(b); err != nil {
			return nil, err
		}
	}
	return p.Stmt, nil
}

// names reports whether a statement reads or writes a table. A column may have the
// same name, as sessions.entries does.
func names(query, table string) bool {
	words := strings.FieldsFunc(query, func(r rune) bool { return !isWordRune(r) && r != '_' })
	for i, word := range words[min(1, len(words)):] {
		if word == table && slices.Contains([]string{"FROM", "JOIN", "INTO", "UPDATE"}, words[i]) {
			return true
		}
	}
	return false
}
