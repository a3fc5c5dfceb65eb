package session

import (
	"cmp"
	"slices"
	"time"
)

// Sessions that continue each other are one conversation. This file is the only place that says
// which sessions follow each other: package conversation, the index and the commands all use it.
//
// An example. Session s1 continues s0, s2 continued s1 and is lost, and s3 continued s2.
// Another program made x and says that it continues s0, too. Each session says, as a Link:
//
//	     Continues  ContinuedTo  Original (on the marker)
//	s0              s1
//	s1   s0         s2           s0
//	s3   s2                      s0
//	x    s0                      s0
//
// JoinLinks makes two conversations of them. The log of s0 names s1, so x does not follow
// it. s2 is missing; s1 names it and s3 continues it, so the gap is between those two:
//
//	Links s0 s1 s3, Missing s2
//	Links x

// The type of a message with the instructions of a conversation: a member of its metadata.
const (
	MetaType   = "type"
	PromptType = "system_prompt"
)

// IsPrompt reports whether an entry has the instructions of a conversation: see
// PromptType.
func IsPrompt(e *Entry) bool {
	return e.Message != nil && e.Message.Role == RoleSystem && e.Message.Metadata[MetaType] == PromptType
}

// Link is the position of a session in a chain, according to itself.
type Link struct {
	ID          string
	Continues   string // the session that it continues, or ""
	ContinuedTo string // the session that its log names as its continuation, or ""
	// Replaced are the sessions that its log named before: they were lost when the
	// conversation was continued. Those that came back are between it and ContinuedTo.
	Replaced []string
	Original string // the first session of the chain, if its marker names it, or ""
	Index    int    // how many continuations come before it, according to its header
	Created  time.Time
}

// Linked are the sessions that form one conversation.
type Linked struct {
	ID      string   // that of the original session, which may be missing
	Links   []string // the sessions that are there, the first first
	Missing []string // sessions that others name and that are not there
}

// JoinLinks says which sessions are one conversation, in which order, and under which
// id. Everything that reads conversations uses it: FindChain, the index, and what builds
// on them. All sessions that the given ones name must be among them, or are missing.
//
// A session follows the one that it continues, if that one's log names it. Of several sessions
// that claim to continue one, only the named one does; those that the log named earlier come
// before it. A missing session has no log to ask: of several that claim to continue it, the
// earliest does. The parts before and after a gap belong together if a session before it names
// the missing one, or if the marker after it names the original. A missing session, too, is in
// one conversation: if several name it, in that of the earliest.
func JoinLinks(links []Link) []Linked {
	j := joiner{
		byID: make(map[string]*Link), after: make(map[string]string), returned: make(map[string][]*Link), namedBy: make(map[string]string),
		byRoot: make(map[string]*joined), byLink: make(map[string]*joined),
	}
	sorted := slices.Clone(links)
	slices.SortFunc(sorted, func(a, b Link) int { return cmp.Or(earlier(&a, &b), cmp.Compare(a.ID, b.ID)) })
	for i := range sorted {
		j.byID[sorted[i].ID] = &sorted[i]
	}
	for i := range sorted {
		j.follow(&sorted[i])
	}
	for _, head := range j.heads(sorted) {
		j.addRun(head)
	}
	for _, c := range j.chains {
		j.finish(c)
	}
	result := make([]Linked, 0, len(j.chains))
	for _, c := range j.chains {
		result = append(result, c.Linked)
	}
	return result
}

// joiner puts links together.
type joiner struct {
	byID     map[string]*Link
	after    map[string]string  // which link follows a session, missing ones included
	returned map[string][]*Link // which links were lost and came back after a link
	namedBy  map[string]string  // which link names a missing session as its continuation
	chains   []*joined
	byRoot   map[string]*joined
	byLink   map[string]*joined
}

// run is links that follow one another without a gap.
type run []*Link

type joined struct {
	Linked
	runs []run
}

// follow notes which session a link follows.
func (j *joiner) follow(l *Link) {
	if _, there := j.byID[l.ContinuedTo]; !there && l.ContinuedTo != "" && j.namedBy[l.ContinuedTo] == "" {
		j.namedBy[l.ContinuedTo] = l.ID
	}
	if l.Continues == "" || l.Continues == l.ID {
		return
	}
	before, there := j.byID[l.Continues]
	switch {
	case !there || before.ContinuedTo == l.ID:
	case slices.Contains(before.Replaced, l.ID):
		j.returned[l.Continues] = append(j.returned[l.Continues], l)
		return
	default:
		return // that one does not know of it
	}
	if j.after[l.Continues] == "" {
		j.after[l.Continues] = l.ID
	}
}

// follows returns the session that a link follows, or "".
func (j *joiner) follows(l *Link) string {
	if l.Continues != "" && (j.after[l.Continues] == l.ID || slices.Contains(j.returned[l.Continues], l)) {
		return l.Continues
	}
	return ""
}

// runFrom returns a link and those that follow it without a gap, except for those
// that were reached before.
func (j *joiner) runFrom(l *Link, reached map[string]bool) (r run) {
	for l != nil && !reached[l.ID] {
		reached[l.ID] = true
		r = append(r, l)
		back := j.returned[l.ID]
		slices.SortFunc(back, func(a, b *Link) int { // as the log named them
			return cmp.Compare(slices.Index(l.Replaced, a.ID), slices.Index(l.Replaced, b.ID))
		})
		for _, b := range back {
			r = append(r, j.runFrom(b, reached)...)
		}
		l = j.byID[j.after[l.ID]]
	}
	return r
}

// heads returns the links with which a run begins. Of links that name each other
// in a circle it is the earliest.
func (j *joiner) heads(sorted []Link) []*Link {
	var heads []*Link
	reached := make(map[string]bool)
	begin := func(l *Link) {
		heads = append(heads, l)
		j.runFrom(l, reached)
	}
	for i := range sorted {
		if before := j.follows(&sorted[i]); j.byID[before] == nil {
			begin(&sorted[i])
		}
	}
	for i := range sorted {
		if !reached[sorted[i].ID] {
			begin(&sorted[i])
		}
	}
	return heads
}

// addRun puts the run that begins with a link into its chain.
func (j *joiner) addRun(head *Link) {
	r, root := j.runFrom(head, make(map[string]bool)), j.rootOf(head)
	c := j.byRoot[root]
	if c == nil {
		c = &joined{Linked: Linked{ID: root}}
		j.byRoot[root] = c
		j.chains = append(j.chains, c)
	}
	c.runs = append(c.runs, r)
	for _, l := range r {
		j.byLink[l.ID] = c
	}
}

// rootOf returns the id of the chain that a run's first link belongs to.
func (j *joiner) rootOf(head *Link) string {
	seen := make(map[string]bool)
	for at := head; ; {
		seen[at.ID] = true
		lost := j.follows(at)
		if lost == "" || j.byID[lost] != nil { // the latter is a circle
			return at.ID
		}
		next := j.byID[j.namedBy[lost]]
		if original := j.byID[at.Original]; next == nil && original != nil && j.isBroken(original) {
			next = original
		}
		if next == nil || seen[next.ID] {
			if at.Original != "" && j.byID[at.Original] == nil {
				return at.Original
			}
			return lost
		}
		if at = j.headOf(next); seen[at.ID] {
			return at.ID
		}
	}
}

// headOf returns the first link of the run that a link is in.
func (j *joiner) headOf(l *Link) *Link {
	seen := make(map[string]bool)
	for !seen[l.ID] {
		seen[l.ID] = true
		before := j.byID[j.follows(l)]
		if before == nil {
			return l
		}
		l = before
	}
	return l
}

// isBroken reports whether the run that a link begins ends at a missing session.
func (j *joiner) isBroken(l *Link) bool {
	seen := make(map[string]bool)
	for next := l; next != nil && !seen[next.ID]; next = j.byID[j.after[next.ID]] {
		seen[next.ID] = true
		if next.ContinuedTo != "" && j.byID[next.ContinuedTo] == nil {
			return true
		}
	}
	return false
}

// finish puts a chain's runs in order and lists the sessions that are missing between them.
func (j *joiner) finish(c *joined) {
	slices.SortStableFunc(c.runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(btoi(a[0].ID != c.ID), btoi(b[0].ID != c.ID)), cmp.Compare(a[0].Index, b[0].Index),
			earlier(a[0], b[0]), cmp.Compare(a[0].ID, b[0].ID))
	})
	miss := func(id string) {
		if id != "" && j.byID[id] == nil && j.isIn(c, id) && !slices.Contains(c.Missing, id) {
			c.Missing = append(c.Missing, id)
		}
	}
	miss(c.ID)
	for _, r := range c.runs {
		miss(j.follows(r[0]))
		for _, l := range r {
			c.Links = append(c.Links, l.ID)
		}
		for _, l := range r {
			miss(l.ContinuedTo)
		}
	}
}

// isIn reports whether a missing session that a link of a chain names is in that chain,
// and not in another whose links name it, too.
func (j *joiner) isIn(c *joined, missing string) bool {
	if other := j.byRoot[missing]; other != nil {
		return other == c
	}
	by, named := j.namedBy[missing]
	return !named || j.byLink[by] == c
}

// earlier compares when sessions were created, to the millisecond, as the index knows it.
func earlier(a, b *Link) int { return cmp.Compare(a.Created.UnixMilli(), b.Created.UnixMilli()) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
