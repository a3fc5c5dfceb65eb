package home

import (
	"cmp"
	"context"
	"runtime"

	"github.com/coppice-dev/coppice/render"
)

// How many marks an outline has at a time.
const (
	defaultMarks = 500
	maxMarks     = 5000
)

// maxMarkText is how many columns of a prompt are enough for a line of an outline.
const maxMarkText = 120

// OutlineRequest says which part of a path to outline.
type OutlineRequest struct {
	Session string `json:"session"`         // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"`  // only the session that is named
	Leaf    string `json:"leaf,omitempty"`  // the end of the path, as a person names it; "" means the leaf
	From    int    `json:"from,omitempty"`  // the index of the first row to look at
	Limit   int    `json:"limit,omitempty"` // how many marks, at most 5,000; 0 means 500
}

// OutlineResult has the places of a path to which one jumps.
type OutlineResult struct {
	Marks []OutlineMark `json:"marks"`
	Total int           `json:"total"` // how many rows the path has
	// Next is the row from which to ask for more; 0 means that there are no others.
	Next int `json:"next,omitempty"`
}

// OutlineMark is a place in an outline.
type OutlineMark struct {
	Index int    `json:"index"` // of the row: see Rows
	Entry string `json:"entry"` // its id
	Kind  string `json:"kind"`  // prompt, compaction or label
	Text  string `json:"text"`  // the prompt on one line, or the label
}

// Outline lists the prompts, compactions and labels of a path, as an exported page does.
func (e *Entries) Outline(ctx context.Context, r OutlineRequest) (*OutlineResult, error) {
	return call(ctx, e.home, "entries.outline", r, e.outline)
}

func (e *Entries) outline(ctx context.Context, r OutlineRequest) (*OutlineResult, error) {
	if err := cmp.Or(notNegative("from", r.From), notNegative("limit", r.Limit)); err != nil {
		return nil, err
	}
	if r.Limit > maxMarks {
		return nil, wrong("limit", "{limit} is %d; at most %d marks are listed at a time", r.Limit, maxMarks)
	}
	var result *OutlineResult
	err := e.home.view(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed) error {
		drawn, path, err := v.pathTo(ctx, r.Leaf)
		if err != nil {
			return err
		}
		result, err = v.outline(ctx, drawn, path, r.From, cmp.Or(r.Limit, defaultMarks))
		return err
	})
	return result, err
}

func (v *viewed) outline(ctx context.Context, drawn render.Conversation, path []int32, from, limit int) (*OutlineResult, error) {
	result := &OutlineResult{Marks: []OutlineMark{}, Total: len(path)}
	s, workers := &sought{kind: seekMark}, runtime.GOMAXPROCS(0)
	for from < len(path) {
		rows := v.facts(path, from, min(from+seekMost*workers, len(path)))
		if err := s.read(ctx, drawn, rows, (len(rows)+workers-1)/workers); err != nil {
			return nil, err
		}
		for i := range rows {
			if len(result.Marks) >= limit {
				result.Next = rows[i].index
				return result, nil
			}
			result.Marks = append(result.Marks, rows[i].marks()...)
		}
		from += len(rows)
	}
	return result, ctx.Err()
}

// marks returns what an outline has of a row.
func (row *candidate) marks() (marks []OutlineMark) {
	if row.skipped {
		return nil
	}
	add := func(kind, text string) { marks = append(marks, OutlineMark{row.index, row.id, kind, text}) }
	switch {
	case row.entry.Compaction != nil:
		add("compaction", "Compacted")
	case row.entry.BeginsTurn():
		add("prompt", render.Gist(&row.entry, maxMarkText))
	}
	if row.label != "" {
		add("label", render.OneLine(row.label, maxMarkText))
	}
	return marks
}
