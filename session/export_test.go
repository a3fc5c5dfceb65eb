package session

import "slices"

// Points returns the cuts that are legal now, in ascending order.
func (c *Cuts) Points() []Cut { return slices.Clone(c.legal()) }

// CheckCut returns nil if the conversation may be cut before the entry with an id, or else a
// *CutError that says why not.
func CheckCut(entries []Entry, firstKept string) error {
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == firstKept })
	if at < 0 {
		return &CutError{firstKept, "it is not on the path"}
	}
	return cutsOf(entries).check(entries, at)
}
