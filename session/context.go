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
	// Unpaired leaves tool calls and results where they are on the path: none is moved,
	// dropped or made up. It is for showing a conversation, not for sending it.
	Unpaired bool
	// Shared avoids the copy, which is most of what a long context costs when you ask for
	// it again. The entries then share memory with the session and with other contexts:
	// you may keep them, but you must not change them or anything they point to.
	Shared bool
	// LeftOut asks what part of the path is not in the context, and why: see Context.LeftOut.
	LeftOut bool
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
	// This holds for the whole path, whatever earlier compactions said. Edits apply to
	// all of it. What a merge brings comes after the merge, unless it is on the path
	// anyway or an earlier merge has picked it.
	//
	// Tool calls and their results are paired: a call that was never answered has
	// a result that says so, with an id that begins with InterruptedPrefix.
	Entries []Entry
	// Fingerprints has one per entry, which identifies everything up to and including
	// that entry. Two contexts share a prefix while their fingerprints are equal: see
	// Diff.
	Fingerprints []Fingerprint
	// Provider, Model and ThinkingLevel are in force at the leaf.
	Provider, Model, ThinkingLevel string
	// Tokens is the recorded size of the context; Uncounted is how many entries have no
	// count. (Package window counts.)
	Tokens, Uncounted int
	// Compaction is the id of the compaction in force, or "".
	Compaction string
	// Edited maps the ids of entries whose content was changed by a context
	// edit to the id of that edit.
	Edited map[string]string
	// Problems are the faults that were found and worked around.
	Problems []Problem
	// LeftOut is the part of the path that is not in the context, or is there in another form,
	// and why; nil unless ContextOptions asked for it. Every entry of the path is in the
	// context, or in one of the counts, or named; no entry is in two counts.
	LeftOut []LeftOut

	path   []*Entry // the part of the path that was read: see selection
	from   int      // the index in path of the first entry that the compaction keeps
	origin []int    // for each of Entries, its index in path, or notOnPath
}

// notOnPath is the origin of an entry that is not in its place on the path: it was merged
// from another branch, moved, or made up.
const notOnPath = -1

// InterruptedPrefix begins the id of a result that replaces one that never came. The
// call's id follows.
const InterruptedPrefix = "interrupted:"

// InterruptedText is the text of a result that replaces one that never came.
const InterruptedText = "[interrupted: the tool did not return a result]"

// clearedText replaces content that an edit took out.
const clearedText = "[cleared]"

// Context returns what to send to a model, with everything known about it.
func (s *Session) Context(o ContextOptions) (*Context, error) {
	return s.buildContext(o, true)
}

func (s *Session) buildContext(o ContextOptions, fingerprints bool) (*Context, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	shared, err := s.sharedContext(s.context(), o, fingerprints)
	if err != nil {
		return nil, err
	}
	take := shared.copy
	if o.Shared {
		take = shared.view
	}
	c := take()
	if o.LeftOut {
		c.LeftOut, err = s.leftOut(c)
	}
	return c, err
}

// selection is the part of a path that decides the context, decoded.
type selection struct {
	leaf string
	// before is what still counts of the path before entries, in order: system messages,
	// the last message that began a turn, and edits in force.
	before []*Entry
	// entries are on the path, from the first that counts to the leaf. The
	// compaction in force is among them, at its place.
	entries    []*Entry
	older      ancestors // the part of the path before entries that is in memory
	compaction *Entry    // in force, or nil
	reverted   reverts
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
	sel := &selection{leaf: leaf, version: version, reverted: make(reverts), older: way}
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
	s.noteDamage(sel, path)
	err = s.readBefore(ctx, sel)
	if errors.Is(err, errNeedAll) {
		if err := s.withWhole(func(*tree) error { return nil }); err != nil {
			return nil, err
		}
		return s.selectPath(ctx, leaf)
	}
	return sel, err
}

// ancestors walks from an entry towards its root, which may be far away. It needs no lock:
// it has its own slice of the nodes, and nodes do not change (see tree).
type ancestors struct {
	nodes []node // of the tree at the time
	at    int32  // the next, or none
	gone  int    // how many came before it
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

// startAt returns the walk from a leaf to its root, or as far as the context needs, and
// the version of the tree. An empty leaf becomes the session's.
func (s *Session) startAt(ctx context.Context, leaf *string) (ancestors, treeVersion, error) {
	s.mu.RLock()
	if !s.closed && s.tree.isWhole() {
		defer s.mu.RUnlock()
		return s.walk(leaf)
	}
	s.mu.RUnlock()
	// Both steps under one lock: otherwise the leaf could move out of the part of the log
	// that was read.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.loadContext(ctx, *leaf); err != nil {
		return ancestors{}, treeVersion{}, err
	}
	return s.walk(leaf)
}

// walk returns the walk from a leaf to its root, as far as the tree goes. It is called with
// mu held.
func (s *Session) walk(leaf *string) (ancestors, treeVersion, error) {
	if *leaf == "" {
		*leaf = s.tree.leaf
	}
	nodes := s.tree.nodes[:len(s.tree.nodes):len(s.tree.nodes)]
	at, ok := int32(len(nodes))-1, true
	if *leaf == "" {
		at = none
	} else if at == none || nodes[at].id != *leaf { // the last node is nearly always the leaf, and then we need no index
		at, ok = s.tree.at(*leaf)
	}
	if !ok {
		return ancestors{}, treeVersion{}, s.errNoEntry("context", *leaf)
	}
	return ancestors{nodes: nodes, at: at}, treeVersion{s.tree, s.tree.revision}, nil
}

func (s *Session) errNoEntry(op, id string) error {
	return &Error{Op: op, Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry %q", id)}
}

// loadContext reads as much of the log as the context at a leaf needs. It is called with mu
// held for writing.
func (s *Session) loadContext(ctx context.Context, leaf string) error {
	if s.closed {
		return s.errClosed("context")
	}
	if s.tree.extent != extentEnd {
		return s.loadWholeFor(ctx, leaf)
	}
	t, err, refused := s.loadDecoded(ctx)
	if refused != nil {
		return refused
	}
	if err == nil && t.leaf == s.tree.leaf {
		t.extent, t.deepFrom = max(t.extent, extentContext), t.leaf
		s.tree = t
		return s.loadWholeFor(ctx, leaf)
	}
	if s.detail = detailRoles; errors.Is(err, errNeedState) {
		s.detail = detailModels
	}
	return s.loadWhole(ctx)
}

// loadDecoded reads the log backwards as far as the context needs, and decodes the lines of
// the path on the way, because they will be needed next. If it may not hold them, refused says why.
func (s *Session) loadDecoded(ctx context.Context) (t *tree, err, refused error) {
	var lines lineDecoder
	t, err = loadTail(ctx, s.log, s.tree.end, tailContext, func(line store.Line) {
		if refused == nil {
			refused = holdLine(ctx, line)
		}
		if refused == nil {
			lines.add(line.Pos, line.Data)
		}
	})
	batches := lines.finish()
	n := 0
	for _, b := range batches {
		n += len(b.lines)
	}
	path := make([]cachedAt, 0, n)
	for _, b := range slices.Backward(batches) {
		for _, line := range slices.Backward(b.lines) {
			if line.entry == nil { // another line may have the entry whole
				return nil, errNeedAll, refused
			}
			path = append(path, line)
		}
	}
	s.cache.replacePath(path)
	return t, err, refused
}

// loadWholeFor reads everything if the tree is not enough for a leaf. It is enough for the leaf
// that it was read for and for entries appended after that one, unless the leaf has moved
// to a branch outside of it.
func (s *Session) loadWholeFor(ctx context.Context, leaf string) error {
	if s.tree.isWhole() || (leaf == "" || leaf == s.tree.leaf) && s.tree.deepLeaf() {
		return nil
	}
	return s.loadWhole(ctx)
}

// findStart walks from the leaf towards the root until it has seen everything that counts.
// It returns the nodes of the path that it saw, root first, and sets the compaction in
// force. A compaction whose first kept entry is not on the path would hide everything, so
// it is reported and does not count.
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
			sel.reverted.add(e.ID, e.Revert.TargetID)
		case sel.compaction == nil && !e.keepsNothing() && !kept.has(sel.older, e.Compaction.FirstKeptEntryID):
			if s.isContinuation() {
				break // it keeps from an entry of an earlier session on, so all of this one
			}
			sel.problems = append(sel.problems, Problem{
				Kind: ProblemFirstKept, EntryID: e.ID, Pos: n.pos,
				Detail: fmt.Sprintf("its first kept entry %q is not on the path before it, so it has no effect", e.Compaction.FirstKeptEntryID),
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

// noteRevert applies the first kept entry if it is a revert, because edits before it still
// count.
func (s *Session) noteRevert(ctx context.Context, sel *selection, n *node) error {
	if n.kind != kindRevert {
		return nil
	}
	e, err := s.entryAt(ctx, n)
	if errors.Is(err, ErrCorrupt) {
		return nil // it is reported when the path is read
	}
	if err == nil {
		sel.reverted.add(e.ID, e.Revert.TargetID)
	}
	return err
}

// lookup finds nodes of a path by their ids.
type lookup struct {
	gone map[string]int // how many nodes there are before each
}

// has reports whether one of the ancestors has an id. The first call walks the path. If it
// finds nothing, more calls may follow, so it builds a table for them.
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
		if path[i].guessedParent || path[i].attached {
			moved := *e
			if e = &moved; i > 0 {
				e.moveTo(path[i-1].id)
			} else if err := s.setParent(e, path[i]); err != nil {
				return nil, err
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// noteDamage reports the damaged lines after the beginning of a path that may have been part
// of it, such as the last line of the log: those that no gap stands for, or a gap that nothing
// follows. A damaged first line is reported too: it was the header, and may have more in it. If the tree does not have all of the log, there are none in the part that counts:
// see loadTail.
func (s *Session) noteDamage(sel *selection, path []node) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tree
	if !t.isWhole() || len(t.problems) == 0 {
		return
	}
	stands := make(map[store.Pos]bool)
	for i := range t.nodes {
		if p := t.nodes[i].parent; p != none && t.nodes[p].kind == kindGap {
			stands[t.nodes[p].pos] = true
		}
	}
	for i := range path {
		stands[path[i].pos] = true
	}
	for _, p := range t.problems {
		if p.Kind == ProblemDamaged && !stands[p.Pos] && (p.Pos == 0 || len(path) == 0 || p.Pos > path[0].pos) {
			sel.problems = append(sel.problems, p)
		}
	}
}
