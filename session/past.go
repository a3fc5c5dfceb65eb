package session

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// A compaction cuts the path, but some of what comes before the cut still counts: system
// messages, the message that began a turn which the cut splits, edits of these, and the
// model in force:
//
//	root                           cut                              leaf
//	 │ system ─ user ─ … ─ user ─ … │ model ─ result ─ … ─ compaction ─ … │
//	 └──────────── past ────────────┘ └────────── kept, and after it ──────┘
//	   stays                stays, because
//	                        the cut splits its turn
//
// The context is: the system message, the user's message, the summary, and the kept entries.
// Our compactions record where they are, so that a resume need not search:
// see State. For other compactions we search once, by the first bytes of the lines, and
// remember the result.

// past has the entries before a cut that still count, or may come to count. Distances are counted
// from the cut towards the root.
type past struct {
	system    []ancestor // root first
	turnStart *ancestor  // the last message that begins a turn
	acts      []act      // edits, reverts and merges, the nearest to the cut first
	state     *State     // what was in force; nil until it is needed
}

type ancestor struct {
	node
	distance int
}

// act is an edit, a revert or a merge.
type act struct {
	ancestor
	target string   // of an edit or a revert
	picks  []string // of a merge
}

// pasts remembers each past by the entry right before the cut. What comes before an entry
// never changes, except when a missing line turns up.
type pasts struct {
	mu       sync.Mutex
	tree     *tree
	revision int
	by       map[string]*past
}

func (p *pasts) get(v treeVersion, id string) *past {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tree != v.tree || p.revision != v.revision {
		return nil
	}
	return p.by[id]
}

func (p *pasts) put(v treeVersion, id string, found *past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || p.tree != v.tree || p.revision != v.revision {
		p.tree, p.revision, p.by = v.tree, v.revision, make(map[string]*past)
	}
	p.by[id] = found
}

// treeVersion identifies the tree that a path is from, and how often its gaps were filled.
type treeVersion struct {
	tree     *tree
	revision int
}

// readBefore reads the entries before the cut that still count.
func (s *Session) readBefore(ctx context.Context, sel *selection) error {
	if sel.compaction == nil {
		return nil
	}
	if nodes, ok := s.recordedPast(sel); ok && len(sel.picked) == 0 {
		entries, err := s.inOrder(nodes)
		if err != nil {
			return err
		}
		if !slices.Contains(entries, nil) {
			sel.before = entries
			return nil
		}
	}
	switch {
	case !sel.version.tree.isWhole():
		return errNeedAll // one of the recorded lines cannot be read
	case sel.older.at == none:
		return nil
	}
	past, err := s.pastOf(ctx, sel)
	if err != nil {
		return err
	}
	return s.addPast(ctx, sel, past)
}

// recordedPast returns the entries before the cut that the compaction in force has recorded.
// That holds unless something before the cut was reverted since. A list that would bring
// in an entry twice is not believed.
func (s *Session) recordedPast(sel *selection) ([]node, bool) {
	state := sel.compaction.Compaction.State
	if state == nil || state.Kept == nil || severalIn(s.log) != nil { // it is about its own session only
		return nil, false
	}
	kept := make(map[string]bool, len(state.Kept))
	for _, k := range state.Kept {
		kept[k.ID] = true
	}
	if len(kept) < len(state.Kept) || sel.revertsOlder() || sel.hasAny(kept) {
		return nil, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	nodes := make([]node, 0, len(state.Kept))
	for _, k := range state.Kept {
		n, ok := s.tree.keptNode(k.ID)
		if !ok {
			return nil, false
		}
		nodes = append(nodes, n)
	}
	return nodes, true
}

// hasAny reports whether one of the entries has one of the ids.
func (sel *selection) hasAny(ids map[string]bool) bool {
	return len(ids) > 0 && slices.ContainsFunc(sel.entries, func(e *Entry) bool { return ids[e.ID] })
}

// keptNode returns the node of an entry that a compaction keeps. It may be before the part
// of the log that was read.
func (t *tree) keptNode(id string) (node, bool) {
	if at, ok := t.at(id); ok {
		return t.nodes[at], true
	}
	for _, n := range t.kept {
		if n.id == id {
			return n, true
		}
	}
	return node{}, false
}

// revertsOlder reports whether one of the entries reverts something before them.
func (sel *selection) revertsOlder() bool {
	targets := make(map[string]bool)
	for _, e := range sel.entries {
		if e.Revert != nil {
			targets[e.Revert.TargetID] = true
		}
	}
	if len(targets) == 0 {
		return false
	}
	for _, e := range sel.entries {
		delete(targets, e.ID)
	}
	return len(targets) > 0
}

// addPast adds those entries of the past that count to the selection. Which edits count depends on
// later reverts.
func (s *Session) addPast(ctx context.Context, sel *selection, p *past) error {
	wanted := make(map[string]bool)
	nodes := slices.Clone(p.system)
	if p.turnStart != nil && !sel.beginsWithTurn() {
		nodes = append(nodes, *p.turnStart)
	}
	for _, n := range nodes {
		wanted[n.id] = true
	}
	for _, list := range sel.picked {
		for _, e := range list {
			wanted[e.ID] = true
		}
	}
	for i := range p.acts {
		a := &p.acts[i]
		switch {
		case sel.reverted[a.id]:
		case a.kind == kindRevert:
			sel.reverted.add(a.id, a.target)
		case a.kind == kindContextEdit && wanted[a.target]:
			wanted[a.target] = false // the nearest edit counts, not those before it
			nodes = append(nodes, a.ancestor)
		}
	}
	slices.SortFunc(nodes, rootFirst)
	entries, err := s.inOrder(nodesOf(nodes))
	for i, e := range entries {
		if e != nil {
			sel.before = append(sel.before, e)
			continue
		}
		sel.problems = append(sel.problems, Problem{
			Kind: ProblemDamaged, EntryID: nodes[i].id, Pos: nodes[i].pos, Detail: "an entry of the path cannot be read",
		})
	}
	return err
}

// beginsWithTurn reports whether the first message of the entries begins a turn.
func (sel *selection) beginsWithTurn() bool {
	for _, e := range sel.entries {
		if e.Message != nil {
			return e.BeginsTurn()
		}
	}
	return false
}

// pastOf returns the past of the entries, from memory or by searching the path.
func (s *Session) pastOf(ctx context.Context, sel *selection) (*past, error) {
	id := sel.older.nodes[sel.older.at].id
	if p := s.pasts.get(sel.version, id); p != nil {
		return p, nil
	}
	p, n := &past{}, s.countsOf(sel.version)
	if err := s.findMessages(ctx, p, sel.older); err != nil {
		return nil, err
	}
	if n.kinds[kindContextEdit]+n.kinds[kindRevert]+n.kinds[kindMerge] > 0 {
		if err := s.findActs(ctx, p, sel.older); err != nil {
			return nil, err
		}
	}
	s.pasts.put(sel.version, id, p)
	return p, nil
}

// countsOf returns the counts of a tree that may be growing.
func (s *Session) countsOf(v treeVersion) counts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return v.tree.counts
}

// findMessages finds the system messages and the last message that begins a turn.
func (s *Session) findMessages(ctx context.Context, p *past, older ancestors) error {
	var hidden []ancestor // messages whose line must be read to know who speaks
	way := older
	for n := way.next(); n != nil; n = way.next() {
		switch {
		case n.kind != kindMessage:
		case n.speaker == speakerSystem:
			p.system = append(p.system, ancestor{*n, way.gone})
		case n.speaker == speakerUnknown:
			hidden = append(hidden, ancestor{*n, way.gone})
		}
	}
	speakers, err := s.speakersOf(ctx, hidden)
	if err != nil {
		return err
	}
	for _, n := range hidden {
		if speakers[n.pos] == speakerSystem {
			p.system = append(p.system, n)
		}
	}
	slices.SortFunc(p.system, rootFirst)
	return s.findPrompt(ctx, p, older, speakers)
}

func rootFirst(a, b ancestor) int { return b.distance - a.distance }

// speakersOf reads who speaks in messages, by the positions of their lines.
func (s *Session) speakersOf(ctx context.Context, messages []ancestor) (map[store.Pos]speaker, error) {
	slices.Reverse(messages) // as they are read
	nodes := make([]node, len(messages))
	for i := range messages {
		nodes[i] = messages[i].node
	}
	speakers := make(map[store.Pos]speaker)
	err := s.eachLine(ctx, nodes, never, func(i int, line store.Line) error {
		role, _, _ := speaks(line.Data)
		speakers[nodes[i].pos] = speakerOf(role)
		return nil
	})
	return speakers, err
}

// findPrompt finds the last message that begins a turn. Other messages of the user bring
// results; in some formats there are many of them in a row.
func (s *Session) findPrompt(ctx context.Context, p *past, older ancestors, hidden map[store.Pos]speaker) error {
	isUser := func(n *node) bool {
		return n.kind == kindMessage && (n.speaker == speakerUser || n.speaker == speakerUnknown && hidden[n.pos] == speakerUser)
	}
	for users := range older.some(isUser) {
		entries, err := s.inOrder(nodesOf(users))
		if err != nil {
			return err
		}
		for i, e := range entries {
			if e != nil && e.BeginsTurn() {
				p.turnStart = &users[i]
				return nil
			}
		}
	}
	return nil
}

// some yields the ancestors that are wanted, nearest first, a few at a time. How many will
// be needed is unknown, so it starts with one and yields more each time.
func (a ancestors) some(want func(*node) bool) iter.Seq[[]ancestor] {
	return func(yield func([]ancestor) bool) {
		const most = 256
		for n := 1; a.at != none; n = min(2*n, most) {
			var some []ancestor
			for len(some) < n {
				next := a.next()
				if next == nil {
					break
				}
				if want(next) {
					some = append(some, ancestor{*next, a.gone})
				}
			}
			if len(some) > 0 && !yield(some) {
				return
			}
		}
	}
}

func nodesOf(placed []ancestor) []node {
	nodes := make([]node, len(placed))
	for i := range placed {
		nodes[i] = placed[i].node
	}
	return nodes
}

func never(int) bool { return false }

// findActs finds the edits, reverts and merges.
func (s *Session) findActs(ctx context.Context, p *past, older ancestors) error {
	var found []ancestor // the nearest first
	for n := older.next(); n != nil; n = older.next() {
		if n.kind == kindContextEdit || n.kind == kindRevert || n.kind == kindMerge {
			found = append(found, ancestor{*n, older.gone})
		}
	}
	entries, err := s.inOrder(nodesOf(found))
	if err != nil {
		return err
	}
	for i, e := range entries {
		a := act{ancestor: found[i]}
		switch {
		case e == nil:
			continue
		case e.ContextEdit != nil:
			a.target = e.ContextEdit.TargetID
		case e.Revert != nil:
			a.target = e.Revert.TargetID
		case e.Merge != nil:
			a.picks = e.Merge.EntryIDs
		}
		p.acts = append(p.acts, a)
	}
	return nil
}

// speaker is the role of a message, as far as the shape of a context depends on it, in one
// byte.
type speaker uint8

const (
	speakerUnknown speaker = iota // the role is not where our writers put it
	speakerUser
	speakerModel
	speakerSilent // the model, in a message that does not name it
	speakerSystem
	speakerOther
)

func speakerOf[T string | []byte](role T) speaker {
	switch string(role) {
	case RoleUser:
		return speakerUser
	case RoleAssistant:
		return speakerModel
	case RoleSystem:
		return speakerSystem
	}
	return speakerOther
}
