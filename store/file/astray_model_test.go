//go:build unix

package file_test

import (
	"fmt"
	"testing"
	"time"
)

// astrayAppend is an acknowledged append: the moments before it was called and
// after it returned.
type astrayAppend struct {
	log, line  string
	start, end int64
}

// astrayChange is a change of what is at a log's path.
type astrayChange struct {
	what       string
	start, end int64
	// before is what was at the path, read after start; after is what the change
	// put there. A file that is not there has no lines.
	before, after map[string]int
	// locked: it was done by the store, under the log's lock. Then it comes before
	// or after each append. Otherwise it may come in the middle of one.
	locked bool
}

// astray returns what is wrong with a log in which found stands in the end:
// acknowledged appends that went astray. It follows each append through the
// changes. One that ended before a change must be in the file that the change
// finds; whether it is there afterwards is up to the change. For an append that
// is under way when a program like sed replaces the file, nobody can promise
// more than that it is in the one file or in the other: beside counts those.
func astray(appends []astrayAppend, changes []astrayChange, found map[string]int) (lost []string, beside int) {
	for _, a := range appends {
		must, raced := true, false // it must be there; it may be
		last := "it was acknowledged"
		for _, c := range changes {
			if a.start > c.end {
				continue
			}
			was, is := c.before[a.line] > 0, c.after[a.line] > 0
			if a.end < c.start {
				if must && !was {
					lost = append(lost, fmt.Sprintf("line %s of %s is not in the file before %q at %s, and should be since %s",
						a.line, clock(a.end), c.what, clock(c.start), last))
				}
				must = is
			} else if !c.locked {
				must, raced = is, true
			} else if was || is {
				must = is
			}
			if must {
				last = c.what
			}
		}
		if must && found[a.line] == 0 {
			lost = append(lost, fmt.Sprintf("line %s of %s is not there, and should be since %s", a.line, clock(a.end), last))
		}
		if raced {
			beside++
		}
	}
	return lost, beside
}

func clock(nanoseconds int64) string { return time.Unix(0, nanoseconds).Format("05.000000") }

// TestAstrayModel shows what the model complains about and what it does not.
func TestAstrayModel(t *testing.T) {
	t.Parallel()
	with, without := map[string]int{"a": 1}, map[string]int{}
	edit := func(before, after map[string]int) astrayChange {
		return astrayChange{what: "an edit", start: 10, end: 20, before: before, after: after}
	}
	removal := func(before map[string]int) astrayChange {
		return astrayChange{what: "a removal", start: 10, end: 20, before: before, locked: true}
	}
	restoring := astrayChange{what: "a restoring", start: 30, end: 40, before: without, after: with, locked: true}
	tests := []struct {
		name       string
		start, end int64 // of the append of a
		changes    []astrayChange
		found      map[string]int
		lost       int
	}{
		{"it is there", 1, 2, nil, with, 0},
		{"it is not there", 1, 2, nil, without, 1},
		{"an edit kept it", 1, 2, []astrayChange{edit(with, with)}, with, 0},
		{"an edit kept it, and then it vanished", 1, 2, []astrayChange{edit(with, with)}, without, 1},
		{"an edit left it out", 1, 2, []astrayChange{edit(with, without)}, without, 0},
		{"it was missing before the edit", 1, 2, []astrayChange{edit(without, without)}, without, 1},
		{"it was written while the file was edited", 12, 15, []astrayChange{edit(without, without)}, without, 0},
		{"it began before the edit and ended in it", 5, 15, []astrayChange{edit(without, without)}, without, 0},
		{"it began after the edit", 21, 22, []astrayChange{edit(without, without)}, without, 1},
		{"removed and restored", 1, 2, []astrayChange{removal(with), restoring}, with, 0},
		{"written into what was removed", 21, 22, []astrayChange{removal(without), restoring}, with, 1},
		{"written during the removal, before it", 12, 15, []astrayChange{removal(with), restoring}, with, 0},
		{"written during the removal, nowhere", 12, 15, []astrayChange{removal(without)}, without, 1},
		{"removed for good", 1, 2, []astrayChange{removal(with)}, without, 0},
		{"lost when it was restored", 1, 2, []astrayChange{removal(with), restoring}, without, 1},
	}
	for _, tt := range tests {
		a := astrayAppend{log: "log", line: "a", start: tt.start, end: tt.end}
		if lost, _ := astray([]astrayAppend{a}, tt.changes, tt.found); len(lost) != tt.lost {
			t.Errorf("%s: %d complaints %q, want %d", tt.name, len(lost), lost, tt.lost)
		}
	}
}
