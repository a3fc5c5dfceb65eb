package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
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

	states  map[string]*state // of the logs in the batch
	docs    []docRow
	linked  map[string]bool // sessions whose chain may have changed, by their ids
	headed  []string        // the ids of sessions that others may name
	terms   *termTable
	places  *docPlaces
	nextDoc int64
	newest  int64 // the greatest id of a document before the batch
	// lastName is the greatest number of a name and lastSession the greatest id of a session, once
	// one was needed: no other program adds any during our transaction.
	lastName    int64
	lastSession int64
	tokens      int64 // in the new documents
	entries     int64 // written
}

// docRow is a document that waits for the others of its batch.
type docRow struct {
	id, session, entry int64
	part               int
	kind               Kind
	elsewhere          bool // see markElsewhere
	failed             bool // it is the output of a tool, and an error
	role, tool, model  int64
	cwd, agent         int64
	length             int
	tf                 []byte
	body, whole        []uint32
	late               int64 // by how many seconds the id is after the time
	written            bool  // the row is in the table
}

func (r *catching) newWriter(tx room.Tx) *writer {
	// Nobody watches for the end of the context: that would cost more than most statements.
	// The callers check now and then.
	w := startWriter(context.WithoutCancel(r.ctx), tx)
	w.terms, w.places = r.terms, &r.places
	return w
}

func startWriter(ctx context.Context, tx room.Tx) *writer {
	return &writer{
		ctx: ctx, tx: tx, waiting: make(map[string][]*bulk), names: make(map[string]int64),
		entryRows: newBulk("entries", "session, n, id, parent, pos, time, class, context", ""),
		docRows:   newBulk("docs", docColumns, ""),
		usageRows: newBulk("usage", usageColumns, ""),
		fileRows:  newBulk("files", "name, path, session", " ON CONFLICT DO NOTHING"),
		termRows:  newBulk("terms", "term, df, stem", " ON CONFLICT (term) DO UPDATE SET df = terms.df + excluded.df"),
	}
}

// exec runs a statement. A room may wait with it until something is asked, and only then say what
// is wrong with it.
func (w *writer) exec(query string, args ...any) error {
	_, err := w.result(query, args...)
	return err
}

// count runs a statement and returns how many rows it changed.
func (w *writer) count(query string, args ...any) (int64, error) {
	res, err := w.result(query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w *writer) result(query string, args ...any) (sql.Result, error) {
	if err := w.show(query); err != nil {
		return nil, err
	}
	return w.tx.ExecContext(w.ctx, query, args...)
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

// look reads at once what the rows of a batch need to know: the states of its logs, the numbers
// of names, which of its responses the index already has (nearly always none, and then their
// rows need not be looked up one by one), and which numbers documents have.
func (w *writer) look(chunks []*chunk) (err error) {
	logs := make([]string, 0, len(chunks))
	for _, c := range chunks {
		logs = append(logs, c.job.stat.Name)
	}
	if w.states, err = w.loadStates(logs); err != nil {
		return err
	}
	for _, s := range w.states {
		w.expect(s.cwd, s.agent)
		for _, c := range s.calls {
			w.expect(c[1])
		}
	}
	w.responses, w.known = make(map[string]*usageRow), make(map[string]bool)
	responses := []string{}
	for _, c := range chunks {
		for _, rec := range c.records {
			w.expectOf(rec)
			if rec.usage != nil {
				responses = append(responses, rec.usage.response)
			}
		}
	}
	rows, err := w.QueryContext(w.ctx, `SELECT 0, name, id FROM names WHERE name IN (SELECT atom FROM json_each(?))
		UNION ALL SELECT 1, response, 0 FROM usage WHERE response IN (SELECT atom FROM json_each(?))
		UNION ALL SELECT 2, '', value FROM counters WHERE name = 'docs'
		UNION ALL SELECT 3, '', coalesce(max(id), -1) FROM docs`,
		marshal(slices.AppendSeq([]string{}, maps.Keys(w.names))), marshal(responses))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var what, n int64
		var name string
		if err := rows.Scan(&what, &name, &n); err != nil {
			return err
		}
		switch what {
		case 0:
			w.names[name] = n
		case 1:
			w.known[name] = true
		case 2:
			w.nextDoc = n
		case 3:
			w.newest = n
		}
	}
	return rows.Err()
}

// expect notes names that will need their numbers. What JSON cannot hold is looked up by itself.
func (w *writer) expect(names ...string) {
	for _, name := range names {
		if name != "" && utf8.ValidString(name) && !strings.Contains(name, "\x00") {
			w.names[bounded(name)] = 0
		}
	}
}

// expectOf notes the names that a record needs.
func (w *writer) expectOf(rec *record) {
	w.expect(rec.role, rec.model)
	if rec.header != nil {
		w.expect(rec.header.CWD, session.AgentOf(rec.header))
	}
	if u := rec.usage; u != nil {
		w.expect(u.provider, u.model, u.tool)
	}
	for i := range rec.docs {
		w.expect(rec.docs[i].role, rec.docs[i].tool)
	}
}

// nameID returns the number of a name; 0 for "".
func (w *writer) nameID(name string) (id int64, err error) {
	if name == "" {
		return 0, nil
	}
	name = bounded(name)
	id, asked := w.names[name]
	if id != 0 {
		return id, nil
	}
	if !asked {
		if _, err := w.find([]any{&id}, `SELECT id FROM names WHERE name = ?`, name); err != nil {
			return 0, err
		}
	}
	if id == 0 {
		if id, err = w.newName(name); err != nil {
			return 0, err
		}
	}
	w.names[name] = id
	return id, nil
}

// newName gives a name a number.
func (w *writer) newName(name string) (int64, error) {
	if w.lastName == 0 {
		if _, err := w.find([]any{&w.lastName}, `SELECT coalesce(max(id), 0) FROM names`); err != nil {
			return 0, err
		}
	}
	w.lastName++
	return w.lastName, w.exec(`INSERT INTO names (id, name) VALUES (?, ?)`, w.lastName, name)
}

// addDocs queues an entry's documents.
func (w *writer) addDocs(s *state, n int64, rec *record) error {
	for i := range rec.docs {
		d := &rec.docs[i]
		row := docRow{
			session: s.id, entry: n, part: d.ordinal, kind: d.kind,
			length: d.length(), tf: d.tf, body: d.body, whole: d.whole, failed: d.failed,
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
	if err := w.relink(); err != nil { // first: it marks documents
		return err
	}
	// Tables are fastest in the order of ids, and the texts must have it.
	byID := func(a, b docRow) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(w.docs, byID)
	moved, err := w.assignIDs(w.docs)
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
	return w.exec(`UPDATE counters SET value = CASE name WHEN 'docs' THEN ? ELSE value + ? END WHERE name IN ('docs', 'tokens')`, w.nextDoc, w.tokens)
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
var kinds = []Kind{KindText, KindThinking, KindCall, KindOutput, KindSummary, KindTitle, KindTag, KindLabel, KindDraft, KindNote}

// Kinds lists the kinds of text.
func Kinds() []Kind { return slices.Clone(kinds) }

func unknownKind(k Kind) error {
	return fmt.Errorf("unknown kind %q; it must be one of %s", k, strings.Join(kindNames(kinds), ", "))
}

func kindNumber(k Kind) int64 { return int64(slices.Index(kinds, k)) }
