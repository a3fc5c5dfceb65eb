package home

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// CompareSide sums up what only one of two paths has.
type CompareSide struct {
	Entries int        `json:"entries"`
	Prompts int        `json:"prompts"`
	Calls   int        `json:"calls"`
	Tools   []Count    `json:"tools"`  // the tools that were called, the most used first
	Errors  int        `json:"errors"` // calls and turns that failed
	Files   []CardFile `json:"files"`  // that were changed, the latest first
	// Tokens and CostMicroUSD are the recorded costs of the responses.
	Tokens       int `json:"tokens"`
	CostMicroUSD int `json:"cost_micro_usd"`
	// Answer is the beginning of what the model said last, and AnswerEntry the entry with all of
	// it.
	Answer      string `json:"answer,omitempty"`
	AnswerEntry string `json:"answer_entry,omitempty"`
}

// CompareStep is what was done on one path, and on the other at the same time.
type CompareStep struct {
	A    *PathStep `json:"a,omitempty"`
	B    *PathStep `json:"b,omitempty"`
	Same bool      `json:"same"` // both did the same; the outcome may differ
}

// PathStep is a message or a call.
type PathStep struct {
	Entry   string `json:"entry"`
	Kind    string `json:"kind"` // prompt, answer or call, or a word for what else it is
	Gist    string `json:"gist"`
	Outcome string `json:"outcome,omitempty"` // of a call: its outcome in a few words; "" without a result
	Failed  bool   `json:"failed"`
}

// maxSteps is how many steps of a path are compared. Nobody reads more.
const maxSteps = 5000

// sideOf sums up entries.
func sideOf(entries []session.Entry) *CompareSide {
	card := &Card{}
	card.addEnd(entries)
	side := &CompareSide{
		Entries: len(entries), Tools: []Count{}, Files: orEmpty(card.Files), Answer: card.Answer, AnswerEntry: card.AnswerEntry,
	}
	var spent session.Spent
	calls := make(map[string]int64)
	for i := range entries {
		e := &entries[i]
		spent.Add(e)
		if is(seekPrompt, e) {
			side.Prompts++
		}
		if is(seekError, e) {
			side.Errors++
		}
		if e.Message == nil {
			continue
		}
		for j := range e.Message.Content {
			if use := e.Message.Content[j].ToolUse; use != nil {
				calls[use.Name]++
				side.Calls++
			}
		}
	}
	for name, n := range calls {
		side.Tools = append(side.Tools, Count{Name: name, Count: n})
	}
	slices.SortFunc(side.Tools, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	side.Tokens, side.CostMicroUSD = spent.Tokens(), spent.CostMicroUSD
	return side
}

// stepsOf returns the messages and calls of some entries as steps.
func stepsOf(entries []session.Entry) (steps []PathStep) {
	var pairs session.Pairs
	for i := range entries {
		pairs.Add(&entries[i])
	}
	refs := pairs.Refs()
	next := 0 // of refs
	for i := range entries {
		e := &entries[i]
		if kind := stepKind(e); kind != "" {
			steps = append(steps, PathStep{Entry: e.ID, Kind: kind, Gist: entryText(e), Failed: e.Message != nil && render.Failure(e.Message) != ""})
		}
		for ; next < len(refs) && refs[next].Entry <= i; next++ {
			if use := useOf(refs[next], entries); use != nil {
				steps = append(steps, callStep(e.ID, use, refs, next, entries))
			}
		}
	}
	return steps[:min(len(steps), maxSteps)]
}

// is reports whether an entry is of a kind that can be sought.
func is(kind string, e *session.Entry) bool { return (&sought{kind: kind}).isKind(e) }

// stepKind returns the kind of step that an entry is, apart from its calls; "" if it is none.
func stepKind(e *session.Entry) string {
	switch {
	case e.Message == nil:
		if e.Type.IsSaid() || e.ModelChange != nil {
			return render.Kind(e)
		}
		return ""
	case is(seekAnswer, e):
		return seekAnswer
	case is(seekPrompt, e):
		return seekPrompt
	case render.Failure(e.Message) != "":
		return seekError
	}
	return ""
}

// entryText returns the text of an entry, without its calls.
func entryText(e *session.Entry) string {
	if e.Message == nil {
		return render.Gist(e, maxRowGist)
	}
	words := *e
	m := *e.Message
	m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(c session.Content) bool { return c.ToolUse != nil })
	words.Message = &m
	return render.Gist(&words, maxRowGist)
}

func callStep(entry string, use *session.ToolUseContent, refs []session.Ref, at int, entries []session.Entry) PathStep {
	step := PathStep{Entry: entry, Kind: seekCall, Gist: render.OneLine(render.CallGist(use), maxRowGist)}
	if refs[at].Pair != session.NoPair {
		answer := refs[refs[at].Pair]
		result := entries[answer.Entry].Message.Content[answer.Block].ToolResult
		step.Outcome, step.Failed = cmp.Or(render.OutcomeGist(result), "done"), result.IsError
	}
	return step
}

// aligned puts the steps of two paths beside each other: where both did the same, and what each did
// in between.
func aligned(a, b []PathStep) []CompareStep {
	edits := udiff.Lines(stepLines(a), stepLines(b))
	steps := []CompareStep{}
	i, j := 0, 0
	same := func(until int) { // of a
		for ; i < until; i, j = i+1, j+1 {
			steps = append(steps, CompareStep{A: &a[i], B: &b[j], Same: true})
		}
	}
	ends := lineEnds(a)
	for _, edit := range edits {
		from, to := linesBefore(ends, edit.Start), linesBefore(ends, edit.End)
		same(from)
		end := j + strings.Count(edit.New, "\n")
		for i < to || j < end {
			var step CompareStep
			if i < to {
				step.A, i = &a[i], i+1
			}
			if j < end {
				step.B, j = &b[j], j+1
			}
			steps = append(steps, step)
		}
	}
	same(len(a))
	return steps
}

func (s *PathStep) line() string { return s.Kind + " " + s.Gist + "\n" }

func stepLines(steps []PathStep) string {
	var b strings.Builder
	for i := range steps {
		b.WriteString(steps[i].line())
	}
	return b.String()
}

// lineEnds returns where the lines of steps end.
func lineEnds(steps []PathStep) []int {
	ends, at := make([]int, len(steps)), 0
	for i := range steps {
		at += len(steps[i].line())
		ends[i] = at
	}
	return ends
}

// linesBefore returns how many lines end at or before a place.
func linesBefore(ends []int, at int) int {
	n, found := slices.BinarySearch(ends, at)
	if found {
		n++
	}
	return n
}
