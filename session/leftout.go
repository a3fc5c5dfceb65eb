package session

import "slices"

// LeftOut is a part of a path that the context lacks or has in another form, and why.
type LeftOut struct {
	Reason LeftOutReason `json:"reason"`
	// EntryID is the compaction that replaces entries, the message that was edited,
	// or the entry that has a fault.
	EntryID string `json:"entry_id,omitempty"`
	// Count is how many entries it is; 0 if it is only the one that is named.
	Count int `json:"count,omitempty"`
	// Detail says more about a fault.
	Detail string `json:"detail,omitempty"`
}

// LeftOutReason says why something is not in the context. For faults it is the kind
// of the Problem.
type LeftOutReason string

const (
	// LeftOutSummarised: the summary in force replaces it.
	LeftOutSummarised LeftOutReason = "replaced by the summary"
	// LeftOutSuperseded: it is a compaction, and a later one is in force.
	LeftOutSuperseded LeftOutReason = "replaced by a later summary"
	// LeftOutTakenBack: it is a compaction or a merge that was reverted.
	LeftOutTakenBack LeftOutReason = "taken back"
	// LeftOutReplaced: an edit gave it another content.
	LeftOutReplaced LeftOutReason = "replaced by an edit"
	// LeftOutCleared: an edit took its content away.
	LeftOutCleared LeftOutReason = "cleared by an edit"
	// LeftOutNeverSent: no model is sent entries of that type, or it says nothing.
	LeftOutNeverSent LeftOutReason = "never sent"
)

// leftOut finds what Context.LeftOut says.
func (s *Session) leftOut(c *Context) ([]LeftOut, error) {
	if c.Leaf == "" {
		return nil, nil
	}
	path, err := s.outlinePath(c.Leaf)
	if err != nil {
		return nil, err
	}
	if err := s.readActs(c, path); err != nil {
		return nil, err
	}
	o := overview{cut: cutIn(path, c.Compaction), reverted: RevertedIn(path)}
	o.count(c, path)
	var left []LeftOut
	add := func(reason LeftOutReason, id string, n int) {
		if n > 0 {
			left = append(left, LeftOut{Reason: reason, EntryID: id, Count: n})
		}
	}
	add(LeftOutSummarised, c.Compaction, o.summarised)
	add(LeftOutSuperseded, c.Compaction, o.superseded)
	add(LeftOutTakenBack, "", o.takenBack)
	left = append(left, editedIn(c, path)...)
	add(LeftOutNeverSent, "", o.neverSent)
	for _, p := range c.Problems {
		left = append(left, LeftOut{Reason: LeftOutReason(p.Kind), EntryID: p.EntryID, Detail: p.Detail})
	}
	return left, nil
}

// outlinePath returns the entries from the root to one without reading them: each has only its id
// and its type.
func (s *Session) outlinePath(id string) ([]Entry, error) {
	nodes, err := s.pathTo(id)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(nodes))
	for i := range nodes {
		entries[len(nodes)-1-i] = Entry{ID: nodes[i].id, Type: nodes[i].kind.entryType()}
	}
	return entries, nil
}

// replacedBy returns how many entries of the path a compaction at the end of a selection replaces,
// as LeftOut counts them.
func (sel *selection) replacedBy(c *Context) int {
	path := make([]Entry, 0, len(sel.before)+len(sel.entries))
	for _, e := range sel.path() {
		path = append(path, *e)
	}
	o := overview{cut: len(sel.before), reverted: sel.reverted}
	o.count(c, path)
	return o.summarised
}

// readActs reads those entries of an outlined path that say what counts: the
// compaction in force, the edits, and all reverts.
func (s *Session) readActs(c *Context, path []Entry) error {
	wanted := map[string]bool{c.Compaction: c.Compaction != ""}
	for _, edit := range c.Edited {
		wanted[edit] = true
	}
	var ids []string
	var places []int
	for i := range path {
		if wanted[path[i].ID] || path[i].Type == TypeRevert {
			ids, places = append(ids, path[i].ID), append(places, i)
		}
	}
	entries, err := s.Peek(ids...)
	if err != nil {
		return err
	}
	for i, at := range places {
		path[at] = entries[i]
	}
	return nil
}

// cutIn returns the index of the first entry of a path that a compaction keeps, or 0.
func cutIn(path []Entry, compaction string) int {
	at := slices.IndexFunc(path, func(e Entry) bool { return e.Compaction != nil && e.ID == compaction })
	if at < 0 || path[at].keepsNothing() {
		return max(at, 0)
	}
	first := path[at].Compaction.FirstKeptEntryID
	return max(slices.IndexFunc(path, func(e Entry) bool { return e.ID == first }), 0)
}

// overview counts what of a path is not in its context.
type overview struct {
	cut      int // how many entries come before those that the compaction in force keeps
	reverted map[string]bool

	summarised, superseded, takenBack, neverSent int
}

func (o *overview) count(c *Context, path []Entry) {
	told := make(map[string]bool, len(c.Entries)) // sent, or named one by one
	for i := range c.Entries {
		told[c.Entries[i].ID] = true
	}
	for id := range c.Edited {
		told[id] = true
	}
	for _, p := range c.Problems {
		told[p.EntryID] = true
	}
	for i := range path {
		switch e := &path[i]; {
		case told[e.ID]:
		case !e.Type.IsSaid():
			o.neverSent++
		case o.reverted[e.ID] && e.Type != TypeMessage:
			o.takenBack++
		case i < o.cut:
			o.summarised++
		case e.Type == TypeCompaction:
			o.superseded++
		default:
			o.neverSent++
		}
	}
}

// editedIn names the edited messages of the context in the order of the path.
func editedIn(c *Context, path []Entry) []LeftOut {
	if len(c.Edited) == 0 {
		return nil
	}
	clears := make(map[string]bool)
	for i := range path {
		if edit := path[i].ContextEdit; edit != nil && edit.Replacement == nil {
			clears[path[i].ID] = true
		}
	}
	var left []LeftOut
	for i := range path {
		switch edit := c.Edited[path[i].ID]; {
		case edit == "":
		case clears[edit]:
			left = append(left, LeftOut{Reason: LeftOutCleared, EntryID: path[i].ID})
		default:
			left = append(left, LeftOut{Reason: LeftOutReplaced, EntryID: path[i].ID})
		}
	}
	return left
}
