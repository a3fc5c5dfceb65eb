package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// errNeedAll means that the end of a log is not enough and all of it must be read. It is
// never returned to a caller.
var errNeedAll = errors.New("the whole log is needed")

// errNeedState is errNeedAll for a compaction that did not record which model was in
// force.
var errNeedState = fmt.Errorf("%w: the state is somewhere in it", errNeedAll)

// How far back loadTail reads.
type tailGoal int

const (
	tailLeaf    tailGoal = iota // until the leaf is known
	tailContext                 // until the context at the leaf is known
)

// loadTail reads a log backwards from a position, only as far as the goal requires. So
// resuming a session costs as much as its context, not as much as its history.
//
// A log is not always what our writer would have left: lines may be repeated or damaged,
// and other programs may branch without a leaf entry. Wherever the end of the log alone
// could mislead, loadTail returns errNeedAll. It must never return a wrong leaf: appends
// would then go to the wrong branch.
//
// If the goal is the context, loadTail passes the lines of the leaf's path to onPath, the
// last one first.
//
// What it finds, from the last line towards the first:
//
//	the last line                 it is the leaf or, if it moves the leaf, its parent is
//	a line on the leaf's path     part of the context; the path goes on at its parent
//	a revert on the path          its target does not count
//	a compaction on the path      the context goes back to the first entry that it keeps; its
//	                              State says what counts before that
//	any other line                another branch: nothing
//	the marker of a chain's       it follows the line before it, which is the last one of the
//	session                       session before
//
// and what makes it give up: a line that cannot be read or does not fit the line after it, a
// merge that brings entries, and a compaction without a State. In a chain it also gives up at any
// compaction, where a session begins with anything but copies and a marker, and at a line of an
// earlier session that a copy in a later one may have to replace.
func loadTail(ctx context.Context, log store.Log, end store.Pos, goal tailGoal, onPath func(store.Line)) (*tree, error) {
	scan := tailScan{goal: goal, onPath: onPath, into: newTree(), reverted: make(reverts), chain: severalIn(log)}
	if scan.chain != nil && !scan.chain.isRegular() {
		return nil, errNeedAll
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return nil, err
		}
		done, err := scan.add(line)
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	t, err := scan.tree(end)
	if err == nil && scan.compacted && !t.isWhole() {
		t.kept, err = scan.readKept(ctx, log, t)
	}
	return t, err
}

// tailScan is the state of reading a log backwards along the leaf's path.
type tailScan struct {
	goal   tailGoal
	onPath func(store.Line)
	heads  headList // the latest first
	into   *tree    // the result; until tree is called it holds only the ids of the heads
	header *Header  // set when the beginning was reached
	leaf   string
	end    store.Pos // after the last line
	back   string    // where the leaf was when the line we saw last was written
	moved  bool      // the last line moved the leaf to an entry that we have not seen yet

	want      string // the next entry of the path, nearer to the root
	atRoot    bool   // the path is complete
	reverted  reverts
	compacted bool   // we have seen the compaction in force
	firstKept string // by that compaction
	kept      []KeptEntry
	targets   []string // of all reverts
	done      bool     // the goal is reached

	chain    *chainLog       // of several sessions, or nil
	marker   *headLine       // the last line that was seen, if it is a marker: it follows the next one
	onMarker bool            // the path goes on at the entry that the marker follows
	crossed  bool            // the last line that was seen is the last one of an earlier session
	copies   map[string]bool // of which the originals were not seen yet
}

// add takes the next line towards the beginning, and reports whether to stop.
func (s *tailScan) add(line store.Line) (stop bool, err error) {
	h, ok := rawjson.ScanHead(line.Data)
	switch {
	case s.done && string(h.Type) != string(TypeSession):
		if s.crossed && s.goal == tailContext {
			return false, errNeedAll // the last line of the session before must be checked against this one
		}
		return true, nil // one line more than needed, in case it was the header
	case line.Cut || !ok || len(h.ID) == 0 || !h.HasParent && string(h.Type) != string(TypeSession):
		return false, errNeedAll
	case string(h.Type) == string(TypeSession):
		if line.Pos != 0 || s.header != nil {
			return false, errNeedAll
		}
		s.header, err = decodeHeader(line.Data)
		if err != nil {
			return false, errNeedAll
		}
		return true, nil
	}
	if s.chain != nil && !h.Whole && line.Pos < s.chain.last().shift && !rawjson.Valid(line.Data) {
		return false, errNeedAll
	}
	head := s.addHead(line, h)
	first := s.heads.n == 1 // of the log, or of an earlier session
	second := s.heads.n == 2 || s.crossed
	if s.crossed = s.marker != nil; s.crossed {
		first, err = true, s.cross(head)
	}
	if s.chain != nil && err == nil {
		err = s.look(head)
	}
	if s.heads.n == 1 {
		s.end = line.Next
		s.begin(head)
	} else if err == nil && (s.goal == tailLeaf || second) {
		err = s.checkBefore(head)
	}
	if err == nil && (s.goal == tailLeaf || first) {
		err = s.lookBack(head, line.Data)
	}
	if err == nil && s.goal == tailContext && !s.atRoot && head.id == s.want {
		s.onPath(line)
		err = s.follow(head, line.Data)
	}
	if err == nil {
		err = s.checkMove(head)
	}
	if s.goal == tailLeaf && s.heads.n >= 2 && s.end-line.Pos > checkedBytes && !s.moved && s.marker == nil {
		s.done = true
	}
	return false, err
}

// look notes whether a line of a chain is a marker, or an entry of which a later session has a copy.
func (s *tailScan) look(head *headLine) error {
	if s.copies[head.id] && head.kind == kindOther {
		return errNeedAll // the copy may have a type that we know: see Rewritten
	}
	delete(s.copies, head.id)
	p := s.chain.joined()[s.chain.partAt(head.pos)]
	switch {
	case p.isSeam(head.pos):
		s.marker = head
		head.isRoot, head.attached = false, true
		if s.copies == nil {
			s.copies = make(map[string]bool)
		}
		maps.Copy(s.copies, p.given)
	case p.shift > 0 && (head.isRoot || head.kind == kindContinues):
		return errNeedAll // most likely it is the marker once more
	case p.shift > 0 && !isUUID7(head.id):
		return errNeedAll // an earlier session may have another entry of that id
	}
	return nil
}

// cross goes on from a marker to the last line of the session before: the marker follows it.
func (s *tailScan) cross(before *headLine) error {
	if before.kind == kindLeaf || !isUUID7(s.marker.id) {
		return errNeedAll // it follows what the leaf was moved to, or another may have its id
	}
	if s.onMarker {
		s.want, s.onMarker = before.id, false
	}
	s.marker.parent, s.back = before.id, before.id
	s.marker = nil
	return nil
}

// addHead records the first bytes of a line.
func (s *tailScan) addHead(line store.Line, h rawjson.Head) *headLine {
	head := headLine{isRoot: len(h.Parent) == 0, kind: kindOfType(h.Type), pos: line.Pos, next: line.Next}
	if last := s.heads.last; last != nil && last.parent == string(h.ID) {
		head.id = last.parent // nearly always
	} else {
		head.id = s.into.ids.keep(h.ID)
	}
	if !head.isRoot {
		head.parent = s.into.ids.keep(h.Parent)
	}
	s.heads.add(head)
	return s.heads.last
}

// headList is a list of heads in pieces. One list would be copied each time it grows, which
// for a long session costs as much as finding the heads.
type headList struct {
	pieces       [][]headLine
	n            int
	last, second *headLine // the two that were added last
}

func (l *headList) add(h headLine) {
	const most = 1024
	at := len(l.pieces) - 1
	if at < 0 || len(l.pieces[at]) == cap(l.pieces[at]) {
		at++
		l.pieces = append(l.pieces, make([]headLine, 0, min(32<<min(at, 8), most)))
	}
	l.pieces[at] = append(l.pieces[at], h)
	l.n++
	l.last, l.second = &l.pieces[at][len(l.pieces[at])-1], l.last
}

// checkMove makes sure that the leaf was moved to an entry that is not itself a move;
// otherwise only the whole log shows where the leaf is. It does not search for an entry
// that is far away, because reading everything costs less.
func (s *tailScan) checkMove(head *headLine) error {
	const far = 64 << 20
	if !s.moved {
		return nil
	}
	if head.id == s.leaf {
		s.moved = false
	}
	if head.id == s.leaf && head.kind == kindLeaf || s.end-head.pos > far {
		return errNeedAll
	}
	return nil
}

// checkedBytes is how much of the log's end must look like our writer's work before we
// believe its last line. Stores read that much in one go anyway.
const checkedBytes = 16 << 10

// begin finds the leaf in the last line.
func (s *tailScan) begin(last *headLine) {
	s.leaf = last.id
	if last.kind == kindLeaf {
		s.leaf = last.parent
	}
	s.want = s.leaf
	s.atRoot = s.leaf == ""
	s.moved = last.kind == kindLeaf && !s.atRoot
}

// lookBack notes where the leaf was when a line was written.
func (s *tailScan) lookBack(head *headLine, data []byte) error {
	s.back = head.parent
	if head.kind != kindLeaf {
		return nil
	}
	e, err := decodeEntry(data)
	if err != nil || e.Leaf.FromID == "" {
		return errNeedAll
	}
	s.back = e.Leaf.FromID
	return nil
}

// checkBefore checks a line against the line before it. Our writers append a child of the
// leaf, so the line before is the parent, or the leaf entry that moved to the parent, or a
// remark that another writer made at the parent. Or it belongs to another writer; then its
// id is older than this one's. Anything else may be a repeated line, which does not move
// the leaf.
func (s *tailScan) checkBefore(before *headLine) error {
	line := s.heads.second
	stood := before.id // where the leaf was before the line
	if before.kind == kindLeaf || before.kind.isRemark() && line.parent == before.parent {
		stood = before.parent
	}
	if line.id == before.id || s.back != stood && !(isUUID7(before.id) && isUUID7(line.id) && before.id < line.id) {
		return errNeedAll
	}
	return nil
}

// follow processes an entry of the path.
func (s *tailScan) follow(head *headLine, data []byte) error {
	s.want = head.parent
	s.atRoot, s.onMarker = head.isRoot, head == s.marker
	var err error
	if kinds[head.kind].reachesBack {
		err = s.control(head, data)
	}
	switch {
	case err != nil:
		return err
	case s.compacted && (s.firstKept == "" || s.firstKept == head.id):
		s.done = true
	case s.atRoot && s.compacted:
		return errNeedAll // the first kept entry is not on the path
	case s.atRoot:
		s.done = true
	}
	return nil
}

// control reads an entry that decides how far back the context goes.
func (s *tailScan) control(head *headLine, data []byte) error {
	e, err := decodeEntry(data)
	if err == nil && e.Revert != nil {
		s.targets = append(s.targets, e.Revert.TargetID)
	}
	switch {
	case err != nil:
		return errNeedAll
	case s.reverted[head.id]:
	case e.Revert != nil:
		s.reverted.add(head.id, e.Revert.TargetID)
	case e.Merge != nil && len(e.Merge.EntryIDs) > 0:
		return errNeedAll // they can be anywhere
	case e.Compaction != nil && !s.compacted:
		switch {
		case s.chain != nil:
			return errNeedAll
		case e.Compaction.State == nil:
			return errNeedState
		case e.Compaction.State.Kept == nil:
			return errNeedAll // what else counts is somewhere before it
		}
		s.compacted, s.kept = true, e.Compaction.State.Kept
		s.firstKept = e.Compaction.FirstKeptEntryID
	}
	return nil
}

// tree builds a tree from the lines that were read.
func (s *tailScan) tree(end store.Pos) (*tree, error) {
	if s.header == nil && !s.done || s.marker != nil {
		return nil, errNeedAll // the log has no header, or nothing comes before a marker
	}
	if len(s.copies) > 0 && (s.header != nil || s.goal == tailContext) {
		return nil, errNeedAll // a copy is all that is left of an entry
	}
	t := s.into
	t.end = end
	if s.chain != nil {
		t.part = len(s.chain.joined()) - 1
	}
	t.expect(s.heads.n)
	t.header = s.header
	if s.header != nil {
		t.extent = extentWhole
	}
	for _, piece := range slices.Backward(s.heads.pieces) {
		for i := len(piece) - 1; i >= 0; i-- {
			t.addEntry(piece[i])
		}
	}
	if t.isWhole() {
		t.connect()
	}
	t.pending = nil // parents before the part that was read are not missing
	if len(t.problems) > 0 || t.logLeaf != s.leaf {
		return nil, errNeedAll
	}
	t.leaf = t.logLeaf
	return t, nil
}

// keptNear is how far into the log we search for entries that are not where the compaction
// says. The log may be a copy that begins with a different header.
const keptNear = 64 << 10

// readKept finds the entries that the compaction in force keeps from before the part of the
// log that was read. If something before that part was reverted since, the list may have
// an entry too many or too few, so everything must be read.
func (s *tailScan) readKept(ctx context.Context, log store.Log, t *tree) ([]node, error) {
	for _, id := range s.targets {
		if _, ok := t.at(id); !ok {
			return nil, errNeedAll
		}
	}
	nodes := make([]node, 0, len(s.kept))
	var lost []KeptEntry
	for _, k := range s.kept {
		n, err := keptAt(ctx, log, k)
		if err != nil {
			return nil, err
		}
		if n == nil {
			lost = append(lost, k)
			continue
		}
		nodes = append(nodes, *n)
	}
	if len(lost) == 0 {
		return nodes, nil
	}
	found, err := searchKept(ctx, log, lost)
	return append(nodes, found...), err
}

// keptAt returns the entry whose line should be at a position, or nil.
func keptAt(ctx context.Context, log store.Log, k KeptEntry) (*node, error) {
	if k.At <= 0 {
		return nil, nil
	}
	for line, err := range log.Forward(ctx, k.At) {
		switch h, ok := rawjson.ScanHead(line.Data); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil: // the position is only a hint; if the disk fails, searchKept reports it
		case ok && !line.Cut && line.Pos == k.At && string(h.ID) == k.ID && string(h.Type) != string(TypeSession):
			return keptNode(line, h), nil
		}
		break
	}
	return nil, nil
}

func keptNode(line store.Line, h rawjson.Head) *node {
	head := newHeadLine(line, h)
	return &node{id: head.id, pos: head.pos, parent: none, kind: head.kind, speaker: head.speaker}
}

// searchKept searches the beginning of a log for entries.
func searchKept(ctx context.Context, log store.Log, lost []KeptEntry) ([]node, error) {
	var nodes []node
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if line.Cut || !ok || line.Pos > keptNear {
			return nil, errNeedAll
		}
		for _, k := range lost {
			if string(h.ID) == k.ID && string(h.Type) != string(TypeSession) {
				nodes = append(nodes, *keptNode(line, h))
			}
		}
		if len(nodes) == len(lost) {
			return nodes, nil
		}
	}
	return nil, errNeedAll
}
