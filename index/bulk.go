package index

import (
	"slices"
	"strings"
)

// # Rows that wait
//
// One statement for each row is slow: starting it takes longer than writing the row. So the
// rows of the large tables wait in a bulk, and one statement writes many.
//
// Waiting rows must be invisible. A statement that names a table first writes the rows
// that wait for it: see show. The text of the statement decides, so no
// caller has to remember. Only findWritten ignores waiting rows, for callers that know
// them already.

// bulkRows is how many rows are written at once.
const bulkRows = 256

// bulk has rows of one table that wait to be written.
type bulk struct {
	table   string // as statements name it
	columns string
	tail    string // what follows the rows, such as ON CONFLICT
	width   int
	args    []any // of the rows that wait, one after the other
}

func newBulk(table, columns, tail string) *bulk {
	return &bulk{table: table, columns: columns, tail: tail, width: strings.Count(columns, ",") + 1}
}

// add queues a row, and writes all queued rows once there are enough.
func (w *writer) add(b *bulk, row ...any) error {
	b.args = append(b.args, row...)
	if len(b.args) < bulkRows*b.width {
		return nil
	}
	return w.writeBulk(b)
}

// writeBulk writes the rows that wait.
func (w *writer) writeBulk(b *bulk) error {
	if len(b.args) == 0 {
		return nil
	}
	err := w.tx.InsertContext(w.ctx, b.table, b.columns, b.tail, b.args)
	clear(b.args) // do not keep alive what the rows pointed to
	b.args = b.args[:0]
	return err
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

// show writes the rows that wait for the tables that a statement names.
func (w *writer) show(query string) error {
	waiting, ok := w.waiting[query]
	if !ok {
		for _, b := range w.bulks() {
			if names(query, b.table) {
				waiting = append(waiting, b)
			}
		}
		w.waiting[query] = waiting
	}
	for _, b := range waiting {
		if err := w.writeBulk(b); err != nil {
			return err
		}
	}
	return nil
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
