package session_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// TestModel does random things to a session through two handles, as two
// processes would, and to the naive model, and compares what they make of it.
func TestModel(t *testing.T) {
	soak.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		t.Repeat(map[string]func(*rapid.T){
			"":                m.check,
			"text":            m.appendText,
			"answer":          m.appendAnswer,
			"think":           m.appendThinking,
			"call":            m.appendCalls,
			"result":          m.appendResults,
			"result again":    m.appendResults,
			"state":           m.appendState,
			"meta":            m.appendMeta,
			"bulk":            m.appendBulk,
			"label":           m.setLabel,
			"branch":          m.branch,
			"branch summary":  m.branchWithSummary,
			"reset":           m.resetLeaf,
			"compact":         m.compact,
			"compact legally": m.compactLegally,
			"foreign compact": m.appendForeignCompaction,
			"undo":            m.undo,
			"revert":          m.revert,
			"edit":            m.edit,
			"merge":           m.merge,
			"several":         m.appendSeveral,
			"new file":        m.createBranchedSession,
			"fork":            m.fork,
			"reload":          m.reload,
			"refresh":         m.refresh,
			"archive":         m.archive,
			"look at context": m.lookAtContext,
			"look at all":     m.lookAtAll,
		})
	})
}

// machine is a session and its model.
type machine struct {
	name  string
	hands [2]*handle
	log   []modelEntry

	count  int      // of ids made
	issued []string // ids made by the operation at hand

	// Two contexts have the same fingerprint if and only if they are the same.
	prints map[string]session.Fingerprint
	texts  map[session.Fingerprint]string
}

// handle is one of the two open sessions, and what the model knows of it.
type handle struct {
	store *file.Store
	s     *session.Session
	grows bool   // it has OnConflict: GrowBranch
	seen  int    // how much of the log it knows
	leaf  string // where it stands
}

var modelTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newMachine(t *rapid.T) *machine {
	m := &machine{
		name:   "model",
		prints: make(map[string]session.Fingerprint),
		texts:  make(map[session.Fingerprint]string),
	}
	disk := vfstest.NewMemory()
	for i := range m.hands {
		st, err := file.Open("/sessions", &file.Options{FS: disk, Sync: file.Never})
		noError(t, err)
		h := &handle{store: st, grows: i == 1}
		if i == 0 {
			h.s, err = session.Create(t.Context(), st, session.Header{ID: m.name}, m.options(h))
		} else {
			h.s, err = session.Open(t.Context(), st, m.name, m.options(h))
		}
		noError(t, err)
		m.hands[i] = h
	}
	return m
}

func noError(t interface {
	Helper()
	Fatal(...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) close(t *rapid.T) {
	log, err := m.hands[0].store.Open(t.Context(), m.name)
	noError(t, err)
	readSchema(t).checkLog(t, log)
	noError(t, log.Close())
	for _, h := range m.hands {
		noError(t, h.s.Close())
		noError(t, h.store.Close())
	}
}

// options makes ids that the model knows, and blobs of little content.
func (m *machine) options(h *handle) *session.Options {
	o := &session.Options{
		BlobThreshold: 32,
		Now:           func() time.Time { return modelTime },
		NewID: func(session.EntryType) string {
			m.count++
			m.issued = append(m.issued, fmt.Sprintf("019a0000-0000-7000-8000-%012d", m.count))
			return m.issued[len(m.issued)-1]
		},
	}
	if h.grows {
		o.OnConflict = session.GrowBranch
	}
	return o
}

// hand picks one of the handles to work with.
func (m *machine) hand(t *rapid.T) *handle {
	m.issued = nil
	return m.hands[rapid.IntRange(0, 1).Draw(t, "hand")]
}

// known is the log as a handle knows it.
func (m *machine) known(h *handle) []modelEntry { return m.log[:h.seen] }

func (m *machine) path(h *handle) []modelEntry { return pathTo(m.known(h), h.leaf) }

// done checks the outcome of an append that the model finds legal, and takes
// the entries into the model. Each follows the one before, unless it moves the
// leaf.
func (m *machine) done(t *rapid.T, h *handle, err error, entries ...modelEntry) {
	t.Helper()
	if !h.grows && slices.ContainsFunc(m.log[h.seen:], isNoRemark) {
		var conflict *session.ConflictError
		if !errors.As(err, &conflict) || !errors.Is(err, session.ErrConflict) {
			t.Fatalf("error is %v, want a conflict", err)
		}
		if conflict.Leaf != h.leaf || conflict.Theirs != leafOf(m.log) {
			t.Fatalf("conflict of %q with %q, want %q with %q", conflict.Leaf, conflict.Theirs, h.leaf, leafOf(m.log))
		}
		h.seen = len(m.log)
		return
	}
	noError(t, err)
	if h.seen == 0 && !h.grows {
		h.leaf = leafOf(m.log) // others have begun the session with remarks
	}
	for i, e := range entries {
		if e.id == "" {
			e.id = m.issued[i]
		}
		if e.kind != session.TypeLeaf {
			e.parent = h.leaf
		}
		m.log = append(m.log, e)
		h.leaf = leafAfter(m.log, e)
	}
	h.seen = len(m.log)
}

// isNoRemark reports whether an entry is in the way of another writer: labels,
// names and custom entries are not.
func isNoRemark(e modelEntry) bool {
	return e.kind != session.TypeLabel && e.kind != session.TypeSessionInfo && e.kind != session.TypeCustom
}

// refused checks that an append was refused for the given reason.
func refused(t *rapid.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, want one that matches %q", err, kind)
	}
}

// anyID picks an entry of a list, or none that exists.
func anyID(t *rapid.T, from []modelEntry) string {
	at := rapid.IntRange(-1, 12*len(from)-1).Draw(t, "entry")
	if at < 0 {
		return "nothing"
	}
	return from[at%len(from)].id
}

func onPath(path []modelEntry, id string) bool {
	_, ok := find(path, id)
	return ok
}

// Appending.

func (m *machine) appendText(t *rapid.T) {
	role := rapid.SampledFrom([]session.MessageRole{
		session.RoleUser, session.RoleUser, session.RoleUser, session.RoleSystem, session.RoleBashExecution,
	}).Draw(t, "role")
	m.appendMessage(t, modelEntry{role: string(role), blocks: []block{anyText(t)}})
}

func anyText(t *rapid.T) block {
	return block{Kind: session.ContentTypeText, Text: rapid.SampledFrom([]string{"a", "b", "c", strings.Repeat("long ", 20)}).Draw(t, "text")}
}

func (m *machine) appendAnswer(t *rapid.T) {
	m.appendMessage(t, anyResponse(t, []block{anyText(t)}))
}

func (m *machine) appendThinking(t *rapid.T) {
	m.appendMessage(t, anyResponse(t, []block{{Kind: session.ContentTypeThinking, Text: "hm"}}))
}

// anyResponse is a message of the model.
func anyResponse(t *rapid.T, blocks []block) modelEntry {
	e := modelEntry{role: session.RoleAssistant, blocks: blocks}
	e.response = rapid.SampledFrom([]string{"", "", "r1", "r2"}).Draw(t, "response")
	e.model = rapid.SampledFrom([]string{"", "", "m1", "m2"}).Draw(t, "model")
	if e.model != "" {
		e.provider = rapid.SampledFrom([]string{"", "p1"}).Draw(t, "provider")
	}
	return e
}

func (m *machine) appendCalls(t *rapid.T) {
	var blocks []block
	if rapid.Bool().Draw(t, "with text") {
		blocks = append(blocks, anyText(t))
	}
	for range rapid.IntRange(1, 3).Draw(t, "calls") {
		// Mostly new ids; some providers use theirs again.
		id := rapid.SampledFrom([]string{"", "", "", "x", "y"}).Draw(t, "call")
		if id == "" {
			m.count++
			id = "c" + strconv.Itoa(m.count)
		}
		blocks = append(blocks, block{Kind: session.ContentTypeToolUse, ID: id, Text: "go"})
	}
	m.appendMessage(t, anyResponse(t, blocks))
}

// appendResults answers calls of the path: the latest ones, or any, or none.
func (m *machine) appendResults(t *rapid.T) {
	m.issued = nil
	h := m.hand(t)
	calls := []string{"orphan"}
	for _, e := range m.path(h) {
		for _, b := range e.blocks {
			if b.Kind == session.ContentTypeToolUse {
				calls = append(calls, b.ID)
			}
		}
	}
	var blocks []block
	for range rapid.IntRange(1, 2).Draw(t, "results") {
		back := rapid.IntRange(0, min(4, len(calls)-1)).Draw(t, "back")
		text := rapid.SampledFrom([]string{"ok", "bad", strings.Repeat("much output ", 9)}).Draw(t, "text")
		blocks = append(blocks, block{Kind: session.ContentTypeToolResult, ID: calls[len(calls)-1-back], Text: text, Failed: text == "bad"})
	}
	role := rapid.SampledFrom([]session.MessageRole{session.RoleTool, session.RoleTool, session.RoleUser}).Draw(t, "role")
	if role == session.RoleUser && rapid.Bool().Draw(t, "with text") {
		blocks = append(blocks, anyText(t))
	}
	m.appendMessageTo(t, h, modelEntry{role: string(role), blocks: blocks})
}

func (m *machine) appendMessage(t *rapid.T, e modelEntry) { m.appendMessageTo(t, m.hand(t), e) }

func (m *machine) appendMessageTo(t *rapid.T, h *handle, e modelEntry) {
	e.kind = session.TypeMessage
	var err error
	if e.response == "" && e.model == "" {
		_, err = h.s.AppendMessage(e.role, contents(e.blocks))
	} else {
		err = h.s.Append(realEntry(e))
	}
	m.done(t, h, err, e)
}

func (m *machine) appendState(t *rapid.T) {
	h := m.hand(t)
	if rapid.Bool().Draw(t, "model") {
		e := modelEntry{
			kind: session.TypeModelChange, provider: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "provider"),
			model: rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(t, "model"),
		}
		_, err := h.s.AppendModelChange(e.provider, e.model)
		m.done(t, h, err, e)
		return
	}
	level := rapid.SampledFrom([]string{"off", "low", "high"}).Draw(t, "level")
	_, err := h.s.AppendThinkingLevelChange(level)
	m.done(t, h, err, modelEntry{kind: session.TypeThinkingLevel, text: level})
}

func (m *machine) appendMeta(t *rapid.T) {
	h := m.hand(t)
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		name := rapid.SampledFrom([]string{"one", "two", ""}).Draw(t, "name")
		_, err := h.s.AppendSessionInfo(name)
		m.done(t, h, err, modelEntry{kind: session.TypeSessionInfo, text: name})
	case 1:
		_, err := h.s.AppendCustomEntry("test", map[string]any{"n": 1.0})
		m.done(t, h, err, modelEntry{kind: session.TypeCustom})
	case 2: // a type of the future, with an id of the caller's
		m.count++
		e := modelEntry{kind: "hologram", id: "own" + strconv.Itoa(m.count)}
		m.done(t, h, h.s.Append(session.Entry{Type: e.kind, ID: e.id}), e)
	}
}

// appendBulk appends so much that who opens the session reads no further back
// than this, unless it must.
func (m *machine) appendBulk(t *rapid.T) {
	h := m.hand(t)
	_, err := h.s.AppendCustomEntry("bulk", map[string]any{"pad": strings.Repeat("x", 20<<10)})
	m.done(t, h, err, modelEntry{kind: session.TypeCustom})
}

func (m *machine) appendSeveral(t *rapid.T) {
	h := m.hand(t)
	call := block{Kind: session.ContentTypeToolUse, ID: "x", Text: "go"}
	entries := []modelEntry{
		{kind: session.TypeMessage, role: session.RoleUser, blocks: []block{anyText(t)}},
		{kind: session.TypeMessage, role: session.RoleAssistant, blocks: []block{call}},
		{kind: session.TypeMessage, role: session.RoleTool, blocks: []block{{Kind: session.ContentTypeToolResult, ID: "x", Text: "ok"}}},
	}[:rapid.IntRange(1, 3).Draw(t, "entries")]
	var batch []session.Entry
	for _, e := range entries {
		batch = append(batch, realEntry(e))
	}
	_, err := h.s.AppendAll(batch...)
	m.done(t, h, err, entries...)
}

func (m *machine) setLabel(t *rapid.T) {
	h := m.hand(t)
	target := anyID(t, m.known(h))
	label := rapid.SampledFrom([]string{"start", "end", ""}).Draw(t, "label")
	_, err := h.s.SetLabel(target, label)
	if !onPath(m.known(h), target) {
		refused(t, err, session.ErrNotExist)
		return
	}
	m.done(t, h, err, modelEntry{kind: session.TypeLabel, target: target, text: label})
}

// Moving.

func (m *machine) branch(t *rapid.T) {
	h := m.hand(t)
	target := anyID(t, m.known(h))
	err := h.s.Branch(target)
	switch {
	case !onPath(m.known(h), target):
		refused(t, err, session.ErrNotExist)
	case h.leaf == target && leafOf(m.known(h)) == target:
		noError(t, err) // there is nothing to record
	default:
		m.done(t, h, err, modelEntry{kind: session.TypeLeaf, parent: standsAt(m.known(h), target)})
	}
}

// standsAt returns where a leaf stands that is moved to an entry.
func standsAt(log []modelEntry, id string) string {
	e, _ := find(log, id)
	return leafAfter(log, e)
}

func (m *machine) branchWithSummary(t *rapid.T) {
	h := m.hand(t)
	target := anyID(t, m.known(h))
	_, err := h.s.BranchWithSummary(target, "left behind")
	if !onPath(m.known(h), target) {
		refused(t, err, session.ErrNotExist)
		return
	}
	m.done(t, h, err, modelEntry{kind: session.TypeLeaf, parent: standsAt(m.known(h), target)}, modelEntry{kind: session.TypeBranchSummary, text: "left behind"})
}

func (m *machine) resetLeaf(t *rapid.T) {
	h := m.hand(t)
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		t.Skip("several roots are rare")
	}
	err := h.s.ResetLeaf()
	if h.leaf == "" && leafOf(m.known(h)) == "" {
		noError(t, err)
		return
	}
	m.done(t, h, err, modelEntry{kind: session.TypeLeaf})
}

// Compaction and what takes it back.

func (m *machine) compact(t *rapid.T) {
	h := m.hand(t)
	first := ""
	if rapid.IntRange(0, 5).Draw(t, "keep") > 0 {
		first = anyID(t, m.known(h))
	}
	m.appendCompaction(t, h, first)
}

func (m *machine) compactLegally(t *rapid.T) {
	h := m.hand(t)
	legal, _ := cutsOf(m.path(h))
	if len(legal) == 0 {
		t.Skip("nothing can be cut")
	}
	m.appendCompaction(t, h, m.path(h)[rapid.SampledFrom(legal).Draw(t, "cut")].id)
}

func (m *machine) appendCompaction(t *rapid.T, h *handle, first string) {
	t.Helper()
	path := m.path(h)
	// What the compaction in force has left out does not matter any more,
	// unless it is to be kept again.
	if _, from, ok := compactionOf(path); ok && (first == "" || onPath(path[from:], first)) {
		path = path[from:]
	}
	summary := rapid.SampledFrom([]string{"summary", "another"}).Draw(t, "summary")
	legal, pending := cutsOf(path)
	var err error
	if rapid.Bool().Draw(t, "generic") {
		err = h.s.Append(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: summary, FirstKeptEntryID: first}})
	} else {
		_, err = h.s.AppendCompaction(summary, first, 100)
	}
	at := slices.IndexFunc(path, func(e modelEntry) bool { return e.id == first })
	if pending && first == "" || first != "" && !slices.Contains(legal, at) {
		var cut *session.CutError
		if !errors.As(err, &cut) || !errors.Is(err, session.ErrInvalid) || cut.EntryID != first || cut.Reason == "" {
			t.Fatalf("compaction that keeps from %q on gives %v, want a CutError", first, err)
		}
		return
	}
	m.done(t, h, err, modelEntry{kind: session.TypeCompaction, text: summary, firstKept: first})
}

// appendForeignCompaction appends what another program might: without a state,
// and cut anywhere. No session of ours would: it goes right into the log.
func (m *machine) appendForeignCompaction(t *rapid.T) {
	m.count++
	e := modelEntry{kind: session.TypeCompaction, id: "own" + strconv.Itoa(m.count), text: "foreign", parent: leafOf(m.log)}
	switch rapid.IntRange(0, 4).Draw(t, "keep") {
	case 0:
	case 1:
		e.firstKept = e.id
	default:
		e.firstKept = anyID(t, m.log)
	}
	entry := session.Entry{
		Type: e.kind, ID: e.id, Timestamp: modelTime,
		Compaction: &session.CompactionEntry{Summary: e.text, FirstKeptEntryID: e.firstKept},
	}
	if e.parent != "" {
		entry.ParentID = &e.parent
	}
	line, err := entry.MarshalJSON()
	noError(t, err)
	log, err := m.hands[0].store.Open(t.Context(), m.name)
	noError(t, err)
	defer log.Close()
	end, err := log.End(t.Context())
	noError(t, err)
	_, err = log.Append(t.Context(), end, line)
	noError(t, err)
	m.log = append(m.log, e)
}

func (m *machine) undo(t *rapid.T) {
	h := m.hand(t)
	_, err := h.s.Undo()
	c, _, ok := compactionOf(m.path(h))
	if !ok {
		refused(t, err, session.ErrNotExist)
		return
	}
	m.done(t, h, err, modelEntry{kind: session.TypeRevert, target: c.id})
}

func (m *machine) revert(t *rapid.T) {
	h := m.hand(t)
	revertible := []session.EntryType{session.TypeCompaction, session.TypeContextEdit, session.TypeMerge, session.TypeRevert}
	from := m.known(h)
	if rapid.IntRange(0, 5).Draw(t, "any") > 0 {
		from = slices.DeleteFunc(slices.Clone(from), func(e modelEntry) bool { return !slices.Contains(revertible, e.kind) })
	}
	target := anyID(t, from)
	_, err := h.s.AppendEntry(session.Revert(target))
	switch e, ok := find(m.known(h), target); {
	case !ok:
		refused(t, err, session.ErrNotExist)
	case !slices.Contains(revertible, e.kind), !onPath(m.path(h), target):
		refused(t, err, session.ErrInvalid)
	default:
		m.done(t, h, err, modelEntry{kind: session.TypeRevert, target: target})
	}
}

func (m *machine) edit(t *rapid.T) {
	h := m.hand(t)
	e := modelEntry{kind: session.TypeContextEdit, target: anyID(t, m.known(h))}
	if rapid.Bool().Draw(t, "replace") {
		e.replacement = []block{anyText(t)}
	}
	_, err := h.s.AppendEntry(session.ContextEdit(e.target, contents(e.replacement)...))
	switch target, ok := find(m.known(h), e.target); {
	case !ok:
		refused(t, err, session.ErrNotExist)
	case target.kind != session.TypeMessage, !onPath(m.path(h), target.id):
		refused(t, err, session.ErrInvalid)
	default:
		m.done(t, h, err, e)
	}
}

func (m *machine) merge(t *rapid.T) {
	h := m.hand(t)
	from := anyID(t, m.known(h))
	var path []modelEntry
	if onPath(m.known(h), from) {
		path = pathTo(m.known(h), from)
	}
	e := modelEntry{kind: session.TypeMerge, text: rapid.SampledFrom([]string{"", "outcome"}).Draw(t, "summary")}
	for range rapid.IntRange(0, 3).Draw(t, "picks") {
		if len(path) > 0 {
			e.picks = append(e.picks, anyID(t, path))
		}
	}
	_, err := h.s.AppendEntry(session.Merge(from, e.text, e.picks...))
	var picked []shown
	messages := true
	for _, id := range e.picks {
		p, _ := find(path, id)
		messages = messages && p.kind == session.TypeMessage
		picked = append(picked, shown{Role: p.role, Blocks: p.blocks})
	}
	_, torn := pair(picked)
	there := broughtBy(append(slices.Clone(m.path(h)), modelEntry{id: "the merge", picks: e.picks}))["the merge"]
	switch {
	case e.text == "" && len(e.picks) == 0:
		refused(t, err, session.ErrInvalid)
	case !onPath(m.known(h), from):
		refused(t, err, session.ErrNotExist)
	case !messages || torn > 0 || len(there) < len(e.picks):
		refused(t, err, session.ErrInvalid)
	default:
		m.done(t, h, err, e)
	}
}

// Other files and other processes.

func (m *machine) createBranchedSession(t *rapid.T) {
	h := m.hand(t)
	leaf := anyID(t, m.known(h))
	path, err := h.s.CreateBranchedSession(leaf)
	if !onPath(m.known(h), leaf) {
		refused(t, err, session.ErrNotExist)
		return
	}
	noError(t, err)
	name := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".jsonl")
	s, err := session.Open(t.Context(), h.store, name, m.options(h))
	noError(t, err)
	defer s.Close()
	if got := s.Header(); got.ParentSession != m.name || got.Relation != session.RelationFork {
		t.Fatalf("the new session's header is %+v", got)
	}
	log := branchedLog(m.known(h), leaf)
	m.wantContext(t, s, "", contextOf(log, pathTo(log, leaf)), pathTo(log, leaf))
	m.wantBranched(t, s, log, pathTo(log, leaf), m.known(h))
	noError(t, s.Close())
	noError(t, h.store.Remove(t.Context(), name))
}

// wantBranched checks the tree of a session made from a path: it has the
// entries of the log, and on the path's end perhaps labels and the name that the
// original has.
func (m *machine) wantBranched(t *rapid.T, s *session.Session, log, path, original []modelEntry) {
	t.Helper()
	var ids []string
	copies := make(map[string]bool)
	for e, err := range s.Entries() {
		noError(t, err)
		if !onPath(log, e.ID) && e.Type != session.TypeLabel && e.Type != session.TypeLeaf && e.Type != session.TypeSessionInfo {
			t.Fatalf("the new session has entry %s of type %s, which is none of its own", e.ID, e.Type)
		}
		if onPath(log, e.ID) {
			ids = append(ids, e.ID)
			copies[e.ID] = true
		}
	}
	wantEqual(t, "copied entries", ids, idsOf(log))
	got, err := s.Labels()
	noError(t, err)
	maps.DeleteFunc(got, func(id, _ string) bool { return !copies[id] })
	want := maps.Clone(labelsOf(original))
	maps.DeleteFunc(want, func(id, _ string) bool { return !copies[id] })
	wantEqual(t, "labels of the new session", got, want)
	name, err := s.Name()
	noError(t, err)
	wantEqual(t, "name of the new session", name, nameOf(original))
	now, err := s.Forward("")
	noError(t, err)
	var onward []string
	for _, e := range now {
		if onPath(log, e.ID) && e.Type != session.TypeLeaf {
			onward = append(onward, e.ID)
		}
	}
	path = slices.DeleteFunc(slices.Clone(path), func(e modelEntry) bool { return e.kind == session.TypeLeaf })
	wantEqual(t, "path of the new session", onward, idsOf(path))
}

func (m *machine) fork(t *rapid.T) {
	h := m.hand(t)
	s, err := h.s.Fork(t.Context(), h.store, &session.ForkOptions{Options: m.options(h)})
	noError(t, err)
	defer s.Close()
	name := s.ID()
	log := slices.Clone(m.known(h))
	if h.leaf != leafOf(log) {
		log = append(log, modelEntry{kind: session.TypeLeaf, id: m.issued[len(m.issued)-1], parent: h.leaf})
	}
	m.wantAll(t, s, log, h.leaf)
	noError(t, s.Close())
	s, err = session.Open(t.Context(), h.store, name, m.options(h))
	noError(t, err)
	m.wantAll(t, s, log, h.leaf)
	noError(t, s.Close())
	noError(t, h.store.Remove(t.Context(), name))
}

func (m *machine) reload(t *rapid.T) {
	h := m.hand(t)
	noError(t, h.s.Close())
	var err error
	h.s, err = session.Open(t.Context(), h.store, m.name, m.options(h))
	noError(t, err)
	h.seen, h.leaf = len(m.log), leafOf(m.log)
}

func (m *machine) refresh(t *rapid.T) {
	h := m.hand(t)
	news, err := h.s.Refresh()
	noError(t, err)
	wantEqual(t, "whether Refresh found something new", news, h.seen < len(m.log))
	h.seen, h.leaf = len(m.log), leafOf(m.log)
}

func (m *machine) archive(t *rapid.T) {
	h := m.hand(t)
	noError(t, h.store.Archive(t.Context(), m.name))
	if rapid.Bool().Draw(t, "bring back") {
		noError(t, h.store.Unarchive(t.Context(), m.name))
	}
}

// Comparing.

// check looks at what costs the handles nothing, and at the session as it is
// when it is opened anew: the context that is built from the log's end must be
// that of the whole log.
func (m *machine) check(t *rapid.T) {
	for i, h := range m.hands {
		wantEqual(t, fmt.Sprintf("leaf of handle %d", i), h.s.LeafID(), h.leaf)
	}
	st := m.hands[0].store
	tail, err := session.Open(context.Background(), st, m.name, nil)
	noError(t, err)
	defer tail.Close()
	whole, err := session.Open(context.Background(), st, m.name, nil)
	noError(t, err)
	defer whole.Close()
	m.wantAll(t, whole, m.log, leafOf(m.log))
	fromTail, err := tail.Context(session.ContextOptions{})
	noError(t, err)
	fromWhole, err := whole.Context(session.ContextOptions{})
	noError(t, err)
	wantEqual(t, "context from the log's end", fromTail, fromWhole)
}

func (m *machine) lookAtContext(t *rapid.T) {
	h := m.hand(t)
	path := m.path(h)
	m.wantContext(t, h.s, "", contextOf(m.known(h), path), path)
}

func (m *machine) lookAtAll(t *rapid.T) {
	h := m.hand(t)
	m.wantAll(t, h.s, m.known(h), h.leaf)
	if h.seen > 0 {
		other := rapid.SampledFrom(m.known(h)).Draw(t, "other leaf").id
		path := pathTo(m.known(h), other)
		m.wantContext(t, h.s, other, contextOf(m.known(h), path), path)
	}
}

// wantAll compares all that a session tells with a log and a leaf.
func (m *machine) wantAll(t *rapid.T, s *session.Session, log []modelEntry, leaf string) {
	t.Helper()
	wantEqual(t, "leaf", s.LeafID(), leaf)
	forest, err := s.GetTree()
	noError(t, err)
	wantEqual(t, "tree", drawn(forest, ""), treeOf(log, "", ""))
	labels, err := s.Labels()
	noError(t, err)
	wantEqual(t, "labels", labels, labelsOf(log))
	name, err := s.Name()
	noError(t, err)
	wantEqual(t, "name", name, nameOf(log))

	path := pathTo(log, leaf)
	entries, err := s.Forward("")
	noError(t, err)
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	wantEqual(t, "path", ids, idsOf(path))
	var cuts session.Cuts
	for _, e := range entries {
		cuts.Add(e)
	}
	legal, pending := cutsOf(path)
	wantEqual(t, "cut points", cuts.Legal(), legal, cmpopts.EquateEmpty())
	wantEqual(t, "pending", cuts.Pending(), pending)
	m.wantContext(t, s, "", contextOf(log, path), path)
}

// wantContext compares the context at a leaf.
func (m *machine) wantContext(t *rapid.T, s *session.Session, leaf string, want []shown, path []modelEntry) {
	t.Helper()
	c, err := s.Context(session.ContextOptions{Leaf: leaf})
	noError(t, err)
	got := asSeen(c.Entries)
	wantEqual(t, "context", got, want, cmpopts.EquateEmpty())
	if leaf == "" {
		entries, err := s.GetContext()
		noError(t, err)
		wantEqual(t, "GetContext", asSeen(entries), got)
	}
	provider, model, level := stateOf(path)
	wantEqual(t, "state", []string{c.Provider, c.Model, c.ThinkingLevel}, []string{provider, model, level})
	compaction, _, _ := compactionOf(path)
	wantEqual(t, "compaction", c.Compaction, compaction.id)
	m.wantFingerprints(t, c.Fingerprints, want)
}

// wantFingerprints checks that beginnings of contexts are told apart by what the
// model sees, and by nothing else.
func (m *machine) wantFingerprints(t *rapid.T, got []session.Fingerprint, entries []shown) {
	t.Helper()
	if len(got) != len(entries) {
		t.Fatalf("%d fingerprints of %d entries", len(got), len(entries))
	}
	text := ""
	for i, e := range entries {
		e.ID = "" // not sent
		text += fmt.Sprintf("%#v\n", e)
		if known, ok := m.prints[text]; ok && known != got[i] {
			t.Fatalf("one context has the fingerprints %v and %v:\n%s", known, got[i], text)
		}
		if known, ok := m.texts[got[i]]; ok && known != text {
			t.Fatalf("two contexts have the fingerprint %v:\n%s\n%s", got[i], known, text)
		}
		m.prints[text], m.texts[got[i]] = got[i], text
	}
}

func wantEqual[T any](t *rapid.T, what string, got, want T, opts ...cmp.Option) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return // as nearly always, and much faster
	}
	opts = append(opts, cmp.Exporter(func(reflect.Type) bool { return true }))
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("%s differs (-model +session):\n%s", what, diff)
	}
}

// Between the model and the session.

func idsOf(entries []modelEntry) []string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.id)
	}
	return ids
}

// drawn draws a tree as treeOf does.
func drawn(forest []session.TreeNode, indent string) []string {
	var out []string
	for _, n := range forest {
		out = append(append(out, indent+n.Entry.ID+" "+n.Label), drawn(n.Children, indent+" ")...)
	}
	return out
}

// realEntry makes a message for Append.
func realEntry(e modelEntry) session.Entry {
	return session.Entry{Type: e.kind, Message: &session.MessageEntry{
		Role: e.role, Content: contents(e.blocks), Model: e.model, Provider: e.provider, ResponseID: e.response,
	}}
}

func contents(blocks []block) []session.Content {
	var out []session.Content
	for _, b := range blocks {
		switch b.Kind {
		case session.ContentTypeText:
			out = append(out, session.Text(b.Text))
		case session.ContentTypeThinking:
			out = append(out, session.Content{Type: b.Kind, Thinking: &session.ThinkingContent{Content: b.Text}})
		case session.ContentTypeToolUse:
			out = append(out, session.ToolUse(b.ID, "tool", map[string]any{"do": b.Text}))
		case session.ContentTypeToolResult:
			out = append(out, session.ToolResult(b.ID, b.Text, b.Failed))
		}
	}
	return out
}

func asSeen(entries []session.Entry) []shown {
	out := make([]shown, len(entries))
	for i, e := range entries {
		s := shown{ID: e.ID, Type: e.Type}
		switch {
		case e.Message != nil:
			s.Role, s.Blocks = e.Message.Role, asBlocks(e.Message.Content)
		case e.Compaction != nil:
			s.Text = e.Compaction.Summary
		case e.BranchSummary != nil:
			s.Text = e.BranchSummary.Summary
		case e.Merge != nil:
			s.Text = e.Merge.Summary
		}
		out[i] = s
	}
	return out
}

func asBlocks(contents []session.Content) []block {
	var out []block
	for _, c := range contents {
		b := block{Kind: c.Type}
		switch {
		case c.Text != nil:
			b.Text = c.Text.Content
		case c.Thinking != nil:
			b.Text = c.Thinking.Content
		case c.ToolUse != nil:
			b.ID = c.ToolUse.ID
			b.Text, _ = c.ToolUse.Input["do"].(string)
		case c.ToolResult != nil:
			b.ID, b.Text, b.Failed = c.ToolResult.ToolUseID, c.ToolResult.Content, c.ToolResult.IsError
		}
		out = append(out, b)
	}
	return out
}
