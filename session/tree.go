package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
)

// none is the index of no node: a root has no parent.
const none int32 = -1

// node is what the first bytes of an entry's line tell. Its body stays in the
// log until somebody asks for it.
type node struct {
	id      string
	pos     store.Pos
	parent  int32 // an index, or none
	kind    kind
	speaker speaker // of a message
}

// extent is how much of its log a tree has.
type extent uint8

const (
	extentEnd     extent = iota // its end, as far back as it takes to know the leaf
	extentContext               // its end, as far back as the context at deepFrom goes
	extentWhole                 // all of it
)

// headDetail is how closely the lines are looked at from which a tree is built.
type headDetail uint8

const (
	detailRoles  headDetail = iota // only at their first bytes, which have the role
	detailModels                   // at messages of the model to the end: does one name it?
)

// tree is the shape of a session, or of its end: see tail.go. It is built from
// lines and knows nothing of files.
type tree struct {
	header   *Header
	nodes    []node // in the order of the log; gaps come where they are found
	byID     idIndex
	live     bool // somebody may be reading nodes: those that are there must not change
	extent   extent
	deepFrom string    // the leaf for which the log's end was read
	end      store.Pos // of the last line read
	leaf     string    // the entry that the next one will follow; "" for none
	logLeaf  string    // where the log itself says the leaf is: another writer may have moved it

	counts   counts
	listed   [len(kinds)][]int32 // the entries of some kinds, in order: see kindRow
	problems []Problem

	ids arena // of the nodes

	// Only while loading:
	detail  headDetail
	pending []pendingParent
	damage  []damage // ascending
	lost    damageIndex

	walked pathMarks
	mended int    // how often gaps were filled or parents found late: see pasts
	kept   []node // if deep: what the compaction in force keeps from before the part that was read
}

// counts says how many entries of a sort there are in a tree. Nobody need go along a
// path to look for what is nowhere.
type counts struct {
	kinds    [len(kinds)]int
	speakers [speakerOther + 1]int // of messages
}

// pendingParent is an entry whose parent was not there yet when it was read.
type pendingParent struct {
	child  int32
	parent string
}

// idsIn returns what looks like ids in a damaged line, in which several may have
// been joined.
func idsIn(line []byte) []string {
	const lead = `"id":"`
	var ids []string
	for len(ids) < 64 {
		at := bytes.Index(line, []byte(lead))
		if at < 0 {
			break
		}
		id, _, closed := bytes.Cut(line[at+len(lead):], []byte(`"`))
		if !closed {
			break
		}
		ids, line = append(ids, string(id)), line[at+len(lead)-1:] // the quote may begin another
	}
	return ids
}

func newTree() *tree { return &tree{} }

// isWhole reports whether the tree goes back to the log's beginning.
func (t *tree) isWhole() bool { return t.extent == extentWhole }

// at returns the index of the node that has an id.
func (t *tree) at(id string) (int32, bool) { return t.byID.find(t.nodes, id) }

// loadTree reads a log from its beginning to a position.
func loadTree(ctx context.Context, log store.Log, end store.Pos, detail headDetail) (*tree, error) {
	t := newTree()
	t.extent, t.detail = extentWhole, detail
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if line.Next > end {
			break
		}
		t.addLine(line)
		if len(t.nodes) == sample {
			t.expect(int(float64(sample) * float64(end) / float64(line.Next)))
		}
	}
	if slices.ContainsFunc(t.pending, t.isDangling) {
		if err := t.findDamage(ctx, log, end); err != nil {
			return nil, err
		}
	}
	t.settle()
	t.leaf = t.logLeaf
	return t, nil
}

func (t *tree) isDangling(p pendingParent) bool {
	_, ok := t.at(p.parent)
	return !ok
}

// findDamage looks for lines of which only the first bytes are good: in such a
// line, one that was torn and to which the next was joined, a parent that is
// missing may have been lost.
func (t *tree) findDamage(ctx context.Context, log store.Log, end store.Pos) error {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		if line.Next > end {
			break
		}
		h, ok := rawjson.ScanHead(line.Data)
		if at, known := t.at(string(h.ID)); ok && known && !h.Whole && t.nodes[at].pos == line.Pos && !rawjson.Valid(line.Data) {
			t.damage = append(t.damage, damage{pos: line.Pos, before: at, ids: idsIn(line.Data), named: true})
		}
	}
	slices.SortFunc(t.damage, func(a, b damage) int { return cmp.Compare(a.pos, b.pos) })
	return nil
}

// sample is how many entries tell how many a log has in all, more or less.
const sample = 256

// expect makes room for so many entries, and for some that are appended later.
func (t *tree) expect(entries int) {
	t.nodes = slices.Grow(t.nodes, max(0, entries+entries/16-len(t.nodes)))
}

// addLine takes a line into the tree.
func (t *tree) addLine(line store.Line) {
	t.end = line.Next
	h, ok := rawjson.ScanHead(line.Data)
	switch {
	case line.Cut || !ok:
		if !rawjson.Blank(line.Data) {
			t.addDamage(line)
		}
	case string(h.Type) == string(TypeSession):
		t.addHeader(line)
	case len(h.ID) == 0:
		t.addDamage(line)
	default:
		t.addEntry(t.headLine(line, h))
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
	isRoot     bool // parent_id is null, empty or missing
	kind       kind
	speaker    speaker
	pos, next  store.Pos
}

func speakerIn(h rawjson.Head) speaker {
	if h.Role == nil {
		return speakerUnknown
	}
	return speakerOf(h.Role)
}

func newHeadLine(line store.Line, h rawjson.Head) headLine {
	return headLine{
		id: string(h.ID), parent: string(h.Parent), isRoot: len(h.Parent) == 0,
		kind: kindOfType(h.Type), speaker: speakerIn(h), pos: line.Pos, next: line.Next,
	}
}

// headLine is newHeadLine without an allocation for every line: the ids are kept
// together, and a parent's is nearly always that of the entry before.
func (t *tree) headLine(line store.Line, h rawjson.Head) headLine {
	head := headLine{
		id: t.ids.keep(h.ID), isRoot: len(h.Parent) == 0,
		kind: kindOfType(h.Type), speaker: speakerIn(h), pos: line.Pos, next: line.Next,
	}
	if t.detail == detailModels && head.speaker == speakerModel && !namesModel(h.Rest) {
		head.speaker = speakerSilent
	}
	if last := len(t.nodes) - 1; last >= 0 && t.nodes[last].id == string(h.Parent) {
		head.parent = t.nodes[last].id
	} else {
		head.parent = string(h.Parent)
	}
	return head
}

func (t *tree) addEntry(h headLine) {
	if at, ok := t.add(h); !ok && t.nodes[at].kind == kindGap {
		t.fillGap(at, h)
	} else if !ok {
		t.report(ProblemDuplicate, h.id, h.pos, fmt.Sprintf("the id is that of the entry at %d", t.nodes[at].pos))
		return // a repeated line must not move the leaf back, nor hide the first
	}
	if kinds[h.kind].reachesBack && t.extent == extentContext {
		t.extent = extentEnd // it may bring back what lies before the part that was read
	}
	if h.kind == kindLeaf {
		t.logLeaf = h.parent
	} else {
		t.logLeaf = h.id
	}
}

// add puts a node into the tree and finds its parent, or leaves that to settle.
// If there is a node of that id, it returns its index and false.
func (t *tree) add(h headLine) (at int32, ok bool) {
	i := int32(len(t.nodes))
	if len(t.nodes) == cap(t.nodes) {
		t.nodes = slices.Grow(t.nodes, len(t.nodes)+1) // append alone would copy a long session often
	}
	t.nodes = append(t.nodes, node{id: h.id, pos: h.pos, parent: none, kind: h.kind, speaker: h.speaker})
	if other, ok := t.byID.add(t.nodes); !ok {
		t.nodes = t.nodes[:i]
		return other, false
	}
	switch {
	case h.isRoot:
	case i > 0 && t.nodes[i-1].id == h.parent:
		t.nodes[i].parent = i - 1 // nearly always
	default:
		if at, ok := t.at(h.parent); ok && at != i {
			t.nodes[i].parent = at
		} else {
			t.pending = append(t.pending, pendingParent{i, h.parent})
		}
	}
	t.count(i)
	return i, true
}

// count takes note of the entries of which there are lists.
func (t *tree) count(i int32) {
	k := t.nodes[i].kind
	t.counts.kinds[k]++
	if k == kindMessage {
		t.counts.speakers[t.nodes[i].speaker]++
	}
	if kinds[k].listed {
		t.listed[k] = append(t.listed[k], i)
	}
}

// fillGap puts an entry where one was known to be missing: its line was damaged
// and written again, or stands after its children.
func (t *tree) fillGap(at int32, h headLine) {
	if t.live {
		t.nodes, t.live = slices.Clone(t.nodes), false
	}
	t.nodes[at].pos, t.nodes[at].kind, t.nodes[at].parent, t.nodes[at].speaker = h.pos, h.kind, none, h.speaker
	t.walked = pathMarks{}
	t.mended++
	if !h.isRoot {
		t.pending = append(t.pending, pendingParent{at, h.parent})
	}
	t.count(at)
}

// quoted is how much of a damaged line is looked at to quote its beginning.
const quoted = 4 << 10

// addDamage keeps the place of a line that cannot be read. If at least its id
// can, the entry is known to have been there, and where.
func (t *tree) addDamage(line store.Line) {
	h, ok := rawjson.LenientHead(line.Data)
	// Before it is shortened: half of a secret is not taken for one.
	begin, _ := redact.Bytes(line.Data[:min(len(line.Data), quoted)])
	detail := fmt.Sprintf("not an entry: %.60q", begin)
	if line.Cut {
		detail = "longer than the limit; only its beginning was read"
	}
	ok = ok && len(h.ID) > 0 // an empty id is none
	if _, known := t.at(string(h.ID)); !ok || known || string(h.Type) == string(TypeSession) {
		t.report(ProblemDamaged, "", line.Pos, detail)
		t.damage = append(t.damage, damage{pos: line.Pos, before: int32(len(t.nodes)) - 1, ids: idsIn(line.Data)})
		return
	}
	gap := newHeadLine(line, h)
	gap.kind = kindGap
	if _, known := t.at(gap.parent); !h.HasParent || !gap.isRoot && !known {
		gap.isRoot = len(t.nodes) == 0 // what stands before it is the likeliest
		if !gap.isRoot {
			gap.parent = t.nodes[len(t.nodes)-1].id
		}
	}
	t.report(ProblemDamaged, gap.id, line.Pos, detail)
	at, _ := t.add(gap)
	t.damage = append(t.damage, damage{pos: line.Pos, before: at, ids: idsIn(line.Data), named: true})
}

func (t *tree) report(k ProblemKind, id string, pos store.Pos, detail string) {
	t.problems = append(t.problems, Problem{Kind: k, EntryID: id, Pos: pos, Detail: detail})
}

// settle finds the parents that came later or not at all, and cuts cycles.
// Nothing that was read becomes unreachable.
func (t *tree) settle() {
	if len(t.pending) > 0 {
		t.walked = pathMarks{}
		t.mended++
	}
	for _, p := range t.pending {
		child := &t.nodes[p.child]
		if p.parent == child.id {
			t.report(ProblemSelfParent, child.id, child.pos, "taken for a root")
			continue
		}
		at, ok := t.at(p.parent)
		if !ok {
			at = t.addGap(p)
		}
		t.nodes[p.child].parent = at
	}
	t.cutCycles()
	t.pending = nil
	t.standing()
}

// standing makes logLeaf the entry at which the leaf stands, and reports whether
// that is known.
func (t *tree) standing() (known bool) {
	t.logLeaf, known = t.standsAt(t.logLeaf)
	return known
}

// standsAt returns where a leaf stands that was moved to an entry: there, unless
// that entry is itself one that moves the leaf. Then it is where that one moved
// it, which is its parent, and so on up to an entry that is no move, or to none:
// a leaf never stands on a move. known is false if the tree does not go back far
// enough to tell.
func (t *tree) standsAt(id string) (_ string, known bool) {
	if id == "" {
		return "", true
	}
	if n := len(t.nodes); n > 0 && t.nodes[n-1].id == id && t.nodes[n-1].kind != kindLeaf {
		return id, true // nearly always
	}
	at, ok := t.at(id)
	if !ok {
		return id, t.isWhole()
	}
	for t.nodes[at].kind == kindLeaf {
		if at = t.nodes[at].parent; at == none {
			return "", t.isWhole()
		}
	}
	return t.nodes[at].id, true
}

// cutCycles makes an entry of each cycle a root: of those whose parent came
// later, of which each cycle has one, the last.
func (t *tree) cutCycles() {
	if len(t.pending) == 0 {
		return
	}
	met := make([]int32, len(t.nodes)) // by which walk towards the root, or zero
	late := make(map[int32]bool)
	for _, p := range t.pending {
		late[p.child] = true
	}
	for n, p := range t.pending {
		walk, at := int32(n)+1, p.child
		for ; at != none && met[at] == 0; at = t.nodes[at].parent {
			met[at] = walk
		}
		if at == none || met[at] != walk {
			continue // at a root, or where an earlier walk has been
		}
		cut := none
		for i, first := at, true; first || i != at; i, first = t.nodes[i].parent, false {
			if late[i] && i > cut {
				cut = i
			}
		}
		t.report(ProblemCycle, t.nodes[cut].id, t.nodes[cut].pos,
			fmt.Sprintf("its parent %q descends from it; taken for a root", t.nodes[t.nodes[cut].parent].id))
		t.nodes[cut].parent = none
	}
}

// addGap makes a node for an entry that is missing. If a damaged line stands
// before the child, that was it, and what came before the line came before the
// entry: so damage never hides what stands before it.
func (t *tree) addGap(p pendingParent) int32 {
	child := t.nodes[p.child]
	before, pos := none, child.pos
	if d := t.damageOf(p.parent, child.pos); d != nil {
		before, pos = d.before, d.pos
	}
	t.report(ProblemDangling, child.id, child.pos, fmt.Sprintf("its parent %q is missing", p.parent))
	i := int32(len(t.nodes))
	t.nodes = append(t.nodes, node{id: p.parent, pos: pos, parent: before, kind: kindGap})
	t.byID.add(t.nodes)
	return i
}

// gaps returns the nodes of entries that are missing.
func (t *tree) gaps() []node {
	var gaps []node
	for i := range t.nodes {
		if t.nodes[i].kind == kindGap {
			gaps = append(gaps, t.nodes[i])
		}
	}
	return gaps
}

// goesOn tells of each node whether the conversation goes on below it.
func goesOn(nodes []node) []bool {
	goesOn := make([]bool, len(nodes))
	for i := range nodes {
		if nodes[i].kind.isAside() {
			continue
		}
		for p := nodes[i].parent; p != none && !goesOn[p]; p = nodes[p].parent {
			goesOn[p] = true
		}
	}
	return goesOn
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
	i, ok := t.at(id)
	if !ok {
		return nil, id == ""
	}
	var path []int32
	for ; i != none; i = t.nodes[i].parent {
		path = append(path, i)
	}
	return path, true
}

// isOnPath reports whether an entry is an ancestor of another, or is it. It is
// called with the session's mu held for writing.
func (t *tree) isOnPath(id, leaf string) bool {
	want, ok := t.at(id)
	at, ok2 := t.at(leaf)
	if !ok || !ok2 {
		return false
	}
	t.walked.moveTo(t.nodes, at)
	return t.walked.has(want)
}

// pathMarks remembers which nodes are on the path to one of them. It follows a
// leaf that moves by the difference alone: whoever edits a long session entry by
// entry must not walk all of its path each time.
type pathMarks struct {
	leaf int32 // its index plus one, or zero for none
	on   []uint64
}

func (m *pathMarks) has(at int32) bool { return m.on[at/64]&(1<<(at%64)) != 0 }

func (m *pathMarks) moveTo(nodes []node, leaf int32) {
	for len(m.on)*64 < len(nodes) {
		m.on = append(m.on, 0)
	}
	joint := leaf
	for joint != none && !m.has(joint) {
		joint = nodes[joint].parent
	}
	for at := m.leaf - 1; at != joint; at = nodes[at].parent {
		m.on[at/64] &^= 1 << (at % 64)
	}
	for at := leaf; at != joint; at = nodes[at].parent {
		m.on[at/64] |= 1 << (at % 64)
	}
	m.leaf = leaf + 1
}

// deepLeaf reports whether a tree of the log's end suffices for the context at
// its leaf: that leaf is the one it was read for, or descends from it.
func (t *tree) deepLeaf() bool { return t.extent == extentContext && t.isOnPath(t.deepFrom, t.leaf) }

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
