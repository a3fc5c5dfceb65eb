package index

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
)

// A ledger holds the counts of a session (messages, calls, responses and what they cost) as
// sums by the quarter of an hour, because the days and hours of all time zones consist of
// quarters. Adding up the ledgers of 6,000 sessions takes 30 ms; adding up all rows of their
// messages and responses took 800.
//
// A ledger is derived, like the row of a list. It depends on the session's own lines,
// its place in its chain, the chain's other sessions, and which session a response is
// charged to. Code that changes any of these marks the ledger stale; the next query for
// the sums updates the stale ones.

const quarterMillis = 15 * 60 * 1000

// spentRow is what some responses of a quarter of an hour cost.
type spentRow struct {
	quarter         int64
	provider, model int64 // names
	priced          int64 // 1: the cost was recorded
	sums            [9]int64
}

// saidRow is how many messages, calls and errors there were in a quarter of an hour. took is how
// many milliseconds passed before the messages.
type saidRow struct{ quarter, role, model, tool, messages, calls, failed, took int64 }

// sheet is a session's ledger. It includes the keys that sums are grouped by, so that only
// one table has to be read.
type sheet struct {
	id         string // of the conversation
	dir, agent int64  // names
	spent      []spentRow
	said       []saidRow
}

func (s *sheet) encode() []byte {
	var b rowBuffer
	b.text(s.id)
	b.number(s.dir)
	b.number(s.agent)
	b.number(int64(len(s.spent)))
	for _, r := range s.spent {
		for _, n := range []int64{r.quarter, r.provider, r.model, r.priced} {
			b.number(n)
		}
		for _, n := range r.sums {
			b.number(n)
		}
	}
	b.number(int64(len(s.said)))
	for _, r := range s.said {
		for _, n := range []int64{r.quarter, r.role, r.model, r.tool, r.messages, r.calls, r.failed, r.took} {
			b.number(n)
		}
	}
	return b
}

// decodeSheet calls back with each row of a ledger.
func decodeSheet(data []byte, spent func(*sheet, *spentRow), said func(*saidRow)) error {
	r := rowReader{data: string(data)}
	s := &sheet{id: r.text(), dir: r.number(), agent: r.number()}
	for n := r.length(13); n > 0; n-- {
		row := spentRow{quarter: r.number(), provider: r.number(), model: r.number(), priced: r.number()}
		for i := range row.sums {
			row.sums[i] = r.number()
		}
		spent(s, &row)
	}
	for n := r.length(8); n > 0; n-- {
		said(&saidRow{r.number(), r.number(), r.number(), r.number(), r.number(), r.number(), r.number(), r.number()})
	}
	if r.short || r.data != "" {
		return errRow
	}
	return nil
}

// stale records that a session's ledger has to be rebuilt.
func (w *writer) stale(session int64) error {
	return w.exec(`INSERT INTO stale (session) VALUES (?) ON CONFLICT DO NOTHING`, session)
}

// balance brings the stale ledgers up to date.
func (ix *Index) balance(ctx context.Context, db room.Tables) error {
	var one int
	err := db.QueryRowContext(ctx, `SELECT 1 FROM stale LIMIT 1`).Scan(&one)
	if err == sql.ErrNoRows { //nolint:errorlint // it comes unwrapped
		return nil
	}
	if err != nil {
		return err
	}
	r := &catching{ctx: ctx, ix: ix, db: db, terms: newTermTable()}
	return r.inTx((*writer).balance)
}

func (w *writer) balance() error {
	sheets := make(map[int64]*sheet)
	ids, err := w.staleSheets(sheets)
	if err != nil {
		return err
	}
	if err := w.balanceSpent(sheets); err != nil {
		return err
	}
	if err := w.balanceSaid(sheets, ids); err != nil {
		return err
	}
	for _, id := range ids {
		if err := w.exec(`INSERT INTO ledgers (session, data) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET data = excluded.data`, id, sheets[id].encode()); err != nil {
			return err
		}
	}
	return w.exec(`DELETE FROM stale`)
}

// staleSheets adds an empty ledger for each session with a stale one.
func (w *writer) staleSheets(sheets map[int64]*sheet) (ids []int64, err error) {
	rows, err := w.QueryContext(w.ctx, `SELECT s.id, coalesce(c.sid, s.sid), s.dir, s.maker FROM stale t CROSS JOIN sessions s ON s.id = t.session
		LEFT JOIN sessions c ON c.id = s.chain AND s.chain <> 0 WHERE s.name IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		s := &sheet{}
		if err := rows.Scan(&id, &s.id, &s.dir, &s.agent); err != nil {
			return nil, err
		}
		ids, sheets[id] = append(ids, id), s
	}
	return ids, rows.Err()
}

// spentOfStale adds up what the sessions with stale ledgers spent. With the plus, SQLite does not
// make an index of all that is counted, which it would then go through for each session.
const spentOfStale = `SELECT s.id, u.time / ?, u.provider, u.model, CASE WHEN u.cost > 0 THEN 1 ELSE 0 END, sum(CASE WHEN u.recorded = 0 THEN 1 ELSE 0 END), sum(u.input),
		sum(u.cache_read), sum(u.cache_write), sum(u.output), sum(u.reasoning), sum(u.cache_hour), sum(u.cost), sum(u.recorded)
	FROM stale t CROSS JOIN sessions s ON s.id = t.session CROSS JOIN usage u ON ` + usageOfSession + `
	WHERE +u.counted = 1 AND (u.recorded = 0 OR s.billed = 0) GROUP BY 1, 2, 3, 4, 5`

func (w *writer) balanceSpent(sheets map[int64]*sheet) error {
	rows, err := w.QueryContext(w.ctx, spentOfStale, quarterMillis)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var r spentRow
		dest := []any{&id, &r.quarter, &r.provider, &r.model, &r.priced}
		for i := range r.sums {
			dest = append(dest, &r.sums[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if s := sheets[id]; s != nil {
			s.spent = append(s.spent, r)
		}
	}
	return rows.Err()
}

// maxSought is the number of sessions up to which documents are looked up by session. For
// more, all documents are read.
const maxSought = 100

// The time before a message is that since the entry before it, if both say when they were
// written and nobody was away. A draft of an answer divides the time of its model.
const (
	entryBefore = ` LEFT JOIN entries e ON e.session = m.session AND e.n = m.entry LEFT JOIN entries p ON p.session = m.session AND p.n = e.parent`
	sinceBefore = ` AND p.time > 0 AND e.time > p.time AND e.time - p.time <= ?3 THEN e.time - p.time ELSE 0 END AS took`
)

func (w *writer) balanceSaid(sheets map[int64]*sheet, ids []int64) error {
	which, args := `1 = 1`, []any{kindNumber(KindCall), kindNumber(KindDraft), session.Away.Milliseconds()}
	if len(ids) <= maxSought {
		facets := []string{`"_none"`}
		for _, id := range ids {
			facets = append(facets, quote(facet('s', id)))
		}
		which, args = `m.id IN (SELECT rowid FROM fts WHERE fts MATCH ?4)`, append(args, anyFacet(facets))
	}
	rows, err := w.QueryContext(w.ctx, `SELECT a.session, a.quarter, a.role, a.model, a.tool, sum(a.first), sum(a.call), sum(a.failed), sum(a.took) FROM (
			SELECT m.session, (m.id >> `+strconv.Itoa(docSeqBits)+`) / 900 AS quarter, CASE WHEN m.part = 0 AND m.kind <> ?2 THEN 1 ELSE 0 END AS first, CASE WHEN m.kind = ?1 THEN 1 ELSE 0 END AS call,
				m.role, m.model, m.tool, m.failed, CASE WHEN m.part = 0`+sinceBefore+`
			FROM docs m`+entryBefore+` WHERE `+which+` AND m.elsewhere = 0 AND (m.part = 0 OR m.kind = ?1 OR m.failed = 1) AND m.kind IN (`+messageKinds+`, ?2)
			UNION ALL
			SELECT m.session, m.time / 900000, 1, 0, m.role, m.model, 0, 0, CASE WHEN 1 = 1`+sinceBefore+`
			FROM silent m`+entryBefore+` WHERE m.session IN (SELECT session FROM stale) AND m.elsewhere = 0) a
		GROUP BY 1, 2, 3, 4, 5`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var r saidRow
		if err := rows.Scan(&id, &r.quarter, &r.role, &r.model, &r.tool, &r.messages, &r.calls, &r.failed, &r.took); err != nil {
			return err
		}
		if s := sheets[id]; s != nil {
			s.said = append(s.said, r)
		}
	}
	return rows.Err()
}

// Stats is what sessions cost, by several things at once, and what was said in them.
type Stats struct {
	Total    Usage
	Days     []Usage // in order
	Models   []Usage // these and the following are sorted by their keys
	Sessions []Usage // by the conversation's id
	Dirs     []Usage // by the directory that the sessions are about; "" is none
	Agents   []Usage // see session.AgentOf
	Parts    []DayPart
	Failed   []Count // calls that failed, by tool
	Times    []Elapsed
	Activity Activity
}

// Elapsed is how much time passed before the messages of a role, each since the entry before it.
type Elapsed struct {
	Role   string
	Tool   bool // they are outputs of tools, or calls
	Millis int64
}

// DayPart is what a model, a directory or an agent spent on a day: see StatsOptions.By. They are
// sorted by the day, then by the key.
type DayPart struct {
	Day string
	Usage
}

// Stats adds up what responses cost and counts what was said, from sums that are kept for
// each session. Since and Until are rounded down to a quarter of an hour.
func (ix *Index) Stats(ctx context.Context, o StatsOptions) (*Stats, error) {
	var stats *Stats
	err := ix.read(ctx, "stats", func(db room.Tables) error {
		if err := ix.balance(ctx, db); err != nil {
			return err
		}
		a := newAdding(ix, o)
		if err := a.read(ctx, db); err != nil {
			return err
		}
		stats = a.stats()
		return nil
	})
	return stats, err
}

// Spent returns what conversations cost, each by its id, as Stats does for one. It is for a page of a list.
func (ix *Index) Spent(ctx context.Context, ids []string) (map[string]Usage, error) {
	spent := make(map[string]Usage, len(ids))
	err := ix.read(ctx, "stats", func(db room.Tables) error {
		if err := ix.balance(ctx, db); err != nil {
			return err
		}
		a := newAdding(ix, StatsOptions{})
		if err := a.readNames(ctx, db); err != nil {
			return err
		}
		for _, id := range ids {
			row, err := conversationOf(ctx, db, id)
			if err != nil {
				return err
			}
			a.total = nil
			if err := a.readOf(ctx, db, row); err != nil {
				return err
			}
			spent[id] = a.price("", a.total)
		}
		return nil
	})
	return spent, err
}
