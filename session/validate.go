package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Everything that is written is checked here, whichever method writes it: Append and AppendAll, the
// typed methods, Graft, edits, merges, labels, continuations. An entry is checked in three steps:
//
//	step         looks at       asks                                       lock   file
//	checkForm    the entry      does its payload match its type?           no     validate.go
//	checkInLog   the log        may a compaction cut there, may a merge    no     validate_log.go
//	                            bring these entries?
//	assign       the tree       is the id free, do the parent and the      yes    validate_tree.go
//	                            target exist?
//
// The steps are in the order of their cost. checkInLog runs without the lock because reading may take
// long; write repeats it if the leaf has moved.
//
// Entries that are written together are checked in order, each as if those before it were already in
// the log. Grafted entries bring ids, parents and times of their own. Those of another program may be
// odd: they are kept where readers cope with them.

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

// checkMarker refuses a marker: the entries before it in a continuation count as copies.
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
	known := e.Type.IsKnown()
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
