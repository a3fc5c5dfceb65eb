package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
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
	// Entries are the messages, branch summaries and merges of the path, in order.
	// If a compaction is in force that cuts the path before an entry, they are:
	//
	//   - the system messages before the cut,
	//   - the compaction (its summary),
	//   - if the first message after the cut does not begin a turn, the last one
	//     before the cut that does: it says what the turn is about. (Not if the
	//     compaction keeps nothing.)
	//   - everything from the cut on.
	//
	// That holds for all of the path, whatever earlier compactions said. Edits
	// apply to all of it. What a merge brings stands after the merge, unless it is
	// on the path anyway or an earlier merge has brought it.
	//
	// Tool calls and their results are paired: a call that was never answered has
	// a result that says so, with an id that begins with InterruptedPrefix.
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

	path   []*Entry // what was read of the path: see selection
	from   int      // where in path the first entry is that the compaction keeps
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
	c, err := s.sharedContext(s.context(), o, fingerprints)
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
	// before is what still matters of the path before entries, in order: system
	// messages, the last message that began a turn, and edits in force.
	before []*Entry
	// entries are on the path, from the first that counts to the leaf. The
	// compaction in force is among them, at its place.
	entries    []*Entry
	older      ancestors // the path before entries, as far as it is in memory
	compaction *Entry    // in force, or nil
	reverted   map[string]bool
	state      State               // before the first of entries: see findState
	picked     map[string][]*Entry // what merges bring, by the merge's id
	problems   []Problem
	version    treeVersion
	unpaired   bool // see ContextOptions
}

// selectPath finds and reads the entries that decide the context at a leaf.
func (s *Session) selectPath(ctx context.Context, leaf string) (*selection, error) {
	way, version, err := s.startAt(ctx, &leaf)
	if err != nil {
		return nil, err
	}
	sel := &selection{leaf: leaf, version: version, reverted: make(map[string]bool), older: way}
	path, err := s.findStart(ctx, sel)
	if err != nil {
		return nil, err
	}
	if sel.entries, err = s.readPath(ctx, sel, path); err != nil {
		return nil, err
	}
	if err := s.readPicked(ctx, sel); err != nil {
		return nil, err
	}
	err = s.readBefore(ctx, sel)
	if errors.Is(err, errNeedAll) {
		if err := s.withWhole(func(*tree) error { return nil }); err != nil {
			return nil, err
		}
		return s.selectPath(ctx, leaf)
	}
	return sel, err
}

// ancestors goes from an entry towards its root, which may be far.
type ancestors struct {
	nodes []node // of the tree as it was: those that are there do not change
	at    int32  // the next, or none
	gone  int    // how many there were before that
}

// next returns the next node, or nil after the root.
func (a *ancestors) next() *node {
	if a.at == none {
		return nil
	}
	n := &a.nodes[a.at]
	a.at = n.parent
	a.gone++
	return n
}

// startAt returns the way from a leaf to its root, or as far as the context needs,
// and which tree it is in. An empty leaf becomes the session's.
func (s *Session) startAt(ctx context.Context, leaf *string) (ancestors, treeVersion, error) {
	s.mu.RLock()
	if !s.closed && s.tree.isWhole() {
		defer s.mu.RUnlock()
		return s.walk(leaf)
	}
	s.mu.RUnlock()
	// One lock for both steps: otherwise the leaf could move out of the part of
	// the log that was read.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.loadContext(ctx, *leaf); err != nil {
		return ancestors{}, treeVersion{}, err
	}
	return s.walk(leaf)
}

// walk returns the way from a leaf to its root, as far as it is in memory. It is
// called with mu held.
func (s *Session) walk(leaf *string) (ancestors, treeVersion, error) {
	if *leaf == "" {
		*leaf = s.tree.leaf
	}
	nodes := s.tree.nodes[:len(s.tree.nodes):len(s.tree.nodes)]
	at, ok := int32(len(nodes))-1, true
	if *leaf == "" {
		at = none
	} else if at == none || nodes[at].id != *leaf { // the last is nearly always the leaf: then nobody needs the index
		at, ok = s.tree.at(*leaf)
	}
	if !ok {
		return ancestors{}, treeVersion{}, s.errNoEntry("context", *leaf)
	}
	return ancestors{nodes: nodes, at: at}, treeVersion{s.tree, s.tree.mended}, nil
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
	if s.tree.extent != extentEnd {
		return s.wholeFor(ctx, leaf)
	}
	t, err := s.loadDecoded(ctx)
	if err == nil && t.leaf == s.tree.leaf {
		t.extent, t.deepFrom = max(t.extent, extentContext), t.leaf
		s.tree = t
		return s.wholeFor(ctx, leaf)
	}
	if s.detail = detailRoles; errors.Is(err, errNeedState) {
		s.detail = detailModels
	}
	return s.whole(ctx)
}

// loadDecoded reads the log backwards as far as the context needs, and decodes the
// lines of the path on the way: they will be asked for next.
func (s *Session) loadDecoded(ctx context.Context) (*tree, error) {
	var lines lineDecoder
	t, err := loadTail(ctx, s.log, s.tree.end, tailContext, func(line store.Line) { lines.add(line.Pos, line.Data) })
	batches := lines.finish()
	n := 0
	for _, b := range batches {
		n += len(b.lines)
	}
	path := make([]cachedAt, 0, n)
	for _, b := range slices.Backward(batches) {
		for _, line := range slices.Backward(b.lines) {
			if line.entry != nil {
				path = append(path, line)
			}
		}
	}
	s.cache.replacePath(path)
	return t, err
}

// wholeFor reads everything if the tree does not suffice for a leaf: it does
// for the one that it was read for and for what was appended since, unless a
// branch was taken that leads out of it.
func (s *Session) wholeFor(ctx context.Context, leaf string) error {
	if s.tree.isWhole() || (leaf == "" || leaf == s.tree.leaf) && s.tree.deepLeaf() {
		return nil
	}
	return s.whole(ctx)
}

// findStart goes from the leaf towards the root until everything that counts
// has been met. It returns the nodes of the path that were met, root first, and
// sets the compaction in force. A compaction whose first kept entry is not on the
// path would hide everything: it is reported, and its cut does not count.
func (s *Session) findStart(ctx context.Context, sel *selection) ([]node, error) {
	var met []int32
	firstKept, kept := "", lookup{}
	for at := sel.older.at; ; at = sel.older.at {
		n := sel.older.next()
		if n == nil {
			break
		}
		met = append(met, at)
		if sel.compaction != nil && n.id == firstKept {
			if err := s.noteRevert(ctx, sel, n); err != nil {
				return nil, err
			}
			break
		}
		if n.kind != kindCompaction && n.kind != kindRevert || sel.reverted[n.id] {
			continue
		}
		e, err := s.entryAt(ctx, n)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			return nil, err // a disk that fails for a moment must not change the context
		}
		if err != nil {
			sel.problems = append(sel.problems, Problem{Kind: ProblemDamaged, EntryID: n.id, Pos: n.pos, Detail: err.Error(), Err: err})
			continue
		}
		switch {
		case e.Revert != nil:
			sel.reverted[e.Revert.TargetID] = true
		case sel.compaction == nil && !e.keepsNothing() && !kept.has(sel.older, e.Compaction.FirstKeptEntryID):
			sel.problems = append(sel.problems, Problem{
				Kind: ProblemFirstKept, EntryID: e.ID, Pos: n.pos,
				Detail: fmt.Sprintf("it keeps from %q on, which is not on its path; nothing is left out because of it", e.Compaction.FirstKeptEntryID),
			})
		case sel.compaction == nil:
			sel.compaction, firstKept = e, e.Compaction.FirstKeptEntryID
		}
		if sel.compaction != nil && sel.compaction.keepsNothing() {
			break
		}
	}
	path := make([]node, len(met))
	for i, at := range met {
		path[len(met)-1-i] = sel.older.nodes[at]
	}
	return path, nil
}

// noteRevert takes note of the first kept entry if it is a revert: of what stands
// before it, edits still count.
func (s *Session) noteRevert(ctx context.Context, sel *selection, n *node) error {
	if n.kind != kindRevert || sel.reverted[n.id] {
		return nil
	}
	e, err := s.entryAt(ctx, n)
	if errors.Is(err, ErrCorrupt) {
		return nil // it is reported when the path is read
	}
	if err == nil {
		sel.reverted[e.Revert.TargetID] = true
	}
	return err
}

// lookup finds nodes of a path by their ids.
type lookup struct {
	gone map[string]int // how many nodes there are before each
}

// has reports whether one of the ancestors has an id. One look goes along the
// path; if it was in vain, others may follow, and they get a table.
func (l *lookup) has(older ancestors, id string) bool {
	if l.gone != nil {
		gone, ok := l.gone[id]
		return ok && gone >= older.gone
	}
	way := older
	for n := way.next(); n != nil; n = way.next() {
		if n.id == id {
			return true
		}
	}
	l.gone = make(map[string]int)
	for n := older.next(); n != nil; n = older.next() {
		l.gone[n.id] = older.gone - 1
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
			sel.problems = append(sel.problems, Problem{Kind: ProblemDamaged, EntryID: path[i].id, Pos: path[i].pos, Detail: "an entry of the path cannot be read"})
			continue
		}
		entries = append(entries, e)
	}
	return entries, nil
}
