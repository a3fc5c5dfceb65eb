package session

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/internal/budget"
)

// Spent adds up what responses cost: what their providers reported, and what was
// recorded with messages without a report. Messages of one response repeat its report,
// or have more of it as it grows: the greatest numbers count. The zero value is ready
// to use.
type Spent struct {
	// Reported is how many tokens were billed, and Recorded how many the other
	// messages have.
	Reported, Recorded int
	// CostMicroUSD is what responses cost according to the log, in millionths of a US
	// dollar.
	CostMicroUSD int

	responses map[string]Usage
}

// Tokens returns how many tokens were billed or, without any reports, how many were recorded
// with messages. They are not added up: reports already include what was sent and answered.
func (s *Spent) Tokens() int { return cmp.Or(s.Reported, s.Recorded) }

// Add takes an entry into account. Only messages and bills (see BillOf) count.
func (s *Spent) Add(e *Entry) {
	if bill, ok := BillOf(e); ok {
		s.addReport(bill.Response, bill.Usage)
	} else if e.Message != nil && e.Message.Tokens != nil {
		s.Recorded += *e.Message.Tokens
	}
}

// CustomUsage is the type of a custom entry with the cost of a response that is not among the
// messages: one that made a summary or a title, or whose answer was never recorded. NewUsage
// makes one.
const CustomUsage = "coppice.usage"

// Bill is what a response cost, and who answered.
type Bill struct {
	Response        string // identifies the response across logs: see ResponseKey
	Provider, Model string
	Usage           Usage
}

// BillOf returns the bill in an entry: of a message with a usage, or of a custom entry of the
// type CustomUsage. Several entries may have a bill for the same response; it counts once.
func BillOf(e *Entry) (Bill, bool) {
	switch {
	case e.Message != nil && e.Message.Usage != nil:
		m := e.Message
		return Bill{Response: ResponseKey(e), Provider: m.Provider, Model: m.Model, Usage: *m.Usage}, true
	case e.Custom != nil && e.Custom.CustomType == CustomUsage:
		return e.Custom.bill(EntryKey(e)), true
	}
	return Bill{}, false
}

// NewUsage returns a custom entry that says what a response cost. The id is the
// provider's for the response, or "".
func NewUsage(provider, model, responseID string, u Usage) *CustomEntry {
	data := make(map[string]any)
	for name, n := range map[string]int{
		"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite,
		"cache_write_1h": u.CacheWriteHour, "reasoning": u.Reasoning, "cost_micro_usd": u.CostMicroUSD,
	} {
		if n != 0 {
			data[name] = n
		}
	}
	for name, text := range map[string]string{"provider": provider, "model": model, "response_id": responseID} {
		if text != "" {
			data[name] = text
		}
	}
	return &CustomEntry{CustomType: CustomUsage, Data: data}
}

// bill reads what NewUsage writes. Without the provider's id for the response, the bill
// has the given key.
func (c *CustomEntry) bill(key string) Bill {
	text := func(name string) string {
		s, _ := c.Data[name].(string)
		return s
	}
	if id := text("response_id"); id != "" {
		key = responseKey(id)
	}
	return Bill{Response: key, Provider: text("provider"), Model: text("model"), Usage: Usage{
		Input: c.count("input"), Output: c.count("output"), CacheRead: c.count("cache_read"), CacheWrite: c.count("cache_write"),
		CacheWriteHour: c.count("cache_write_1h"), Reasoning: c.count("reasoning"), CostMicroUSD: c.count("cost_micro_usd"),
	}}
}

// count returns a count in the entry's data. As in a message, anything but a count is
// missing.
func (c *CustomEntry) count(name string) int {
	switch n := c.Data[name].(type) {
	case int:
		if checkCount(name, n) == nil {
			return n
		}
	case float64:
		if n >= 0 && n <= maxCount && n == math.Trunc(n) {
			return int(n)
		}
	}
	return 0
}

func (s *Spent) addReport(key string, u Usage) {
	if s.responses == nil {
		s.responses = make(map[string]Usage)
	}
	before := s.responses[key]
	now := Usage{
		Input: max(before.Input, u.Input), CacheRead: max(before.CacheRead, u.CacheRead), CacheWrite: max(before.CacheWrite, u.CacheWrite),
		Output: max(before.Output, u.Output), CostMicroUSD: max(before.CostMicroUSD, u.CostMicroUSD),
	}
	s.responses[key] = now
	s.Reported += now.Context() - before.Context()
	s.CostMicroUSD += now.CostMicroUSD - before.CostMicroUSD
}

// ResponseKey identifies the response that a message is part of, across logs. If the provider
// gave no id, it is that of the message, which forks share, with its time, because not all
// writers make ids that are unique beyond one log.
func ResponseKey(e *Entry) string {
	if id := e.Message.ResponseID; id != "" {
		return responseKey(id)
	}
	return EntryKey(e)
}

func responseKey(id string) string { return "r:" + id }

// EntryKey identifies an entry across logs.
func EntryKey(e *Entry) string {
	ms := int64(0)
	if !e.Timestamp.IsZero() {
		ms = e.Timestamp.UnixMilli()
	}
	return "e:" + e.ID + "@" + strconv.FormatInt(ms, 10)
}

// spentAtOnce is how many entries are read at once.
const spentAtOnce = 256

// SpentIn adds up what the responses of a session cost, on all branches. What a continuation has
// copies of was paid before.
func SpentIn(s *Session) (Spent, error) {
	var sum Spent
	shape, err := s.Shape()
	if err != nil {
		return sum, err
	}
	copies, err := s.copies()
	if err != nil {
		return sum, err
	}
	for some := range slices.Chunk(shape.IDs(), spentAtOnce) {
		done := budget.Part(s.context())
		entries, err := s.Peek(some...)
		if err != nil {
			return sum, err
		}
		for i := range entries {
			if !copies[entries[i].ID] {
				sum.Add(&entries[i])
			}
		}
		done()
	}
	return sum, nil
}
