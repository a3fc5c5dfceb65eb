package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The door. Everything that is written passes through here, whichever method writes it:
// Append and AppendAll, the typed methods, Graft, edits, merges, labels, continuations.
// An entry is checked in three steps:
//
//   - checkForm looks at the entry alone: does its payload match its type?
//   - checkInLog looks at what must be read from the log: may a compaction cut there, may a
//     merge bring these entries?
//   - assign looks at the tree, under the lock: is the id free, do the parent and the
//     target exist?
//
// The steps are in the order of their cost, and only the last one needs the lock. checkInLog
// runs without it because reading may take long; write repeats it if the leaf has moved.
//
// Entries that are written together are checked in order, each as if those before it were
// already in the log.

// maxID is the length of the longest id. The ids of all programs we know are far shorter,
// and opening a session keeps every id in memory.
const maxID = 1024

// wordLeaf is the word that people type for the leaf, whatever its id is.
const wordLeaf = "leaf"

// which names an entry in an error.
func (w *writing) which(i int) string {
	switch id := w.entries[i].ID; {
	case w.isNamed(i) && len(w.entries) > 1:
		return fmt.Sprintf("entry %.80q (%d of %d)", id, i+1, len(w.entries))
	case w.isNamed(i):
		return fmt.Sprintf("entry %.80q", id)
	case len(w.entries) > 1:
		return fmt.Sprintf("entry %d of %d", i+1, len(w.entries))
	}
	return "the entry"
}

// isNamed reports whether an entry has an id that the caller gave it.
func (w *writing) isNamed(i int) bool {
	return w.entries[i].ID != "" && !w.ownIDs && w.origin(i) != madeHere
}

// refuse returns an error that names the entry and says why it is refused: kind is the
// sentinel, why the explanation, which may be nil.
func (s *Session) refuse(w *writing, i int, kind, why error) error {
	switch {
	case why == nil:
		why = errors.New(w.which(i))
	case len(w.entries) > 1 || w.isNamed(i):
		why = fmt.Errorf("%s: %w", w.which(i), why)
	}
	return &Error{Op: w.op, Name: s.name, Kind: kind, Err: why}
}

// checkForm makes sure that an entry has the payload of its type and no other, and that
// each block of its content has the member of its type and no other: a reader would drop
// the rest. It fills in missing types of blocks. odd accepts oddities in entries that come
// from other programs.
func checkForm(e *Entry, odd bool) error {
	if err := e.checkPayload(); err != nil {
		return err
	}
	if len(e.ID) > maxID {
		return fmt.Errorf("its id has %d bytes; give it one of at most %d", len(e.ID), maxID)
	}
	if !utf8.ValidString(e.ID) { // it would read back as a different id
		return errors.New("its id is not UTF-8")
	}
	if !odd && (e.ID == wordLeaf || strings.ContainsFunc(e.ID, unicode.IsControl)) {
		return fmt.Errorf("an entry cannot have the id %.80q: it could not be typed; %q means the leaf, and control characters cannot be shown", e.ID, wordLeaf)
	}
	if !e.Timestamp.IsZero() && (e.Timestamp.Year() > 9999 || e.Timestamp.Year() < 0) {
		return fmt.Errorf("the time %s cannot be written: the year must be from 0 to 9999", e.Timestamp.Format(time.RFC3339))
	}
	k, p := e.payload()
	if c, ok := p.(checker); ok && !odd {
		if err := c.check(); err != nil {
			return err
		}
	}
	content := e.content()
	blocks, err := checkBlocks(content)
	if err == nil && (len(content) > MaxBlocks || countParts(content) > MaxBlocks) {
		err = fmt.Errorf(" has %w", errTooManyBlocks)
	}
	if err != nil {
		return fmt.Errorf("%s%w", kinds[k].contentName, err)
	}
	if !sameBlocks(blocks, content) {
		e.setContent(blocks)
	}
	return nil
}

// checkMarker refuses a marker: what comes before it in a continuation counts as copied.
func checkMarker(e *Entry) error {
	if e.Continues == nil {
		return nil
	}
	return fmt.Errorf("an entry of type %q marks where the copies end that a session begins with: only Continue writes one", e.Type)
}

// checkParent refuses a parent that the session would replace by the leaf.
func (w *writing) checkParent(i int) error {
	e := &w.entries[i]
	if e.ParentID == nil || e.Type == TypeLeaf || w.isGraft(i) {
		return nil
	}
	return fmt.Errorf("it names the parent %.80q, but an append follows the leaf: leave ParentID nil, or go there with Update and Tx.Branch", *e.ParentID)
}

// checkPayload makes sure that an entry has the payload of its type alone.
func (e *Entry) checkPayload() error {
	if e.Type == "" || e.Type == TypeSession || e.Type == TypeGap {
		return fmt.Errorf("an entry cannot have the type %q", e.Type)
	}
	of, ok := e.payloadType()
	known := e.Type.isKnown()
	switch {
	case !ok:
		return fmt.Errorf("an entry of type %q has several payloads: append one entry for each", e.Type)
	case known && of == "":
		return fmt.Errorf("an entry of type %q needs the payload of that name", e.Type)
	case of == "" || of.kind() == e.Type.kind():
		return nil
	}
	return fmt.Errorf("an entry of type %q has the payload of %q", e.Type, of)
}

// isRole reports whether a role is one that a message may be appended with.
func isRole(role MessageRole) bool {
	switch role {
	case RoleUser, RoleAssistant, RoleSystem, RoleTool, RoleBashExecution, RoleCustom, RoleBranchSummary, RoleCompactionSummary:
		return true
	}
	return false
}

// checkBlocks checks blocks. It returns them, or a copy if a type had to be filled in: the
// caller's blocks never change.
func checkBlocks(blocks []Content) ([]Content, error) {
	out := blocks
	for i := range blocks {
		c, changed, err := checkBlock(&blocks[i])
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		if !changed {
			continue
		}
		if sameBlocks(out, blocks) {
			out = slices.Clone(blocks)
		}
		out[i] = c
	}
	return out, nil
}

// countParts returns how many blocks the results among blocks have, within each other too.
func countParts(blocks []Content) (n int) {
	for i := range blocks {
		if r := blocks[i].ToolResult; r != nil {
			n += len(r.Parts) + countParts(r.Parts)
		}
	}
	return n
}

func sameBlocks(a, b []Content) bool { return len(a) == 0 || &a[0] == &b[0] }

// checkBlock checks a block. If it has to be written in a different form, it returns that
// form.
func checkBlock(c *Content) (_ Content, changed bool, _ error) {
	of, n := c.member()
	switch {
	case c.Raw != nil && n > 0:
		return *c, false, fmt.Errorf("a block has both Raw and %q: give each a block of its own", of)
	case c.Raw != nil:
		return readRaw(c)
	case n > 1:
		return *c, false, fmt.Errorf("a block of type %q has %d members: give each a block of its own", c.Type, n)
	case n == 0 && (c.Type == "" || c.Type.isKnown()):
		return *c, false, fmt.Errorf("a block of type %q needs the member of that name", c.Type)
	case n == 0:
		return *c, false, nil // an unknown type: Extra has its members
	case c.Type == "":
		filled := *c
		filled.Type = of
		return filled, true, checkParts(&filled, new(bool))
	case c.Type != of:
		return *c, false, fmt.Errorf("a block of type %q has the member of %q", c.Type, of)
	case c.ToolResult == nil || len(c.ToolResult.Parts) == 0:
		return *c, false, nil
	}
	filled := *c
	err := checkParts(&filled, &changed)
	return filled, changed, err
}

// checkParts checks the parts of a tool result.
func checkParts(c *Content, changed *bool) error {
	if c.ToolResult == nil {
		return nil
	}
	parts, err := checkBlocks(c.ToolResult.Parts)
	if err != nil {
		return fmt.Errorf("parts%w", err)
	}
	if !sameBlocks(parts, c.ToolResult.Parts) {
		r := *c.ToolResult
		r.Parts, c.ToolResult, *changed = parts, &r, true
	}
	return nil
}

// readRaw decodes a raw block the way readers will. What they understand must not slip
// through unchecked: it may be a tool call.
func readRaw(c *Content) (_ Content, changed bool, _ error) {
	var read Content
	if err := read.UnmarshalJSON(c.Raw); err != nil {
		return *c, false, fmt.Errorf("a raw block is not JSON: %w", err)
	}
	return read, read.Raw == nil, nil
}

// checkInLog makes the checks for which the log must be read.
func (s *Session) checkInLog(ctx context.Context, w *writing) error {
	if !w.needsLog() {
		return nil
	}
	w.checked, w.checkedLeaf = true, w.startLeaf(s.LeafID())
	for i := range w.entries {
		if !w.isCheckedInLog(i) {
			continue
		}
		_, p := w.entries[i].payload()
		if err := p.(logChecker).checkInLog(ctx, s, w, i); err != nil {
			return err
		}
	}
	w.checked = !w.graft // a graft brings its parents, so the leaf does not matter
	return nil
}

func (w *writing) needsLog() bool {
	for i := range w.entries {
		if w.isCheckedInLog(i) {
			return true
		}
	}
	return false
}

func (w *writing) isCheckedInLog(i int) bool {
	k, _ := w.entries[i].payload()
	return kinds[k].inLog == inLogAlways || kinds[k].inLog == inLogIfOurs && !w.isGraft(i)
}

// checkInLog makes sure that a compaction does not separate a tool call from its result, and
// records in its State what is in force, so that a resume need not search for it. Readers
// trust the State, so callers may not set it.
func (*CompactionEntry) checkInLog(ctx context.Context, s *Session, w *writing, i int) error {
	base, before := w.pathTo(w.before(i, w.checkedLeaf))
	c := *w.entries[i].Compaction
	if c.FirstKeptEntryID != "" && c.FirstKeptEntryID == w.entries[i].ID {
		c.FirstKeptEntryID = "" // which means the same
	}
	state, err := s.checkCompaction(ctx, base, before, c.FirstKeptEntryID, w.isGraft(i))
	var cut *CutError
	if errors.As(err, &cut) && len(w.entries) == 1 && !w.isNamed(i) {
		return err // it already says what is wrong
	}
	if err != nil {
		return s.refuse(w, i, nil, err)
	}
	if !w.isGraft(i) { // grafted compactions stay as they are
		c = *w.entries[i].Compaction
		if c.State != nil {
			state.Extra = c.State.Extra
		}
		c.State = state // replaces whatever the caller set
		w.entries[i].Compaction = &c
	}
	return nil
}

// parentRef is where an entry's parent is: at an index of the entries that are being
// written, or (at is -1) in the session. The id "" means no parent.
type parentRef struct {
	at int
	id string
}

// before returns where the parent of an entry is. leaf is the session's.
func (w *writing) before(i int, leaf string) parentRef {
	if w.isGraft(i) {
		return w.find(w.entries[i].ParentID, i)
	}
	if i == 0 {
		return parentRef{-1, leaf}
	}
	if last := &w.entries[i-1]; last.Type == TypeLeaf {
		return w.find(last.ParentID, i-1)
	}
	return parentRef{at: i - 1}
}

// find finds an entry among the first n that are being written, or takes it for
// one of the session.
func (w *writing) find(id *string, n int) parentRef {
	if id == nil {
		return parentRef{at: -1}
	}
	for i := n - 1; i >= 0; i-- {
		if w.entries[i].ID == *id {
			return parentRef{at: i}
		}
	}
	return parentRef{-1, *id}
}

// pathTo returns the path to a parent: the entry of the session where it begins,
// and the entries after that one which are only being written.
func (w *writing) pathTo(p parentRef) (base string, rest []*Entry) {
	for p.at >= 0 {
		rest = append(rest, &w.entries[p.at])
		p = w.before(p.at, w.checkedLeaf)
	}
	slices.Reverse(rest)
	return p.id, rest
}

// assign completes an entry with its parent, its id and its time, and makes sure
// that it fits into the tree. It is called with mu held for writing.
func (s *Session) assign(ctx context.Context, w *writing, b *batch, i int) error {
	e := &w.entries[i]
	graft := w.isGraft(i)
	if !graft {
		s.complete(w, e, b)
	}
	if err := s.checkID(ctx, w, b, i); err != nil {
		return err
	}
	if (graft || e.Type == TypeLeaf) && e.ParentID != nil {
		of, err := s.seek(ctx, w, b, i, *e.ParentID, "parent")
		if err != nil {
			return err
		}
		if of == kindLeaf && !graft { // a leaf is never a move: see standsAt
			to, err := s.standsAt(ctx, b, *e.ParentID)
			if err != nil {
				return err
			}
			if e.ParentID = &to; to == "" {
				e.ParentID = nil
			}
		}
	}
	switch {
	case e.Message != nil:
		return nil
	case graft:
		return s.checkKept(ctx, b, e)
	}
	return s.checkRefs(ctx, w, b, i)
}

// checkKept makes sure that what a grafted compaction says it keeps is there.
// Otherwise its list is left out, and readers look for themselves.
func (s *Session) checkKept(ctx context.Context, b *batch, e *Entry) error {
	if e.Compaction == nil || e.Compaction.State == nil || len(e.Compaction.State.Kept) == 0 {
		return nil
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	for _, k := range e.Compaction.State.Kept {
		if _, ok := s.tree.at(k.ID); ok || b.index(k.ID) >= 0 {
			continue
		}
		c, state := *e.Compaction, *e.Compaction.State
		state.Kept = nil
		c.State, e.Compaction = &state, &c
		return nil
	}
	return nil
}

// standsAt is that of the tree, with the batch on top. It reads the whole log if
// it must.
func (s *Session) standsAt(ctx context.Context, b *batch, id string) (string, error) {
	for i := b.index(id); i >= 0; i = b.index(id) {
		if b.heads[i].kind != kindLeaf {
			return id, nil
		}
		id = b.heads[i].parent
	}
	to, known := s.tree.standsAt(id)
	if known {
		return to, nil
	}
	err := s.whole(ctx)
	to, _ = s.tree.standsAt(id)
	return to, err
}

// complete gives an entry its parent and its time. Where a move of the leaf leads
// is the caller's to say.
func (s *Session) complete(w *writing, e *Entry, b *batch) {
	if e.Type != TypeLeaf {
		e.ParentID = nil
		switch {
		case b.leaf == "":
		case w.alone:
			w.parent = b.leaf
			e.ParentID = &w.parent
		default:
			leaf := b.leaf
			e.ParentID = &leaf
		}
	}
	if e.Timestamp.IsZero() && !e.hasOddTime() {
		b.now = s.opts.Now().UTC()
		e.Timestamp = b.now
	}
}

// hasOddTime reports whether the entry was read with a time that is not one,
// which is kept.
func (e *Entry) hasOddTime() bool {
	_, _, odd := e.Extra.take("timestamp")
	return odd
}

// checkID makes sure that an entry has an id that no other has. An id of our own
// is new: no table need be asked.
func (s *Session) checkID(ctx context.Context, w *writing, b *batch, i int) error {
	e := &w.entries[i]
	switch {
	case w.isGraft(i) && e.ID == "":
		return s.refuse(w, i, ErrInvalid, errors.New("an entry has no id; entries from elsewhere must have one"))
	case w.isGraft(i) && e.Timestamp.IsZero() && !e.hasOddTime():
		return s.refuse(w, i, ErrInvalid, errors.New("an entry has no time; entries from elsewhere must have one"))
	case e.ID == "" && b.now != (time.Time{}) && s.opts.ownIDs:
		e.ID, w.ownIDs = ids.next(b.now), true
		return nil
	case e.ID == "", w.origin(i) == madeHere:
		if e.ID == "" {
			e.ID, w.ownIDs = s.opts.NewID(e.Type), true
		}
		if e.ID == "" || len(e.ID) > maxID || !utf8.ValidString(e.ID) {
			return s.refuse(w, i, ErrInvalid, fmt.Errorf("Options.NewID made the id %.80q", e.ID))
		}
		return nil
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	if _, taken := s.tree.at(e.ID); taken || b.index(e.ID) >= 0 {
		return s.refuse(w, i, ErrExist, nil)
	}
	return nil
}

// seek finds an entry to which another one refers, among those that are written
// with it or in the session. It reads the whole log if it must.
func (s *Session) seek(ctx context.Context, w *writing, b *batch, i int, id, as string) (kind, error) {
	if at := b.index(id); at >= 0 {
		return b.heads[at].kind, nil
	}
	at, ok := s.tree.at(id)
	if !ok {
		if err := s.whole(ctx); err != nil {
			return 0, err
		}
		if at, ok = s.tree.at(id); !ok {
			return 0, s.lacks(w, i, id, as)
		}
	}
	return s.tree.nodes[at].kind, nil
}

// lacks says that an entry refers to one that is not there.
func (s *Session) lacks(w *writing, i int, id, as string) error {
	if len(w.entries) == 1 && !w.isNamed(i) {
		return s.errNoEntry(w.op, id)
	}
	return &Error{Op: w.op, Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry %.80q, the %s of %s", id, as, w.which(i))}
}

// checkRefs makes sure that the entries that an entry refers to exist, where checkInLog has
// not done so.
func (s *Session) checkRefs(ctx context.Context, w *writing, b *batch, i int) (err error) {
	k, _ := w.entries[i].payload()
	w.entries[i].eachRef(func(as ref, id *string) {
		switch {
		case err != nil || kinds[k].inLog != inLogNever:
		case as == refTarget:
			err = s.checkTarget(ctx, w, b, i, *id)
		case as == refFrom && *id != "":
			_, err = s.seek(ctx, w, b, i, *id, "from_id")
		}
	})
	return err
}

// checkTarget makes sure that what an entry acts on is there: anywhere, or on the
// path if it has an effect only there.
func (s *Session) checkTarget(ctx context.Context, w *writing, b *batch, i int, id string) error {
	k, _ := w.entries[i].payload()
	of, err := s.seek(ctx, w, b, i, id, "target")
	rule := kinds[k].target
	if err != nil || rule == nil {
		return err
	}
	if !slices.Contains(rule.kinds, of) {
		return s.refuse(w, i, ErrInvalid, fmt.Errorf("entry %q is of type %s; %s", id, of.entryType(), rule.words))
	}
	if s.isOnPath(b, id) {
		return nil
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	if !s.isOnPath(b, id) {
		return s.refuse(w, i, ErrInvalid, fmt.Errorf("entry %q is not on the path to the leaf %q", id, b.leaf))
	}
	return nil
}

// isOnPath reports whether an entry is on the path that the batch has come to. It
// looks at runs of entries that follow one another: a batch has few, however long
// it is.
func (s *Session) isOnPath(b *batch, id string) bool {
	target, leaf := b.index(id), b.leaf
	for at := b.index(leaf); at >= 0; at = b.index(leaf) {
		if target >= b.runs[at] && target <= at {
			return true
		}
		leaf = b.heads[b.runs[at]].parent
	}
	return target < 0 && s.tree.isOnPath(id, leaf)
}
