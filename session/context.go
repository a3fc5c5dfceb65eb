package session

import (
	"context"
	"fmt"
	"slices"
)

// ContextOptions says which context to build. The zero value is the context at
// the session's leaf.
type ContextOptions struct {
	// Leaf is the entry at which the path ends. Default: the session's leaf.
	Leaf string
	// Unpaired leaves tool calls and results as they stand on the path: none is
	// moved, dropped or made up. It is for showing a conversation, not for
	// sending it.
	Unpaired bool
	// Shared saves the copy, which is most of what a long context costs when it is
	// asked for again. The entries then share their memory with the session and
	// with other contexts: whoever asks for it may keep them, but must not change
	// them or anything that they point to.
	Shared bool
}

// Context is what a model would be sent: the part of a path that counts.
type Context struct {
	// Leaf is the entry at which the path ends.
	Leaf string
	// Entries are, in order: the compaction in force (its summary), if any; then
	// messages, branch summaries and merges. Tool calls and their results are
	// paired: a call that was never answered has a result that says so, with an
	// id that begins with InterruptedPrefix.
	Entries []Entry
	// Fingerprints has one for each entry: it stands for everything up to and
	// including that entry. Two contexts share a prefix as far as their
	// fingerprints are equal: see Diff.
	Fingerprints []Fingerprint
	// Provider, Model and ThinkingLevel are in force at the leaf.
	Provider, Model, ThinkingLevel string
	// Tokens is the size of the context as far as it was recorded, and
	// Uncounted how many of the entries have no count. (Package window counts.)
	Tokens, Uncounted int
	// Compaction is the id of the compaction in force, or "".
	Compaction string
	// Edited maps the ids of entries whose content was changed by a context
	// edit to the id of that edit.
	Edited map[string]string
	// Problems are the faults that were met and dealt with.
	Problems []Problem

	path   []*Entry // from the first entry that counts to the leaf
	origin []int    // for each of Entries where it is in path, or notOnPath
}

// notOnPath is the origin of an entry that is not in its place on the path: it
// was merged from another branch, moved, or made up.
const notOnPath = -1

// InterruptedPrefix begins the id of a result that stands in for one that
// never came. The call's id follows.
const InterruptedPrefix = "interrupted:"

// The text that stands in for content that is not there.
const (
	interruptedText = "[interrupted: the tool did not return a result]"
	clearedText     = "[cleared]"
)

// GetContext returns the entries that a model would be sent, from the summary in
// force to the leaf: the Entries of Context.
func (s *Session) GetContext() ([]Entry, error) {
	c, err := s.buildContext(ContextOptions{}, false)
	if err != nil {
		return nil, err
	}
	return c.Entries, nil
}

// Context returns what a model would be sent, with all that is known about it.
func (s *Session) Context(o ContextOptions) (*Context, error) {
	return s.buildContext(o, true)
}

func (s *Session) buildContext(o ContextOptions, fingerprints bool) (*Context, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	c, err := s.sharedContext(context.Background(), o, fingerprints)
	switch {
	case err != nil:
		return nil, err
	case o.Shared:
		return c.view(), nil
	}
	return c.copy(), nil
}

// selection is the part of a path that decides the context, decoded.
type selection struct {
	leaf string
	// entries are on the path, from the first that counts to the leaf. The
	// compaction in force is among them, at its place.
	entries    []*Entry
	compaction *Entry // in force, or nil
	reverted   map[string]bool
	state      State // before the first of entries
	picked     map[string]*Entry
	olderEdits []*Entry // before entries; only if there are picked ones
	problems   []Problem
	unpaired   bool // see ContextOptions
}

// selectPath finds and reads the entries that decide the context at a leaf.
func (s *Session) selectPath(ctx context.Context, leaf string) (*selection, error) {
	path, err := s.pathNodes(ctx, &leaf)
	if err != nil {
		return nil, err
	}
	sel := &selection{leaf: leaf, reverted: make(map[string]bool), picked: make(map[string]*Entry)}
	from, err := s.findStart(ctx, sel, path)
	if err != nil {
		return nil, err
	}
	slices.Reverse(path[:from]) // root first, as the entries are read
	if sel.entries, err = s.readPath(ctx, sel, path[:from]); err != nil {
		return nil, err
	}
	if err := s.findState(ctx, sel, path[from:]); err != nil {
		return nil, err
	}
	if err := s.readPicked(ctx, sel); err != nil || len(sel.picked) == 0 {
		return sel, err
	}
	return sel, s.readOlderEdits(ctx, sel, path[from:])
}

// readOlderEdits reads the edits before the first entry that counts: a merge can
// bring back what they changed. before is that part of the path, the nearest
// first.
func (s *Session) readOlderEdits(ctx context.Context, sel *selection, before []node) error {
	for e, err := range s.nearestFirst(ctx, before, kindContextEdit, kindRevert) {
		switch {
		case err != nil:
			return err
		case sel.reverted[e.ID]:
		case e.Revert != nil:
			sel.reverted[e.Revert.TargetID] = true
		default:
			sel.olderEdits = append(sel.olderEdits, e)
		}
	}
	slices.Reverse(sel.olderEdits)
	return nil
}

// pathNodes returns the path from a leaf back to its root, or as far as the
// context needs. An empty leaf becomes the session's.
func (s *Session) pathNodes(ctx context.Context, leaf *string) ([]node, error) {
	s.mu.RLock()
	if !s.closed && s.tree.complete {
		defer s.mu.RUnlock()
		return s.walk(leaf)
	}
	s.mu.RUnlock()
	// One lock for both steps: otherwise the leaf could move out of the part of
	// the log that was read.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.loadContext(ctx, *leaf); err != nil {
		return nil, err
	}
	return s.walk(leaf)
}

// walk returns the path from a leaf as far as it is in memory. It is called with
// mu held.
func (s *Session) walk(leaf *string) ([]node, error) {
	if *leaf == "" {
		*leaf = s.tree.leaf
	}
	path, ok := s.tree.path(*leaf)
	if !ok {
		return nil, s.errNoEntry("context", *leaf)
	}
	nodes := make([]node, len(path))
	for i, at := range path {
		nodes[i] = s.tree.nodes[at]
	}
	return nodes, nil
}

func (s *Session) errNoEntry(op, id string) error {
	return &Error{Op: op, Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry %q", id)}
}

// loadContext reads as much of the log as the context at a leaf needs. It is
// called with mu held for writing.
func (s *Session) loadContext(ctx context.Context, leaf string) error {
	if s.closed {
		return s.errClosed("context")
	}
	if s.tree.complete || s.tree.deep {
		return s.wholeFor(ctx, leaf)
	}
	t, err := loadTail(ctx, s.log, s.tree.end, tailContext)
	if err == nil && t.leaf == s.tree.leaf {
		t.deep, t.deepFrom = true, t.leaf
		s.tree = t
		return s.wholeFor(ctx, leaf)
	}
	return s.whole(ctx)
}

// wholeFor reads everything if the tree does not suffice for a leaf: it does
// for the one that it was read for and for what was appended since, unless a
// branch was taken that leads out of it.
func (s *Session) wholeFor(ctx context.Context, leaf string) error {
	if s.tree.complete || (leaf == "" || leaf == s.tree.leaf) && s.tree.deepLeaf() {
		return nil
	}
	return s.whole(ctx)
}

// findStart goes from the leaf towards the root until everything that counts
// has been met. It returns how many nodes of the path that is, and sets the
// compaction in force. A compaction whose first kept entry is not on the path
// would hide everything: it is reported, and its cut does not count.
func (s *Session) findStart(ctx context.Context, sel *selection, path []node) (int, error) {
	firstKept, kept := "", lookup{path: path}
	for i := range path {
		n := &path[i]
		if sel.compaction != nil && n.id == firstKept {
			return i + 1, nil
		}
		if n.kind != kindCompaction && n.kind != kindRevert || sel.reverted[n.id] {
			continue
		}
		e, err := s.entryAt(ctx, n)
		if err != nil {
			sel.problems = append(sel.problems, Problem{ProblemDamaged, n.id, n.pos, err.Error()})
			continue
		}
		switch {
		case e.Revert != nil:
			sel.reverted[e.Revert.TargetID] = true
		case sel.compaction == nil:
			firstKept = e.Compaction.FirstKeptEntryID
			if firstKept != "" && firstKept != e.ID && !kept.hasAfter(i, firstKept) {
				sel.problems = append(sel.problems, Problem{
					ProblemFirstKept, e.ID, n.pos,
					fmt.Sprintf("it keeps from %q on, which is not on its path; nothing is left out because of it", firstKept),
				})
				continue
			}
			sel.compaction = e
			if firstKept == "" || firstKept == e.ID {
				return i + 1, nil
			}
		}
	}
	return len(path), nil
}

// lookup finds nodes of a path by their ids.
type lookup struct {
	path []node
	at   map[string]int
}

// hasAfter reports whether a node after an index has an id. One look goes along
// the path; if it was in vain, others may follow, and they get a table.
func (l *lookup) hasAfter(i int, id string) bool {
	if l.at != nil {
		at, ok := l.at[id]
		return ok && at > i
	}
	if slices.ContainsFunc(l.path[i+1:], func(n node) bool { return n.id == id }) {
		return true
	}
	l.at = make(map[string]int, len(l.path))
	for at := range l.path {
		l.at[l.path[at].id] = at
	}
	return false
}

// readPath decodes the entries of the path. Those that turn out damaged are
// reported and left out.
func (s *Session) readPath(ctx context.Context, sel *selection, path []node) ([]*Entry, error) {
	all, err := s.pathAt(ctx, path)
	if err != nil {
		return nil, err
	}
	entries := all[:0]
	for i, e := range all {
		if e == nil {
			sel.problems = append(sel.problems, Problem{ProblemDamaged, path[i].id, path[i].pos, "an entry of the path cannot be read"})
			continue
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// findState finds what was in force before the first entry that counts, unless
// the compaction tells. before is the rest of the path, the nearest first.
func (s *Session) findState(ctx context.Context, sel *selection, before []node) error {
	if sel.compaction != nil && sel.compaction.Compaction.State != nil {
		sel.state = *sel.compaction.Compaction.State
		return nil
	}
	var older []*Entry // the nearest first
	model, level := false, false
	for e, err := range s.nearestFirst(ctx, before, kindMessage, kindModelChange, kindThinkingLevel) {
		if err != nil {
			return err
		}
		if model && level {
			break
		}
		var set State
		set.update(e)
		model = model || e.ModelChange != nil || set.Provider != ""
		level = level || e.ThinkingLevel != nil
		if set.Model != "" || e.ModelChange != nil || e.ThinkingLevel != nil {
			older = append(older, e)
		}
	}
	for _, e := range slices.Backward(older) {
		sel.state.update(e)
	}
	return nil
}

// update applies an entry to the state.
func (s *State) update(e *Entry) {
	switch {
	case e.ModelChange != nil:
		s.Provider, s.Model = e.ModelChange.Provider, e.ModelChange.ModelID
	case e.ThinkingLevel != nil:
		s.ThinkingLevel = e.ThinkingLevel.ThinkingLevel
	case e.Message != nil && e.Message.Role == RoleAssistant && e.Message.Model != "":
		s.Model = e.Message.Model
		if e.Message.Provider != "" {
			s.Provider = e.Message.Provider
		}
	}
}

// readPicked reads the entries that merges on the path bring along.
func (s *Session) readPicked(ctx context.Context, sel *selection) error {
	for _, e := range sel.entries {
		if e.Merge == nil {
			continue
		}
		for _, id := range e.Merge.EntryIDs {
			picked, err := s.readPickedEntry(ctx, id)
			if err != nil {
				sel.problems = append(sel.problems, pickedProblem(e.ID, err))
				continue
			}
			sel.picked[id] = picked
		}
	}
	return nil
}

func (s *Session) readPickedEntry(ctx context.Context, id string) (*Entry, error) {
	var n node
	err := s.withWhole(func(t *tree) error {
		at, ok := t.at(id)
		if !ok {
			return s.errNoEntry("merge", id)
		}
		n = t.nodes[at]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.entryAt(ctx, &n)
}

func pickedProblem(mergeID string, err error) Problem {
	return Problem{ProblemTarget, mergeID, 0, err.Error()}
}
