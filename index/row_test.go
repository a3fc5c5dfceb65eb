package index_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/index"
)

var wholeRow = index.Session{
	ID: "id", Name: "name", Key: "telegram:1", Title: "Ein Büchlein", Named: true, Tags: []string{"a", ""}, CWD: "/work", Agent: "codex", Project: "work",
	Created: time.UnixMilli(1).UTC(), Updated: time.UnixMilli(1_790_000_000_123).UTC(),
	Entries: 1, Messages: 2, Branches: 3, Tokens: 1 << 40, Reported: true, Context: 5, Size: 6,
	Models: []index.Count{{Name: "m", Count: 300}, {Name: "n", Count: 1}}, Tools: []index.Count{{Name: "bash", Count: 1}},
	Parent: "p", Relation: "fork", Continuation: 7, ContinuedTo: "c", Pinned: true, Archived: true, Leaf: "leaf", Problems: 8,
}

func TestRow(t *testing.T) {
	t.Parallel()
	for _, want := range []index.Session{{}, {Title: "x"}, wholeRow} {
		row := index.EncodeRow(want)
		got, err := index.DecodeRow(row)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for n := range row {
			if _, err := index.DecodeRow(row[:n]); err == nil {
				t.Errorf("%d of %d bytes are taken for a row", n, len(row))
			}
		}
		if _, err := index.DecodeRow(append(row, 0)); err == nil {
			t.Error("a byte after the end is not noticed")
		}
	}
}

// FuzzRow reads whatever the column may hold: a damaged row is an error.
func FuzzRow(f *testing.F) {
	f.Add([]byte{})
	f.Add(index.EncodeRow(index.Session{}))
	f.Add(index.EncodeRow(wholeRow))
	f.Fuzz(func(t *testing.T, row []byte) {
		s, err := index.DecodeRow(row)
		if err != nil {
			return
		}
		again, err := index.DecodeRow(index.EncodeRow(s))
		if err != nil || again.ID != s.ID || again.Tokens != s.Tokens || len(again.Tags) != len(s.Tags) {
			t.Errorf("%+v becomes %+v, %v", s, again, err)
		}
	})
}
