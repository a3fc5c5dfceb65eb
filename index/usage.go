package index

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// counts are tokens: input, cache read, cache write, output, reasoning, and how many of
// the cache write are kept for an hour.
type counts [6]int64

// usageRecord is what a response cost, according to an entry.
type usageRecord struct {
	response        string
	provider, model string
	tool            string
	counts          counts
	cost            int64
	context         int64
	recorded        int64 // tokens of a message without a report; then all else is 0
}

func newUsage(bill session.Bill, calls []call) *usageRecord {
	u := &usageRecord{
		response: bounded(bill.Response), provider: bill.Provider, model: bill.Model,
		counts: counts{
			int64(bill.Usage.Input), int64(bill.Usage.CacheRead), int64(bill.Usage.CacheWrite),
			int64(bill.Usage.Output), int64(bill.Usage.Reasoning), int64(min(bill.Usage.CacheWriteHour, bill.Usage.CacheWrite)),
		},
		cost: int64(bill.Usage.CostMicroUSD), context: int64(bill.Usage.Context()),
	}
	if len(calls) > 0 {
		u.tool = calls[0][1]
	}
	return u
}

// newRecorded returns the record of a message with a token count but no report.
func newRecorded(e *session.Entry) *usageRecord {
	m := e.Message
	return &usageRecord{response: bounded(session.EntryKey(e)), provider: m.Provider, model: m.Model, recorded: int64(*m.Tokens)}
}

// A row of usage has the session and the entry in its id, so that the rows of a session are
// side by side, in the order of its entries. A session has one row for each response, with
// the id of the first entry that reports it.
const usageColumns = `id, response, counted, time, provider, model, tool, input, cache_read, cache_write, output, reasoning, cache_hour, cost, recorded`

// usageOfSession is the condition that a row u of usage belongs to the session s.
const usageOfSession = `u.id BETWEEN s.id << 32 AND s.id << 32 | 4294967295`

// usageRow is a row of usage that waits for the others of its batch.
type usageRow struct {
	response             string
	session, entry, time int64
	names                [3]int64 // provider, model, tool
	counts               counts
	cost, recorded       int64
}

// addUsage adds a response. Messages of one response repeat its usage, or have larger numbers
// as it grows: the greatest count, in whatever order they come. Of the sessions that have the
// response, the oldest is charged.
func (w *writer) addUsage(s *state, n int64, rec *record) error {
	u := rec.usage
	row := &usageRow{response: u.response, session: s.id, entry: n, time: rec.time, counts: u.counts, cost: u.cost, recorded: u.recorded}
	for i, name := range []string{u.provider, u.model, u.tool} {
		id, err := w.nameID(name)
		if err != nil {
			return err
		}
		row.names[i] = id
	}
	if !w.known[u.response] {
		switch before := w.responses[u.response]; {
		case before == nil: // nearly always
			w.responses[u.response] = row
			s.bill(u)
			return nil
		case before.session == s.id:
			s.billed -= billed(before.counts)
			before.raise(row)
			s.billed += billed(before.counts)
			return nil
		}
		if err := w.writeUsage(); err != nil { // the two must be compared
			return err
		}
	}
	var id int64
	found, err := w.find([]any{&id}, `SELECT id FROM usage WHERE response = ? AND id >> 32 = ?`, u.response, s.id)
	if err != nil {
		return err
	}
	if found {
		return w.raiseUsage(s, id, row)
	}
	if err := w.add(w.usageRows, row.values(false)...); err != nil {
		return err
	}
	s.bill(u)
	return w.share(s, u.response)
}

func (s *state) bill(u *usageRecord) {
	s.billed += billed(u.counts)
	s.recorded += u.recorded
}

// raise applies what another message says about the same response.
func (r *usageRow) raise(other *usageRow) {
	for i := range r.counts {
		r.counts[i] = max(r.counts[i], other.counts[i])
	}
	r.cost, r.names[2] = max(r.cost, other.cost), cmp.Or(r.names[2], other.names[2])
}

func (r *usageRow) values(counted bool) []any {
	return []any{
		r.session<<32 | r.entry, r.response, counted, r.time, r.names[0], r.names[1], r.names[2],
		r.counts[0], r.counts[1], r.counts[2], r.counts[3], r.counts[4], r.counts[5], r.cost, r.recorded,
	}
}

// writeUsage writes the rows that wait. Each is the only one of its response, so it
// counts.
func (w *writer) writeUsage() error {
	byID := func(a, b *usageRow) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.entry, b.entry))
	}
	for _, row := range slices.SortedFunc(maps.Values(w.responses), byID) {
		if err := w.add(w.usageRows, row.values(true)...); err != nil {
			return err
		}
		w.known[row.response] = true
	}
	clear(w.responses)
	return w.writeBulk(w.usageRows)
}

// share records that a session has a response that another session has too.
func (w *writer) share(s *state, response string) error {
	// charge needs the session's row, which says how old it is.
	if s.unsaved {
		headed := s.headed
		if err := w.saveState(s); err != nil {
			return err
		}
		s.headed = headed
	}
	if err := w.exec(`UPDATE sessions SET created = ? WHERE id = ?`, s.created, s.id); err != nil {
		return err
	}
	return w.charge(response)
}

// raiseUsage adds another message of a response that the session already has.
func (w *writer) raiseUsage(s *state, id int64, row *usageRow) error {
	var was usageRow
	c := &was.counts
	_, err := w.find([]any{&c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &was.cost, &was.names[2]},
		`SELECT input, cache_read, cache_write, output, reasoning, cache_hour, cost, tool FROM usage WHERE id = ?`, id)
	if err != nil {
		return err
	}
	s.billed -= billed(was.counts)
	was.raise(row)
	s.billed += billed(was.counts)
	return w.exec(`UPDATE usage SET input = ?, cache_read = ?, cache_write = ?, output = ?, reasoning = ?, cache_hour = ?, cost = ?, tool = ? WHERE id = ?`,
		c[0], c[1], c[2], c[3], c[4], c[5], was.cost, was.names[2], id)
}

// billed is how many tokens a response is billed for. Output includes reasoning.
func billed(counts counts) int64 { return counts[0] + counts[1] + counts[2] + counts[3] }

// charge counts a response in the oldest session that has it, and only there.
func (w *writer) charge(response string) error {
	err := w.exec(`UPDATE usage SET counted = CASE WHEN id = (
			SELECT u.id FROM usage u JOIN sessions s ON s.id = u.id >> 32
			WHERE u.response = ?1 ORDER BY s.created, s.name IS NOT NULL, s.name, s.id LIMIT 1) THEN 1 ELSE 0 END
		WHERE response = ?1`, response)
	if err != nil {
		return err
	}
	return w.exec(`INSERT INTO stale (session) SELECT id >> 32 FROM usage WHERE response = ? ON CONFLICT DO NOTHING`, response)
}

// dropUsage removes a session from the ledger. Responses that others have too
// are charged to them.
func (w *writer) dropUsage(session int64) error {
	if err := w.writeUsage(); err != nil {
		return err
	}
	rows, err := w.QueryContext(w.ctx, `SELECT response FROM usage WHERE id BETWEEN ? AND ? AND counted = 1`, session<<32, session<<32|math.MaxUint32)
	if err != nil {
		return err
	}
	responses, err := scanColumn[string](rows)
	if err != nil {
		return err
	}
	if err := w.exec(`DELETE FROM usage WHERE id BETWEEN ? AND ?`, session<<32, session<<32|math.MaxUint32); err != nil {
		return err
	}
	for _, response := range responses {
		if err := w.charge(response); err != nil {
			return err
		}
	}
	return nil
}

// Usage is what some responses cost. Each response is counted once, however many
// logs it is in.
//
// Programs that keep no reports may still have counted the tokens of each message. Those
// counts are Recorded, but only for sessions without reports: reports already include what
// was sent and answered.
type Usage struct {
	Key        string `json:"key,omitempty"` // a day, a model, a conversation, a directory or an agent; "" for a total
	Responses  int64  `json:"responses"`
	Input      int64  `json:"input"` // tokens, without what the cache served
	CacheRead  int64  `json:"cache_read"`
	CacheWrite int64  `json:"cache_write"`
	CacheHour  int64  `json:"cache_write_1h"` // included in CacheWrite: what the cache keeps for an hour
	Output     int64  `json:"output"`
	Reasoning  int64  `json:"reasoning"` // included in Output
	Recorded   int64  `json:"recorded"`  // tokens of messages that were counted but not reported; they have no cost
	// CostMicroUSD is what they cost in millionths of a US dollar: as recorded in
	// the log, or else by the price of the model.
	CostMicroUSD int64 `json:"cost_micro_usd"`
	// Unpriced is how many of the responses have neither a recorded cost nor a
	// known price. If it is not 0, the cost is more than CostMicroUSD says.
	Unpriced int64 `json:"unpriced_responses"`
}

// Tokens returns all tokens: those that were billed, and the recorded ones.
func (u Usage) Tokens() int64 {
	return u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Recorded
}

// Add adds what other responses cost.
func (u *Usage) Add(v Usage) {
	u.Responses += v.Responses
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.CacheHour += v.CacheHour
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.Recorded += v.Recorded
	u.CostMicroUSD += v.CostMicroUSD
	u.Unpriced += v.Unpriced
}
