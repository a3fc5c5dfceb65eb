package transcript

import (
	"cmp"
	"slices"
)

// Report is the result of importing a file.
type Report struct {
	Path   string `json:"path"`
	Format string `json:"format,omitempty"`
	Bytes  int64  `json:"bytes"` // read
	// Unchanged: the file is as it was when it was imported last, or as it was
	// written by an export. It was not read.
	Unchanged bool            `json:"unchanged,omitempty"`
	Sessions  []SessionReport `json:"sessions"`
	Problems  int             `json:"problems,omitempty"` // records that could not be read, those of no session included
}

// SessionReport says what became of the records of one conversation.
type SessionReport struct {
	ID      string `json:"id"`  // the session
	Key     string `json:"key"` // the format and the conversation's own id in it
	Title   string `json:"title,omitempty"`
	Created bool   `json:"created"`           // it was not there before
	New     int    `json:"new"`               // entries that were added
	Known   int    `json:"known"`             // records that were there already
	Revised int    `json:"revised,omitempty"` // of New, those that are another version of a known record
	// Fidelity says what the source records were and what they are now.
	Fidelity []Fidelity `json:"fidelity"`
	// Problems are the first records that could not be read, and ProblemCount how many
	// there were.
	ProblemCount int       `json:"problem_count"`
	Problems     []Problem `json:"problems,omitempty"`
}

// Fidelity says what a number of source records became.
type Fidelity struct {
	What   string `json:"what"`
	Became string `json:"became"`
	N      int    `json:"n"`
}

// New returns how many entries were added in all.
func (r *Report) New() int {
	n := 0
	if r == nil {
		return 0
	}
	for i := range r.Sessions {
		n += r.Sessions[i].New
	}
	return n
}

// maxProblems is how many problems of a conversation are kept one by one.
const maxProblems = 20

// tally counts the outcomes of the records of one conversation.
type tally struct {
	counts   map[Became]int
	problems []Problem
	n        int
}

func (t *tally) count(what, became string, n int) {
	if t.counts == nil {
		t.counts = make(map[Became]int)
	}
	t.counts[Became{what, became}] += n
}

func (t *tally) problem(p Problem) {
	if t.n++; len(t.problems) < maxProblems {
		t.problems = append(t.problems, p)
	}
}

func (t *tally) fidelity() []Fidelity {
	list := []Fidelity{}
	for k, n := range t.counts {
		list = append(list, Fidelity{k.What, k.Became, n})
	}
	slices.SortFunc(list, func(a, b Fidelity) int {
		return cmp.Or(-cmp.Compare(a.N, b.N), cmp.Compare(a.What, b.What), cmp.Compare(a.Became, b.Became))
	})
	return list
}
