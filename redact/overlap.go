package redact

import (
	"cmp"
	"slices"
)

// candidate is a finding that others may overlap. Its preview is made only once it has
// won, because hostile text may have many candidates for each finding.
type candidate struct {
	kind string
	span
	shown  []byte // what a preview may show
	named  bool   // shown is the name of a value
	secret int    // where what a preview may not show begins
}

// The ranks of rules: where two overlap, the lower one counts. A rule that recognises a
// kind exactly beats one that only goes by the name before it.
const (
	rankExact = iota
	rankPlaced
	rankNamed
	ranks
)

// resolveOverlaps decides between candidates that overlap: the lower rank counts, then the one
// that begins first, then the longer one.
//
// It goes through the candidates of each rank once, alongside what was taken from lower
// ranks, and merges the two. Except for the sorting it is linear, and the input is
// nearly sorted.
func resolveOverlaps(text []byte, byRank *[ranks][]candidate) []Finding {
	var taken []Finding
	for _, list := range byRank {
		if len(list) == 0 {
			continue
		}
		if !slices.IsSortedFunc(list, before) {
			slices.SortStableFunc(list, before)
		}
		taken = addFree(text, taken, list)
	}
	return taken
}

func before(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
}

// addFree adds those candidates that overlap neither what was taken nor each other.
// Both lists are sorted.
func addFree(text []byte, taken []Finding, list []candidate) []Finding {
	merged := make([]Finding, 0, len(taken))
	end := 0 // of what is merged
	for _, c := range list {
		for len(taken) > 0 && taken[0].Start <= c.start {
			merged, end, taken = append(merged, taken[0]), max(end, taken[0].End), taken[1:]
		}
		if c.start < end || len(taken) > 0 && taken[0].Start < c.end {
			continue
		}
		merged, end = append(merged, Finding{Kind: c.kind, Start: c.start, End: c.end, Same: SameAs(text[c.start:c.end]), Preview: c.preview(text)}), c.end
	}
	return append(merged, taken...)
}

func (c *candidate) preview(text []byte) string {
	shown := string(c.shown)
	if c.named {
		shown += "="
	}
	return preview(shown, text[c.secret:c.end])
}

// merge adds findings whose places refer to the text after found was replaced. A
// finding that overlaps a replacement is dropped. If widen is set, each finding takes
// with it everything that it is attached to. Both lists are sorted, and so is the
// result; merge goes through each once, and over no byte twice.
func (s *Scanner) merge(text []byte, found, uncovered []Finding, widen bool) []Finding {
	all := make([]Finding, 0, len(found)+len(uncovered))
	shift, end := 0, 0 // of the replacements so far
	last := 0          // where the last of all ends
	for _, u := range uncovered {
		for len(found) > 0 && found[0].Start+shift < u.End {
			f := found[0]
			n := len(s.replacement(f.Kind, f.End-f.Start))
			end = f.Start + shift + n
			shift += n - (f.End - f.Start)
			all, found, last = append(all, f), found[1:], f.End
		}
		if u.Start < end || u.Start-shift < last {
			continue
		}
		u.Start, u.End = u.Start-shift, u.End-shift
		if widen {
			next := len(text)
			if len(found) > 0 {
				next = found[0].Start
			}
			u = widened(u, text, last, next)
		}
		all, last = append(all, u), u.End
	}
	return append(all, found...)
}

// widened returns a finding with everything that it is attached to between two places.
func widened(f Finding, text []byte, from, to int) Finding {
	for f.Start > from && bareBytes[text[f.Start-1]] {
		f.Start--
	}
	f.End += bareBytes.run(text[f.End:to])
	f.Same, f.Preview = SameAs(text[f.Start:f.End]), preview("", text[f.Start:f.End])
	return f
}
