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

// none is the parent of a root.
const none int32 = -1

// node is the part of an entry that the first bytes of its line have. The body stays in the log
// until it is needed.
type node struct {
	id            string
	pos           store.Pos
	parent        int32 // an index, or none
	kind          kind
	speaker       speaker // of a message
	guessed       bool    // it is a gap without a line: see addGap
	guessedParent bool    // its line names no parent, so that was guessed: see attachToLast
	attached      bool    // its session begins with it, so its parent in the chain is not the one in its line: see tree_join.go
}

// extent is how much of its log a tree has.
type extent uint8

const (
	extentEnd     extent = iota // its end, far enough back to know the leaf
	extentContext               // its end, far enough back for the context at deepFrom
	extentWhole                 // all of it
)

// headDetail is how closely the lines are examined from which a tree is built.
type headDetail uint8

const (
	detailRoles  headDetail = iota // only the first bytes, which include the role
	detailModels                   // messages of the model to the end, to see whether they name it
)

// tree is the shape of a session or of its end: see tail.go. It is built from lines and
// does not know about files.
//
// Readers take a slice of nodes under the session's lock and then read it without the lock.
// That is safe because nodes only grows at its end; a node that is there does not change.
// The exception is a gap that turns into an entry when its line arrives after all. Only
// absorb can bring such a line (our own appends never use an id that is taken, even by a
// gap), so absorb sets live, and fillGap then copies nodes before it changes one.
type tree struct {
	header   *Header
	nodes    []node // in the order of the log; gaps are where they were found
	byID     idIndex
	live     bool // a reader may be using nodes, so fillGap must copy them first
	extent   extent
	deepFrom string    // the leaf for which the log's end was read
	end      store.Pos // of the last line read
	leaf     string    // the entry that the next one will follow; "" for none
	logLeaf  string    // the leaf according to the log: another writer may have moved it
	copied   string    // the entry that the leaf was last moved to for isCopied

	counts   counts
	listed   [len(kinds)][]int32 // the entries of some kinds, in order: see kindRow
	problems []Problem

	ids arena // of the nodes

	// Only of a chain: see tree_join.go.
	part        int             // the session that is being read
	before      int32           // how many nodes there were before it
	inBeginning bool            // the lines up to its marker are being read;
	marker      store.Pos       // where that is; if it is noLine, the first new entry ends the beginning
	copies      map[string]bool // the ids of the entries in its beginning
	afterDamage bool            // a damaged line comes after the last of these
	lostMarker  string          // the id of what may be its marker, which was lost: see addFirst
	lostAfter   int32           // and the leaf before it, or none

	// Only while loading:
	detail   headDetail
	pending  []pendingParent
	repeats  []repeat
	damage   []damage // ascending
	lost     damageIndex
	examined store.Pos // up to here, findDamage has looked

	visited  pathMarks
	revision int    // how often a gap was filled, a parent turned up late or a line was damaged: see pasts
	kept     []node // if the tree is extentContext: entries that the compaction in force keeps, before the part that was read
}

// counts is how many entries of each sort a tree has. If there are none, no path need be
// searched for them.
type counts struct {
	kinds    [len(kinds)]int
	speakers [speakerOther + 1]int // of messages
}

// repeat is a line that repeats the id of a node.
type repeat struct {
	at  int32
	pos store.Pos
}

// pendingParent is an entry whose parent had not been read yet. If guess is set, its line does
// not name the parent, and parent is the last entry before the line.
type pendingParent struct {
	child  int32
	parent string
	guess  bool
}

func newTree() *tree { return &tree{} }

// isWhole reports whether the tree goes back to the log's beginning.
func (t *tree) isWhole() bool { return t.extent == extentWhole }

// at returns the index of the node that has an id.
func (t *tree) at(id string) (int32, bool) { return t.byID.find(t.nodes, id) }

// loadTree reads a log from its beginning to a position.
func loadTree(ctx context.Context, log store.Log, end store.Pos, detail headDetail) (*tree, error) {
	t, err := readTree(ctx, log, end, detail, nil)
	if err != nil || len(t.repeats) == 0 {
		return t, err
	}
	repeated := make(map[string]bool)
	for _, r := range t.repeats {
		repeated[t.nodes[r.at].id] = true
	}
	damaged, err := rewritten(ctx, log, end, func(id []byte) bool { return repeated[string(id)] })
	if err != nil || len(damaged) == 0 {
		return t, err
	}
	return readTree(ctx, log, end, detail, damaged)
}

// readTree reads a log with some lines taken as damaged: see Rewritten.
func readTree(ctx context.Context, log store.Log, end store.Pos, detail headDetail, damaged map[store.Pos]bool) (*tree, error) {
	t := newTree()
	t.extent, t.detail = extentWhole, detail
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if line.Next > end {
			break
		}
		if err := t.enter(ctx, log, line.Pos); err != nil {
			return nil, err
		}
		if damaged[line.Pos] {
			t.end = line.Next
			t.addDamage(line)
		} else {
			t.addLine(line)
		}
		t.endBeginning(line)
		if len(t.nodes) == sample {
			t.expect(int(float64(sample) * float64(end) / float64(line.Next)))
		}
	}
	if err := t.enter(ctx, log, end); err != nil { // the last one may have no line
		return nil, err
	}
	if err := t.complete(ctx, log, end); err != nil {
		return nil, err
	}
	if severalIn(log) != nil {
		t.end = max(t.end, end) // the header of the last session is not shown
	}
	t.leaf = t.logLeaf
	return t, nil
}

// complete connects the tree of the lines that were read, up to a position.
func (t *tree) complete(ctx context.Context, log store.Log, end store.Pos) error {
	if slices.ContainsFunc(t.pending, t.isDangling) {
		if err := t.findDamage(ctx, log, end); err != nil {
			return err
		}
	}
	t.connect()
	return nil
}

func (t *tree) isDangling(p pendingParent) bool {
	_, ok := t.at(p.parent)
	return !ok
}

// findDamage looks for lines with only their first bytes intact. If a line was torn and the
// next one was joined to it, a missing parent may have been lost there.
func (t *tree) findDamage(ctx context.Context, log store.Log, end store.Pos) error {
	from := t.examined
	t.examined = end
	for line, err := range log.Forward(ctx, from) {
		if err != nil {
			return err
		}
		if line.Next > end {
			break
		}
		h, ok := rawjson.ScanHead(line.Data)
		if at, known := t.at(string(h.ID)); ok && known && !h.Whole && t.nodes[at].pos == line.Pos && !rawjson.Valid(line.Data) {
			t.damage = append(t.damage, damage{pos: line.Pos, before: at, ids: IDsIn(line.Data), taken: true})
		}
	}
	slices.SortFunc(t.damage, func(a, b damage) int { return cmp.Compare(a.pos, b.pos) })
	t.lost = damageIndex{}
	return nil
}

// sample is how many entries it takes to estimate how many a log has in all.
const sample = 256

// expect makes room for a number of entries and for some that will be appended later.
func (t *tree) expect(entries int) {
	t.nodes = slices.Grow(t.nodes, max(0, entries+entries/16-len(t.nodes)))
}

// addLine adds a line to the tree.
func (t *tree) addLine(line store.Line) {
	t.end = line.Next
	h, ok := rawjson.ScanHead(line.Data)
	switch {
	case line.Cut || !ok:
		if !rawjson.Blank(line.Data) {
			t.addDamage(line)
		}
	case string(h.Type) == string(TypeSession):
		if t.part == 0 {
			t.addHeader(line)
		}
	case len(h.ID) == 0:
		t.addDamage(line)
	case t.inBeginning:
		t.addBeginning(line, h)
	default:
		head := t.headLine(line, h)
		if !h.HasParent {
			t.attachToLast(&head)
		}
		t.addEntry(head)
	}
}

// attachToLast makes an entry that does not say what its parent is the child of the entry
// or gap before it. Our writers always say it, if only with null, so the line was damaged: one
// wrong bit in the name of the member is enough, and must not cut the path.
func (t *tree) attachToLast(h *headLine) {
	place := int32(len(t.nodes))
	if gap, ok := t.at(h.id); ok { // which this entry fills
		place = gap
	}
	last := t.lineBefore(place)
	if h.isRoot = last == none; !h.isRoot {
		h.parent, h.guessedParent = t.nodes[last].id, true
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

// headLine is a node before it is added to the tree.
type headLine struct {
	id, parent    string
	isRoot        bool // parent_id is null or empty
	guessedParent bool // it has no parent_id: see attachToLast
	attached      bool // parent is not the one in its line: see node
	kind          kind
	speaker       speaker
	pos, next     store.Pos
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

// headLine is newHeadLine without an allocation per line: the ids are kept together, and
// the parent's id is nearly always that of the entry before.
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
		t.repeats = append(t.repeats, repeat{at, h.pos})
		t.report(ProblemDuplicate, h.id, h.pos, fmt.Sprintf("the id is that of the entry at %d", t.nodes[at].pos))
		if t.isCopied(at, h) {
			t.logLeaf, t.copied = h.id, h.id
		}
		return // a repeated line must neither move the leaf back nor hide the first
	}
	if kinds[h.kind].reachesBack && t.extent == extentContext {
		t.extent = extentEnd // the context may now reach further back than the lines that were read
	}
	if h.kind == kindLeaf {
		t.logLeaf = h.parent
	} else {
		t.logLeaf = h.id
	}
}

// isCopied reports whether a line with the id of an earlier one is where it was written, after its
// parent, which is the leaf, and the earlier one is a copy in the place of other lines: it comes
// before its parent, or follows such a copy.
func (t *tree) isCopied(first int32, h headLine) bool {
	parent, ok := t.at(h.parent)
	if !ok || t.logLeaf != h.parent || h.kind == kindLeaf {
		return false
	}
	if parent < first {
		return t.copied == h.parent && t.nodes[first].parent == parent
	}
	at, ok := slices.BinarySearchFunc(t.pending, first, func(p pendingParent, child int32) int { return cmp.Compare(p.child, child) })
	return ok && t.pending[at].parent == h.parent || t.nodes[first].parent == parent
}

// add adds a node to the tree and finds its parent, or leaves that to connect. If there is
// a node with that id, it returns that one's index and false.
func (t *tree) add(h headLine) (at int32, ok bool) {
	i := int32(len(t.nodes))
	if len(t.nodes) == cap(t.nodes) {
		t.nodes = slices.Grow(t.nodes, len(t.nodes)+1) // doubles; append alone would copy a long session more often
	}
	t.nodes = append(t.nodes, node{id: h.id, pos: h.pos, parent: none, kind: h.kind, speaker: h.speaker, guessedParent: h.guessedParent, attached: h.attached})
	if other, ok := t.byID.add(t.nodes); !ok {
		t.nodes = t.nodes[:i]
		return other, false
	}
	switch {
	case h.isRoot:
	case h.guessedParent:
		t.pending = append(t.pending, pendingParent{i, h.parent, true})
	case i > 0 && t.nodes[i-1].id == h.parent:
		t.nodes[i].parent = i - 1 // nearly always
	default:
		if at, ok := t.at(h.parent); ok && at != i {
			t.nodes[i].parent = at
		} else {
			t.pending = append(t.pending, pendingParent{i, h.parent, false})
		}
	}
	t.count(i)
	return i, true
}

// count counts an entry, and lists it if its kind is listed.
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

// fillGap puts an entry where one was known to be missing: its line was damaged and
// written again, or comes after its children.
func (t *tree) fillGap(at int32, h headLine) {
	if t.live {
		t.nodes, t.live = slices.Clone(t.nodes), false
	}
	n := &t.nodes[at]
	n.pos, n.kind, n.speaker = h.pos, h.kind, h.speaker
	n.guessedParent, n.guessed = n.guessedParent || n.guessed, false
	t.visited = pathMarks{}
	t.revision++
	if n.attached = h.attached || n.attached && h.kind == kindContinues; !n.attached { // else the gap's own parent stays
		n.parent, n.guessedParent = none, h.guessedParent
		if !h.isRoot {
			t.pending = append(t.pending, pendingParent{at, h.parent, h.guessedParent})
		}
	}
	t.count(at)
}

// quoted is how much of a damaged line is examined to quote its beginning.
const quoted = 4 << 10

// addDamage records a line that cannot be read. If at least its id can be read, we know
// which entry was there, and it becomes a gap.
func (t *tree) addDamage(line store.Line) {
	t.revision++
	t.afterDamage = t.inBeginning
	h, ok := rawjson.LenientHead(line.Data)
	// Redact before shortening: no rule would recognise half of a secret.
	begin, _ := redact.Bytes(line.Data[:min(len(line.Data), quoted)])
	detail := fmt.Sprintf("not an entry: %.60q", begin)
	if line.Cut {
		detail = "longer than the limit; only its beginning was read"
	}
	last := t.lineBefore(int32(len(t.nodes)))
	ok = ok && len(h.ID) > 0 // an empty id does not count
	if _, known := t.at(string(h.ID)); !ok || known || string(h.Type) == string(TypeSession) {
		t.report(ProblemDamaged, "", line.Pos, detail)
		// The first line was the header, so it is not free for an entry that is missing.
		t.damage = append(t.damage, damage{pos: line.Pos, before: last, ids: IDsIn(line.Data), taken: line.Pos == 0})
		return
	}
	gap := newHeadLine(line, h)
	gap.kind = kindGap
	gap.attached = t.inBeginning
	if _, known := t.at(gap.parent); gap.attached || !h.HasParent || !gap.isRoot && !known {
		gap.isRoot = last == none // its parent is most likely the entry before it
		if !gap.isRoot {
			gap.parent, gap.guessedParent = t.nodes[last].id, true
		}
	}
	t.report(ProblemDamaged, gap.id, line.Pos, detail)
	at, _ := t.add(gap)
	t.damage = append(t.damage, damage{pos: line.Pos, before: at, ids: IDsIn(line.Data), taken: true})
}

func (t *tree) report(k ProblemKind, id string, pos store.Pos, detail string) {
	t.problems = append(t.problems, Problem{Kind: k, EntryID: id, Pos: pos, Detail: detail})
}

// resolveLeaf makes logLeaf an entry that is not itself a move of the leaf, and reports
// whether that could be determined.
func (t *tree) resolveLeaf() (known bool) {
	t.logLeaf, known = t.leafAfter(t.logLeaf)
	return known
}

// leafAfter returns where the leaf is after it was moved to an entry. That is the entry
// itself, unless it is a move of the leaf too. Then it is that entry's parent, and so on
// up to an entry that is not a move, or to none. known is false if the tree does not go
// back far enough to tell.
func (t *tree) leafAfter(id string) (_ string, known bool) {
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
