package render

import (
	"cmp"
	"slices"
)

// Names are what people are shown instead of long ids: for each id the shortest
// prefix that no other id has. Commands take such a prefix for the id.
type Names map[string]string

// minShort is how many characters a shortened id has at least.
const minShort = 8

// ShortIDs returns the names of ids, each of at least eight characters. In sorted
// order it is enough to compare each id with its neighbours.
func ShortIDs(ids []string) Names {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	names := make(Names, len(sorted))
	for i, id := range sorted {
		n := minShort - 1
		if i > 0 {
			n = max(n, SharedPrefix(id, sorted[i-1]))
		}
		if i+1 < len(sorted) {
			n = max(n, SharedPrefix(id, sorted[i+1]))
		}
		names[id] = id[:min(n+1, len(id))]
	}
	return names
}

// SharedPrefix returns how many bytes two strings have in common at the beginning.
func SharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Name is what to type for an id: its short name, or the id if it has none. It is
// as it was written: a command that has it must quote it.
func (n Names) Name(id string) string { return cmp.Or(n[id], id) }

// Shown is how to print an id: its name, with nothing in it that could act on a
// terminal or begin another line.
func (n Names) Shown(id string) string { return OneLine(n.Name(id), 0) }
