package session

import (
	"bytes"
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/session/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// kind is an EntryType in one byte.
type kind uint8

const (
	kindOther kind = iota
	kindMessage
	kindModelChange
	kindThinkingLevel
	kindLabel
	kindSessionInfo
	kindCompaction
	kindBranchSummary
	kindCustom
	kindLeaf
	kindContextEdit
	kindRevert
	kindMerge
	kindGap
)

func kindOfType(t []byte) kind {
	switch EntryType(t) {
	case TypeMessage:
		return kindMessage
	case TypeModelChange:
		return kindModelChange
	case TypeThinkingLevel, "thinking_level_change":
		return kindThinkingLevel
	case TypeLabel:
		return kindLabel
	case TypeSessionInfo:
		return kindSessionInfo
	case TypeCompaction:
		return kindCompaction
	case TypeBranchSummary:
		return kindBranchSummary
	case TypeCustom:
		return kindCustom
	case TypeLeaf:
		return kindLeaf
	case TypeContextEdit:
		return kindContextEdit
	case TypeRevert:
		return kindRevert
	case TypeMerge:
		return kindMerge
	}
	return kindOther
}

// none is the index of no node: a root has no parent.
const none int32 = -1

// node is what the first bytes of an entry's line tell. Its body stays in the
// log until somebody asks for it.
type node struct {
	id     string
	pos    store.Pos
	parent int32 // an index, or none
	kind   kind
}

// tree is the shape of a session, or of its end: see tail.go. It is built from
// lines and knows nothing of files.
type tree struct {
	header   *Header
	nodes    []node // in the order of the log; gaps come where they are found
	byID     map[string]int32
	complete bool      // it goes back to the log's beginning
	deep     bool      // if not complete: it goes back far enough for the context at deepFrom
	deepFrom string    // the leaf for which the log's end was read
	end      store.Pos // of the last line read
	leaf     string    // the entry that the next one will follow; "" for none
	logLeaf  string    // where the log itself says the leaf is: another writer may have moved it

	messages int
	labels   []int32 // the label entries, in order
	infos    []int32 // the session_info entries, in order
	problems []Problem

	// Only while loading:
	pending []pendingParent
	damage  []damage
}

// pendingParent is an entry whose parent was not there yet when it was read.
type pendingParent struct {
	child  int32
	parent string
}

// damage is a line that could not be read and whose id is not known.
type damage struct {
	pos    store.Pos
	before int32 // the entry before it, or none
	used   bool  // it was taken for the line of a missing parent
}

func newTree() *tree { return &tree{byID: make(map[string]int32)} }

// loadTree reads a log from its beginning to a position.
func loadTree(ctx context.Context, log store.Log, end store.Pos) (*tree, error) {
	t := newTree()
	t.complete = true
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if line.Next > end {
			break
		}
		t.addLine(line)
	}
	t.settle()
	t.leaf = t.logLeaf
	return t, nil
}

// addLine takes a line into the tree.
func (t *tree) addLine(line store.Line) {
	t.end = line.Next
	h, ok := rawjson.ScanHead(line.Data)
	switch {
	case line.Cut || !ok:
		if len(bytes.TrimSpace(line.Data)) > 0 {
			t.addDamage(line)
		}
	case string(h.Type) == string(TypeSession):
		t.addHeader(line)
	case len(h.ID) == 0:
		t.addDamage(line)
	default:
		t.addEntry(newHeadLine(line, h))
	}
}

func (t *tree) addHeader(line store.Line) {
	h, err := decodeHeader(bytes.Clone(line.Data))
	switch {
	case err != nil:
		t.report(ProblemHeader, "", line.Pos, err.Error())
	case t.header != nil:
		t.report(ProblemHeader, h.ID, line.Pos, "a second header; the first counts")
	default:
		t.header = h
		if line.Pos != 0 {
			t.report(ProblemHeader, h.ID, line.Pos, "the header is not the first line")
		}
	}
}

// headLine is an entry as its line's first bytes tell it.
type headLine struct {
	id, parent string
	isRoot     bool // parent_id is null or missing
	kind       kind
	pos, next  store.Pos
}

func newHeadLine(line store.Line, h rawjson.Head) headLine {
	return headLine{
		id: string(h.ID), parent: string(h.Parent), isRoot: h.Parent == nil,
		kind: kindOfType(h.Type), pos: line.Pos, next: line.Next,
	}
}

func (t *tree) addEntry(h headLine) {
	if at, ok := t.byID[h.id]; ok {
		t.report(ProblemDuplicate, h.id, h.pos, fmt.Sprintf("the id is that of the entry at %d", t.nodes[at].pos))
		return // a repeated line must not move the leaf back, nor hide the first
	}
	t.add(h)
	if h.kind == kindRevert || h.kind == kindMerge {
		t.deep = false // it may bring back what lies before the part that was read
	}
	if h.kind == kindLeaf {
		t.logLeaf = h.parent
	} else {
		t.logLeaf = h.id
	}
}

// add puts a node into the tree and finds its parent, or leaves that to settle.
func (t *tree) add(h headLine) {
	i := int32(len(t.nodes))
	n := node{id: h.id, pos: h.pos, parent: none, kind: h.kind}
	switch {
	case h.isRoot:
	case i > 0 && t.nodes[i-1].id == h.parent:
		n.parent = i - 1 // nearly always
	default:
		if at, ok := t.byID[h.parent]; ok {
			n.parent = at
		} else {
			t.pending = append(t.pending, pendingParent{i, h.parent})
		}
	}
	t.nodes = append(t.nodes, n)
	t.byID[h.id] = i
	switch h.kind {
	case kindMessage:
		t.messages++
	case kindLabel:
		t.labels = append(t.labels, i)
	case kindSessionInfo:
		t.infos = append(t.infos, i)
	}
}

// addDamage keeps the place of a line that cannot be read. If at least its id
// can, the entry is known to have been there, and where.
func (t *tree) addDamage(line store.Line) {
	h, ok := rawjson.LenientHead(line.Data)
	detail := fmt.Sprintf("not an entry: %.60q", line.Data)
	if line.Cut {
		detail = "longer than the limit; only its beginning was read"
	}
	if _, known := t.byID[string(h.ID)]; !ok || known || string(h.Type) == string(TypeSession) {
		t.report(ProblemDamaged, "", line.Pos, detail)
		t.damage = append(t.damage, damage{pos: line.Pos, before: int32(len(t.nodes)) - 1})
		return
	}
	gap := newHeadLine(line, h)
	gap.kind = kindGap
	if !h.HasParent && len(t.nodes) > 0 {
		gap.parent, gap.isRoot = t.nodes[len(t.nodes)-1].id, false // the likeliest
	}
	t.report(ProblemDamaged, gap.id, line.Pos, detail)
	t.add(gap)
}

func (t *tree) report(k ProblemKind, id string, pos store.Pos, detail string) {
	t.problems = append(t.problems, Problem{Kind: k, EntryID: id, Pos: pos, Detail: detail})
}

// settle finds the parents that came later or not at all, and cuts cycles.
// Nothing that was read becomes unreachable.
func (t *tree) settle() {
	for _, p := range t.pending {
		child := &t.nodes[p.child]
		if p.parent == child.id {
			t.report(ProblemSelfParent, child.id, child.pos, "taken for a root")
			continue
		}
		at, ok := t.byID[p.parent]
		if !ok {
			at = t.addGap(p)
		}
		t.nodes[p.child].parent = at
		if t.leadsBackTo(at, p.child) {
			t.nodes[p.child].parent = none
			t.report(ProblemCycle, t.nodes[p.child].id, t.nodes[p.child].pos,
				fmt.Sprintf("its parent %q descends from it; taken for a root", p.parent))
		}
	}
	t.pending = nil
}

// addGap makes a node for an entry that is missing. If a damaged line stands
// before the child, that was it, and what came before the line came before the
// entry: so damage never hides what stands before it.
func (t *tree) addGap(p pendingParent) int32 {
	child := t.nodes[p.child]
	before, pos := none, child.pos
	for i := len(t.damage) - 1; i >= 0; i-- {
		if d := &t.damage[i]; d.pos < child.pos && !d.used {
			d.used = true
			before, pos = d.before, d.pos
			break
		}
	}
	t.report(ProblemDangling, child.id, child.pos, fmt.Sprintf("its parent %q is missing", p.parent))
	i := int32(len(t.nodes))
	t.nodes = append(t.nodes, node{id: p.parent, pos: pos, parent: before, kind: kindGap})
	t.byID[p.parent] = i
	return i
}

// leadsBackTo reports whether following parents from one node arrives at
// another. Parents that were found at once stand earlier in the log, so only
// those set by settle can close a cycle; each is checked as it is set.
func (t *tree) leadsBackTo(from, to int32) bool {
	for i := from; i != none; i = t.nodes[i].parent {
		if i == to {
			return true
		}
	}
	return false
}

// isRemark reports whether an entry of a kind says something about the session
// and nothing in the conversation: a label, a name, an extension's data.
func (k kind) isRemark() bool {
	return k == kindLabel || k == kindSessionInfo || k == kindCustom
}

// onlyRemarksSince reports whether all nodes from an index on are remarks. Who
// labels a session while an agent works in it does not get in the agent's way.
func (t *tree) onlyRemarksSince(from int) bool {
	for i := from; i < len(t.nodes); i++ {
		if !t.nodes[i].kind.isRemark() {
			return false
		}
	}
	return true
}

// path returns the nodes from an entry back to its root, the entry first.
func (t *tree) path(id string) ([]int32, bool) {
	i, ok := t.byID[id]
	if !ok {
		return nil, id == ""
	}
	var path []int32
	for ; i != none; i = t.nodes[i].parent {
		path = append(path, i)
	}
	return path, true
}

// isOnPath reports whether an entry is an ancestor of another, or is it.
func (t *tree) isOnPath(id, leaf string) bool {
	want, ok := t.byID[id]
	at, ok2 := t.byID[leaf]
	if !ok || !ok2 {
		return false
	}
	return t.leadsBackTo(at, want)
}

// deepLeaf reports whether a tree of the log's end suffices for the context at
// its leaf: that leaf is the one it was read for, or descends from it.
func (t *tree) deepLeaf() bool { return t.deep && t.isOnPath(t.deepFrom, t.leaf) }

// roots counts the entries without a parent.
func (t *tree) roots() []int32 {
	var roots []int32
	for i := range t.nodes {
		if t.nodes[i].parent == none {
			roots = append(roots, int32(i))
		}
	}
	return roots
}
