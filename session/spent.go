package session

import (
	"cmp"
	"slices"
	"strconv"
)

// Spent adds up what responses cost: what their providers reported, and what was
// recorded with messages of which nothing was reported. Messages of one response
// repeat its report, or have more of it as it grows: the greatest numbers count.
// The zero value is ready to use.
type Spent struct {
	// Reported is how many tokens were billed, and Recorded how many the other
	// messages have.
	Reported, Recorded int
	// CostMicroUSD is what responses cost in millionths of a US dollar, as far as
	// the log says.
	CostMicroUSD int

	responses map[string]Usage
}

// Tokens returns how many tokens were billed. If nobody reported any it is how many
// were recorded with messages: where there are reports, what was sent and answered is
// in them already.
func (s *Spent) Tokens() int { return cmp.Or(s.Reported, s.Recorded) }

// Add takes a message into account, and nothing else.
func (s *Spent) Add(e *Entry) {
	m := e.Message
	switch {
	case m == nil:
	case m.Usage != nil:
		s.addReport(ResponseKey(e), *m.Usage)
	case m.Tokens != nil:
		s.Recorded += *m.Tokens
	}
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

// ResponseKey identifies the response that a message is part of, in whatever log it
// is. Without the provider's id it is the message's, which forks share; its time is
// added because not all writers make ids that are unique in more than one log.
func ResponseKey(e *Entry) string {
	if id := e.Message.ResponseID; id != "" {
		return "r:" + id
	}
	return EntryKey(e)
}

// EntryKey identifies an entry in whatever log it is.
func EntryKey(e *Entry) string {
	ms := int64(0)
	if !e.Timestamp.IsZero() {
		ms = e.Timestamp.UnixMilli()
	}
	return "e:" + e.ID + "@" + strconv.FormatInt(ms, 10)
}

// spentAtOnce is how many entries are read at once.
const spentAtOnce = 256

// Spent adds up what the responses of the session cost, on all branches. What the
// session was only given by the one that it continues was paid there.
func (s *Session) Spent() (Spent, error) {
	var sum Spent
	ids, err := s.EntryIDs()
	if err != nil {
		return sum, err
	}
	h := s.Header()
	carried := CarriedIn(&h)
	for some := range slices.Chunk(ids, spentAtOnce) {
		entries, err := s.Peek(some...)
		if err != nil {
			return sum, err
		}
		for i := range entries {
			given, before := carried.Take(CarryOf(&entries[i]))
			if before {
				sum = Spent{}
			}
			if !given {
				sum.Add(&entries[i])
			}
		}
	}
	return sum, nil
}
