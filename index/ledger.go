package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

// What is counted of a session (messages, calls, responses and what they cost) is
// kept as sums by the quarter of an hour, which days and hours of all time zones are
// made of. To add up the ledgers of 6,000 sessions takes 30 ms; to add up all rows
// of their messages and responses took 800.
//
// A ledger is derived, like the row of a list. Whoever changes what it depends on
// notes that it is stale: the session's own lines, its place in its chain, what
// others of the chain have, and which session a response is charged to. Whoever wants
// the sums next brings the stale ones up to date.

const quarterMillis = 15 * 60 * 1000

// spentRow is what some responses of a quarter of an hour cost.
type spentRow struct {
	quarter         int64
	provider, model int64 // names
	priced          int64 // 1: the cost was recorded
	sums            [8]int64
}

// saidRow is how many messages there were in a quarter of an hour, or calls.
type saidRow struct{ quarter, role, model, tool, messages, calls int64 }

// sheet is a session's ledger. It has with it what sums are made by, so that one
// table is all there is to read.
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
		for _, n := range []int64{r.quarter, r.role, r.model, r.tool, r.messages, r.calls} {
			b.number(n)
		}
	}
	return b
}

// decodeSheet calls back with each row of a ledger.
func decodeSheet(data []byte, spent func(*sheet, *spentRow), said func(*saidRow)) error {
	r := rowReader{data: string(data)}
	s := &sheet{id: r.text(), dir: r.number(), agent: r.number()}
	for n := r.length(12); n > 0; n-- {
		row := spentRow{quarter: r.number(), provider: r.number(), model: r.number(), priced: r.number()}
		for i := range row.sums {
			row.sums[i] = r.number()
		}
		spent(s, &row)
	}
	for n := r.length(6); n > 0; n-- {
		said(&saidRow{r.number(), r.number(), r.number(), r.number(), r.number(), r.number()})
	}
	if r.short || r.data != "" {
		return errRow
	}
	return nil
}

// stale notes that a session's ledger has to be made again.
func (w *writer) stale(session int64) error {
	_, err := w.exec(`INSERT OR IGNORE INTO stale (session) VALUES (?)`, session)
	return err
}

// balance brings the stale ledgers up to date.
func (ix *Index) balance(ctx context.Context, db *database) error {
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
		if _, err := w.exec(`INSERT OR REPLACE INTO ledgers (session, data) VALUES (?, ?)`, id, sheets[id].encode()); err != nil {
			return err
		}
	}
	_, err = w.exec(`DELETE FROM stale`)
	return err
}

// staleSheets makes an empty ledger for each session whose is stale.
func (w *writer) staleSheets(sheets map[int64]*sheet) (ids []int64, err error) {
	rows, err := w.QueryContext(w.ctx, `SELECT s.id, ifnull(c.sid, s.sid), s.dir, s.maker FROM stale t CROSS JOIN sessions s ON s.id = t.session
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

func (w *writer) balanceSpent(sheets map[int64]*sheet) error {
	rows, err := w.QueryContext(w.ctx, `SELECT u.session, u.time / ?, u.provider, u.model, u.cost > 0, sum(u.recorded = 0), sum(u.input),
			sum(u.cache_read), sum(u.cache_write), sum(u.output), sum(u.reasoning), sum(u.cost), sum(u.recorded)
		FROM stale t CROSS JOIN sessions s ON s.id = t.session CROSS JOIN usage u INDEXED BY usage_of ON u.session = t.session
		WHERE u.counted = 1 AND (u.recorded = 0 OR s.billed = 0) GROUP BY 1, 2, 3, 4, 5`, quarterMillis)
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

// maxSought is of how many sessions the documents are looked for. If there are more,
// all documents are read.
const maxSought = 100

func (w *writer) balanceSaid(sheets map[int64]*sheet, ids []int64) error {
	which, args := `1`, []any{docSeqBits, kindNumber(KindCall)}
	if len(ids) <= maxSought {
		facets := []string{`"_none"`}
		for _, id := range ids {
			facets = append(facets, quote(facet('s', id)))
		}
		which, args = `m.id IN (SELECT rowid FROM fts WHERE fts MATCH ?3)`, append(args, strings.Join(facets, " OR "))
	}
	rows, err := w.QueryContext(w.ctx, `SELECT a.session, a.quarter, a.role, a.model, a.tool, sum(a.first), sum(a.call) FROM (
			SELECT m.session, (m.id >> ?1) / 900 AS quarter, m.part = 0 AS first, m.kind = ?2 AS call, m.role, m.model, m.tool
			FROM docs m WHERE `+which+` AND `+isCounted+` AND (m.part = 0 OR m.kind = ?2) AND m.kind IN (`+messageKinds+`)
			UNION ALL
			SELECT m.session, m.time / 900000, 1, 0, m.role, m.model, 0 FROM silent m WHERE m.session IN (SELECT session FROM stale) AND `+isCounted+`) a
		GROUP BY 1, 2, 3, 4, 5`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var r saidRow
		if err := rows.Scan(&id, &r.quarter, &r.role, &r.model, &r.tool, &r.messages, &r.calls); err != nil {
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
	Projects []Usage // see ProjectOf; "" is no directory
	Agents   []Usage // see session.AgentOf
	Activity Activity
}

// Stats adds up everything that Usage and Activity do, in one go and in a fraction of
// their time. Since and Until are taken to be at the quarter of an hour before them.
func (ix *Index) Stats(ctx context.Context, o StatsOptions) (*Stats, error) {
	var stats *Stats
	err := ix.read(ctx, "stats", func(db *database) error {
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

// adding is a Stats on its way.
type adding struct {
	ix       *Index
	o        StatsOptions
	names    map[int64]string
	from, to int64 // quarters
	days     map[int64]string
	byDay, byModel, bySession,
	byProject, byAgent, total map[sumKey]*Usage
	activity                   Activity
	dayN, roleN, modelN, toolN map[string]int64
	prices                     map[priceKey]*Price // nil: not known
}

// priceKey is what decides the price of a response.
type priceKey struct {
	provider, model int64
	priced          bool
}

// sumKey is one of the things that sums are made by, and what decides the price.
type sumKey struct {
	key string
	priceKey
}

func newAdding(ix *Index, o StatsOptions) *adding {
	a := &adding{ix: ix, o: o, from: -1 << 62, to: 1 << 62, prices: make(map[priceKey]*Price), names: make(map[int64]string), days: make(map[int64]string)}
	for _, m := range []*map[sumKey]*Usage{&a.byDay, &a.byModel, &a.bySession, &a.byProject, &a.byAgent, &a.total} {
		*m = make(map[sumKey]*Usage)
	}
	for _, m := range []*map[string]int64{&a.dayN, &a.roleN, &a.modelN, &a.toolN} {
		*m = make(map[string]int64)
	}
	if !o.Since.IsZero() {
		a.from = o.Since.UnixMilli() / quarterMillis
	}
	if !o.Until.IsZero() {
		a.to = o.Until.UnixMilli() / quarterMillis
	}
	return a
}

// read adds up the ledgers that are asked for.
func (a *adding) read(ctx context.Context, db *database) error {
	if err := a.readNames(ctx, db); err != nil {
		return err
	}
	where, args := `1`, []any{}
	if a.o.Session != "" {
		row, err := conversationOf(ctx, db, a.o.Session)
		if err != nil {
			return err
		}
		where, args = `l.session IN (SELECT id FROM sessions WHERE id = ?1 OR chain = ?1 AND chain <> 0)`, []any{row}
	}
	rows, err := db.QueryContext(ctx, `SELECT l.data FROM ledgers l WHERE `+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var data sql.RawBytes
		if err := rows.Scan(&data); err != nil {
			return err
		}
		if err := decodeSheet(data, a.spent, a.said); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (a *adding) readNames(ctx context.Context, db *database) error {
	rows, err := db.QueryContext(ctx, `SELECT id, name FROM names`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		a.names[id] = name
	}
	return rows.Err()
}

func (a *adding) spent(s *sheet, r *spentRow) {
	if r.quarter < a.from || r.quarter >= a.to {
		return
	}
	u := Usage{
		Responses: r.sums[0], Input: r.sums[1], CacheRead: r.sums[2], CacheWrite: r.sums[3], Output: r.sums[4],
		Reasoning: r.sums[5], CostMicroUSD: r.sums[6], Recorded: r.sums[7],
	}
	price := priceKey{r.provider, r.model, r.priced != 0}
	for _, by := range []struct {
		sums map[sumKey]*Usage
		key  string
	}{
		{a.total, ""},
		{a.byDay, a.day(r.quarter)},
		{a.byModel, a.names[r.model]},
		{a.bySession, s.id},
		{a.byProject, ProjectOf(a.names[s.dir])},
		{a.byAgent, a.names[s.agent]},
	} {
		key := sumKey{by.key, price}
		if sum := by.sums[key]; sum != nil {
			sum.add(u)
		} else {
			first := u
			by.sums[key] = &first
		}
	}
}

func (a *adding) said(r *saidRow) {
	if r.quarter < a.from || r.quarter >= a.to {
		return
	}
	if r.calls > 0 {
		a.toolN[a.names[r.tool]] += r.calls
	}
	if r.messages == 0 {
		return
	}
	t := time.Unix(r.quarter*quarterMillis/1000, 0).In(a.o.location())
	a.activity.Messages += r.messages
	a.activity.Hours[t.Hour()] += r.messages
	a.activity.Weekdays[t.Weekday()] += r.messages
	a.dayN[a.day(r.quarter)] += r.messages
	a.roleN[a.names[r.role]] += r.messages
	if r.model != 0 {
		a.modelN[a.names[r.model]] += r.messages
	}
}

// day returns the day of a quarter of an hour.
func (a *adding) day(quarter int64) string {
	day, ok := a.days[quarter]
	if !ok {
		day = time.Unix(quarter*quarterMillis/1000, 0).In(a.o.location()).Format(time.DateOnly)
		a.days[quarter] = day
	}
	return day
}

func (a *adding) stats() *Stats {
	s := &Stats{
		Days: a.priced(a.byDay), Models: a.priced(a.byModel), Sessions: a.priced(a.bySession),
		Projects: a.priced(a.byProject), Agents: a.priced(a.byAgent), Activity: a.activity,
	}
	if total := a.priced(a.total); len(total) > 0 {
		s.Total = total[0]
	}
	c := &s.Activity
	c.Days, c.Roles, c.Models, c.Tools = sortCounts(a.dayN), sortCounts(a.roleN), sortCounts(a.modelN), sortCounts(a.toolN)
	slices.SortFunc(c.Days, func(x, y Count) int { return cmp.Compare(x.Name, y.Name) })
	return s
}

// price looks a price up once.
func (a *adding) price(key priceKey) *Price {
	price, ok := a.prices[key]
	if !ok {
		if found, known := a.ix.opts.Prices.Price(a.names[key.provider], a.names[key.model]); known {
			price = &found
		}
		a.prices[key] = price
	}
	return price
}

// priced adds up what responses of several prices cost, sorted by key.
func (a *adding) priced(by map[sumKey]*Usage) []Usage {
	at := make(map[string]int)
	list := make([]Usage, 0, len(by))
	for key, u := range by {
		if !key.priced && u.Responses > 0 {
			if known := a.price(key.priceKey); known != nil {
				u.CostMicroUSD = known.cost(*u)
			} else {
				u.CostMicroUSD, u.Unpriced = 0, u.Responses
			}
		}
		i, ok := at[key.key]
		if !ok {
			i = len(list)
			at[key.key], list = i, append(list, Usage{Key: key.key})
		}
		list[i].add(*u)
	}
	slices.SortFunc(list, func(x, y Usage) int { return cmp.Compare(x.Key, y.Key) })
	return list
}
