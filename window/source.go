package window

import (
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Source says how the tokens of an entry were counted.
type Source uint8

// The sources of counts, most reliable first.
const (
	// Reported: the provider reported it for the response.
	Reported Source = iota + 1
	// Recorded: it is stored with the message. The log does not say who counted it, but
	// estimates are not stored.
	Recorded
	// Exact: the model's own tokenizer counted the text.
	Exact
	// Estimated: it is a guess for the model that will read the view. Another model gets
	// another guess.
	Estimated
)

var sourceNames = [...]string{Reported: "reported", Recorded: "recorded", Exact: "exact", Estimated: "estimated"}

func (s Source) String() string {
	if s < Reported || s > Estimated {
		return fmt.Sprintf("Source(%d)", uint8(s))
	}
	return sourceNames[s]
}

// MarshalText writes the source's name.
func (s Source) MarshalText() ([]byte, error) {
	if s < Reported || s > Estimated {
		return nil, fmt.Errorf("source of a count %d: %w", uint8(s), session.ErrInvalid)
	}
	return []byte(sourceNames[s]), nil
}

// UnmarshalText reads a source's name.
func (s *Source) UnmarshalText(name []byte) error {
	at := slices.Index(sourceNames[:], string(name))
	if at < int(Reported) {
		return fmt.Errorf("source of a count %q: %w", name, session.ErrInvalid)
	}
	*s = Source(at)
	return nil
}

// CountReport is the part of a view that one source counted.
type CountReport struct {
	Source  Source `json:"source"`
	Entries int    `json:"entries"`
	Tokens  int    `json:"tokens"`
}

// sourceSums are counts by source. Views need them at every turn, so they are updated
// rather than added up.
type sourceSums [Estimated + 1]CountReport

func (s *sourceSums) add(c Cost) {
	s[c.By].Entries++
	s[c.By].Tokens += c.Tokens
}

func (s *sourceSums) remove(c Cost) {
	s[c.By].Entries--
	s[c.By].Tokens -= c.Tokens
}

// report returns the sources that counted anything.
func (s *sourceSums) report() []CountReport {
	var report []CountReport
	for by := Reported; by <= Estimated; by++ {
		if sum := s[by]; sum.Entries > 0 {
			sum.Source = by
			report = append(report, sum)
		}
	}
	return report
}
