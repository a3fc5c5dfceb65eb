package session

import "slices"

// reverts are the reverted entries of a path. It is fed the reverts of the path from the leaf
// to the root, because a revert counts unless a later one takes it back:
//
//	edit E ── revert R1 of E ── revert R2 of R1     R2 counts, so R1 does not, so E does
//
// This is the one place that says so. (Two files count reverts where a path grows and
// shrinks, and cannot walk it: check_paths.go and reports.go.)
type reverts map[string]bool

// add adds the revert of an id.
func (r reverts) add(id, target string) {
	if !r[id] {
		r[target] = true
	}
}

// RevertedIn returns the targets of the reverts on a path that count: those that were not
// reverted themselves. Only the reverts have to be given, in the order of the path.
func RevertedIn(path []Entry) map[string]bool {
	r := make(reverts)
	for _, e := range slices.Backward(path) {
		if e.Revert != nil {
			r.add(e.ID, e.Revert.TargetID)
		}
	}
	return r
}
