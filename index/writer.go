package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// writer writes records into the database, within one transaction. What it remembers
// (statements, numbers of names, ids) is valid only within that transaction, in which no
// other process writes.
type writer struct {
	ctx   context.Context
	tx    room.Tx
	names map[string]int64

	// waiting has, of each statement that was used, the bulks of the tables that it names.
	waiting map[string][]*bulk

	entryRows, usageRows, termRows, docRows, fileRows *bulk

	// responses has the queued rows of usage. known are the responses that the table has.
	responses map[string]*usageRow
	known     map[string]bool

	docs    []docRow
	linked  map[string]bool // sessions whose chain may have changed, by their ids
	terms   *termTable
	places  *docPlaces
	nextDoc int64
	// lastSession is the greatest id of a session, once one was needed: nobody else adds
	// sessions during our transaction.
	lastSession int64
	tokens      int64 // in the new documents
	entries     int64 // written
}

// docRow is a document that waits for the others of its batch.
type docRow struct {
	id, session, entry int64
	part               int
	kind               Kind
	carried            carriage
	role, tool, model  int64
	cwd, agent         int64
	length             int
	tf                 []byte
	body, whole        []uint32
	written            bool // the row is in the table
}

func (r *catching) newWriter(tx room.Tx) (*writer, error) {
	// Nobody watches for the end of the context: that would cost more than most statements.
	// The callers check now and then.
	ctx := context.WithoutCancel(r.ctx)
	w := startWriter(ctx, tx)
	w.terms, w.places = r.terms, &r.places
	err := tx.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'docs'`).Scan(&w.nextDoc)
	return w, err
}

func startWriter(ctx context.Context, tx room.Tx) *writer {
	return &writer{
		ctx: ctx, tx: tx, waiting: make(map[string][]*bulk), names: make(map[string]int64),
		entryRows: newBulk("entries", "session, n, id, parent, pos, time, class, context, origin, says", ""),
		docRows:   newBulk("docs", docColumns, ""),
		usageRows: newBulk("usage", usageColumns, ""),
		fileRows:  newBulk("files", "name, path, session", " ON CONFLICT DO NOTHING"),
		termRows:  newBulk("terms", "term, df, stem", " ON CONFLICT (term) DO UPDATE SET df = terms.df + excluded.df"),
	}
}

// exec returns how many rows a statement changed.
func (w *writer) exec(query string, args ...any) (int64, error) {
	if err := w.show(query); err != nil {
		return 0, err
	}
	res, err := w.tx.ExecContext(w.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// QueryContext implements querier.
func (w *writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := w.show(query); err != nil {
		return nil, err
	}
	return w.tx.QueryContext(ctx, query, args...)
}

// find scans a row into dest and reports whether there is one.
func (w *writer) find(dest []any, query string, args ...any) (bool, error) {
	if err := w.show(query); err != nil {
		return false, err
	}
	return w.findWritten(dest, query, args...)
}

// findWritten is find, but ignores the rows that wait to be written. The caller must know
// them.
func (w *writer) findWritten(dest []any, query string, args ...any) (bool, error) {
	return scanRow(w.tx.QueryRowContext(w.ctx, query, args...), dest)
}

// scanRow reports whether there is a row.
func scanRow(row *sql.Row, dest []any) (bool, error) {
	err := row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// nameID returns the number of a name; 0 for "".
func (w *writer) nameID(name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	name = bounded(name)
	if id, ok := w.names[name]; ok {
		return id, nil
	}
	var id int64
	found, err := w.find([]any{&id}, `SELECT id FROM names WHERE name = ?`, name)
	if err == nil && !found {
		if _, err = w.find([]any{&id}, `SELECT coalesce(max(id), 0) + 1 FROM names`); err == nil {
			_, err = w.exec(`INSERT INTO names (id, name) VALUES (?, ?)`, id, name)
		}
	}
	w.names[name] = id
	return id, err
}

// addDocs queues an entry's documents.
func (w *writer) addDocs(s *state, n int64, rec *record, carried carriage) error {
	for i := range rec.docs {
		d := &rec.docs[i]
		row := docRow{
			session: s.id, entry: n, part: d.ordinal, kind: d.kind, carried: carried,
			length: d.length(), tf: d.tf, body: d.body, whole: d.whole,
		}
		tool := d.tool
		if d.kind == KindOutput {
			tool = s.toolOf(d.call)
		}
		var errs [5]error
		row.cwd, errs[3] = w.nameID(s.cwd)
		row.agent, errs[4] = w.nameID(s.agent)
		row.role, errs[0] = w.nameID(d.role)
		row.tool, errs[1] = w.nameID(tool)
		row.model, errs[2] = w.nameID(rec.model)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		w.nextDoc++
		when := rec.time
		if when == 0 {
			when = s.updated
		}
		row.id = docID(when, w.nextDoc)
		w.docs = append(w.docs, row)
		w.tokens += int64(d.length())
		s.docs++
	}
	return nil
}

// flush writes the queued rows. The room may work on the texts at the same time: docs and
// words no longer change, because the ids are final, the facets have their numbers, and the
// reader has begun a vocabulary of its own for the next batch.
func (w *writer) flush(words *vocabulary) error {
	// Tables are fastest in the order of ids, and the texts must have it.
	byID := func(a, b docRow) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(w.docs, byID)
	moved, err := w.placeDocs(w.docs)
	if err != nil {
		return err
	}
	if moved {
		slices.SortFunc(w.docs, byID)
	}
	add := w.tx.AddTexts(w.ctx, w.texts(words), words.words)
	if err := add(w.writeRows(words)); err != nil {
		return err
	}
	if err := w.relink(); err != nil {
		return err
	}
	_, err = w.exec(`UPDATE counters SET value = CASE name WHEN 'docs' THEN ? ELSE value + ? END WHERE name IN ('docs', 'tokens')`, w.nextDoc, w.tokens)
	return err
}

// writeRows writes the queued rows.
func (w *writer) writeRows(words *vocabulary) error {
	for i := range w.docs {
		d := &w.docs[i]
		if d.written {
			continue
		}
		if err := w.add(w.docRows, d.values()...); err != nil {
			return err
		}
	}
	if err := w.writeUsage(); err != nil {
		return err
	}
	if err := w.addTerms(words); err != nil {
		return err
	}
	if len(w.terms.df) > maxTermTable {
		return w.flushTerms()
	}
	return nil
}

// kinds are all kinds; a kind's number is its place. New ones go to the end.
var kinds = []Kind{KindText, KindThinking, KindCall, KindOutput, KindSummary, KindTitle, KindTag, KindLabel, KindDraft}

// Kinds lists the kinds of text.
func Kinds() []Kind { return slices.Clone(kinds) }

func unknownKind(k Kind) error {
	return fmt.Errorf("unknown kind %q; it must be one of %s", k, strings.Join(kindNames(kinds), ", "))
}

func kindNumber(k Kind) int64 { return int64(slices.Index(kinds, k)) }
