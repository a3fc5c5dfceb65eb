package index

import (
	"context"
	"database/sql"
	"slices"
	"sort"
)

// Most entries follow the entry with the number before theirs. Those that do not are
// breaks, and so is everything that is not an ordinary entry. Between two breaks is a
// run, in which each entry is the parent of the next:
//
//	entry    0  1  2  3 | 4  5 | 6        breaks: 4 (parent 1), 6 (parent 3)
//	parent   -  0  1  2 | 1  4 | 3        runs: 0–3, 4–5, 6
//
// So the path of a leaf is a few pieces of runs, whatever its length, and the breaks alone
// determine it. The alternative, a flag on every entry, would have to be changed whenever the
// leaf moves.

// run is a row of entries, each the parent of the next.
type run struct {
	first, last int64
	parent      int64 // of the first
	class       entryClass
}

// span is the entries from first to last.
type span struct{ first, last int64 }

func (s span) has(n int64) bool { return s.first <= n && n <= s.last }

// shape is a session's tree: its runs, in the order of their numbers.
type shape struct {
	runs []run
	leaf int64
	live []span // the path of the leaf, the end first
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// loadShape reads the breaks of a session that has the entries before next.
func loadShape(ctx context.Context, q querier, session, next, leaf int64) (*shape, error) {
	if next == 0 {
		return &shape{leaf: leaf}, nil
	}
	rows, err := q.QueryContext(ctx, `SELECT n, parent, class FROM entries
		WHERE session = ? AND (parent <> n - 1 OR class NOT IN (0, 5, 7)) ORDER BY n`, session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var breaks []run
	for rows.Next() {
		var r run
		if err := rows.Scan(&r.first, &r.parent, &r.class); err != nil {
			return nil, err
		}
		breaks = append(breaks, r)
	}
	return newShape(breaks, next, leaf), rows.Err()
}

// newShape returns the tree of a session that has the entries before next, at least
// one. It does not know the last entry of each break yet.
func newShape(breaks []run, next, leaf int64) *shape {
	sh := &shape{leaf: leaf, runs: []run{{first: 0, last: next - 1, parent: -1}}}
	for _, r := range breaks {
		r.last = next - 1
		if r.first == 0 {
			sh.runs[0] = r
			continue
		}
		sh.runs[len(sh.runs)-1].last = r.first - 1
		sh.runs = append(sh.runs, r)
	}
	sh.live = sh.pathOf(leaf)
	return sh
}

// isBreak reports whether an entry is a break.
func isBreak(n, parent int64, class entryClass) bool {
	return parent != n-1 || class != classEntry && class != classRemark && class != classStep
}

// runOf returns the index of the run that an entry is in.
func (sh *shape) runOf(n int64) int {
	return sort.Search(len(sh.runs), func(i int) bool { return sh.runs[i].first > n }) - 1
}

// pathOf returns the entries from one back to its root.
func (sh *shape) pathOf(n int64) []span {
	var path []span
	for n >= 0 && len(path) <= len(sh.runs) { // a tree has no circles; damage may
		r := sh.runs[sh.runOf(n)]
		path = append(path, span{r.first, n})
		n = r.parent
	}
	return path
}

// isLive reports whether an entry is on the path of the leaf.
func (sh *shape) isLive(n int64) bool {
	return slices.ContainsFunc(sh.live, func(s span) bool { return s.has(n) })
}

// leafOf returns the end of the branch that an entry is on. If it is on several, the live
// branch counts, or else the one that was appended to last.
func (sh *shape) leafOf(n int64) int64 {
	if sh.isLive(n) {
		return sh.leaf
	}
	at := sh.runOf(n)
	below := []span{{n, sh.runs[at].last}}
	for _, r := range sh.runs[at+1:] {
		if !r.counts() && r.first == r.last || r.class == classNoID {
			continue
		}
		if slices.ContainsFunc(below, func(s span) bool { return s.has(r.parent) }) {
			below = append(below, span{r.first, r.last})
		}
	}
	return below[len(below)-1].last
}

// leaves counts the ends of branches, as Session.Leaves of package session does: the entries after which
// the conversation does not continue. remarks are the numbers of the entries that are
// not part of it, in order.
func (sh *shape) leaves(remarks []int64) int64 {
	ends := make([]int64, len(sh.runs))
	for i, r := range sh.runs {
		ends[i] = r.end(remarks)
	}
	speaks := make([]bool, len(sh.runs)) // the run, or one below it, is part of the conversation
	goesOn := make([]bool, len(sh.runs)) // the conversation continues below the run's end
	for i := range sh.runs {
		if ends[i] < 0 {
			continue
		}
		for at := i; !speaks[at]; {
			speaks[at] = true
			parent := sh.runs[at].parent
			if parent < 0 {
				break
			}
			at = sh.runOf(parent)
			goesOn[at] = goesOn[at] || parent >= ends[at]
		}
	}
	var leaves int64
	for i := range sh.runs {
		if ends[i] >= 0 && !goesOn[i] {
			leaves++
		}
	}
	return leaves
}

// end returns the last entry of a run that is part of the conversation, or -1.
func (r run) end(remarks []int64) int64 {
	for n := r.last; n >= r.first; n-- {
		_, isRemark := slices.BinarySearch(remarks, n)
		if !isRemark && (n > r.first || r.counts()) {
			return n
		}
	}
	return -1
}

// counts reports whether the first entry of a run is part of the conversation.
func (r run) counts() bool {
	return r.class != classLeaf && r.class != classNoID && r.class != classRemark
}

// updateTotals updates the values that depend on the whole tree: the number of branches, and the
// size of the context at the leaf.
func (w *writer) updateTotals(s *state) error {
	switch {
	case s.breaks == 0:
		return nil // insert has done it
	case s.fresh != nil && s.next > 0:
		s.fresh.updateTotals(s)
		return nil
	}
	sh, err := loadShape(w.ctx, w, s.id, s.next, s.leaf)
	if err != nil {
		return err
	}
	rows, err := w.QueryContext(w.ctx, `SELECT n FROM entries WHERE session = ? AND class = 5 ORDER BY n`, s.id)
	if err != nil {
		return err
	}
	remarks, err := scanColumn[int64](rows)
	if err != nil {
		return err
	}
	s.branches, s.context = sh.leaves(remarks), 0
	for _, part := range sh.live {
		found, err := w.find([]any{&s.context}, `SELECT context FROM entries WHERE session = ? AND n BETWEEN ? AND ?
			AND context IS NOT NULL ORDER BY n DESC LIMIT 1`, s.id, part.first, part.last)
		if err != nil || found {
			return err
		}
	}
	return nil
}

// fresh is what updateTotals needs to know about a session whose entries were all inserted just
// now. Reading it from the table would force out the waiting rows for each small session.
type fresh struct {
	breaks   []run
	remarks  []int64
	contexts []contextAt
}

// contextAt is the size of the context at an entry.
type contextAt struct{ n, context int64 }

// note records an inserted entry.
func (f *fresh) note(n, parent int64, rec *record) {
	if isBreak(n, parent, rec.class) {
		f.breaks = append(f.breaks, run{first: n, parent: parent, class: rec.class})
	}
	if rec.class == classRemark {
		f.remarks = append(f.remarks, n)
	}
	if c := rec.context(); c != nil {
		f.contexts = append(f.contexts, contextAt{n, *c})
	}
}

// updateTotals is writer.updateTotals without the table.
func (f *fresh) updateTotals(s *state) {
	sh := newShape(f.breaks, s.next, s.leaf)
	s.branches, s.context = sh.leaves(f.remarks), 0
	for _, part := range sh.live {
		after := sort.Search(len(f.contexts), func(i int) bool { return f.contexts[i].n > part.last })
		if after > 0 && f.contexts[after-1].n >= part.first {
			s.context = f.contexts[after-1].context
			return
		}
	}
}
