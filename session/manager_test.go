package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// mustGet returns a value that must have come without an error:
// mustGet(f())(t).
func mustGet[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scribe is a session whose writes must not fail.
type scribe struct {
	*session.Session
	t testing.TB
}

func (s scribe) compare(a, b string) *session.Comparison {
	s.t.Helper()
	return session.Compare(entryIDs(mustGet(s.Forward(a))(s.t)), entryIDs(mustGet(s.Forward(b))(s.t)))
}

// quick is the configuration of most tests: nothing in them depends on syncs.
func quick(dir string) session.Config {
	return session.Config{Dir: dir, Files: file.Options{Sync: file.Never}}
}

// newScribe makes a session in a directory of its own.
func newScribe(t testing.TB, adjust ...func(*session.Config)) scribe {
	t.Helper()
	cfg := quick(t.TempDir())
	for _, f := range adjust {
		f(&cfg)
	}
	return scribe{closeWith(t, mustGet(session.FileManager{}.New(cfg))(t)), t}
}

func closeWith(t testing.TB, s *session.Session) *session.Session {
	t.Cleanup(func() { s.Close() })
	return s
}

// loadScribe loads a session file.
func loadScribe(t testing.TB, path string, adjust ...func(*session.Config)) scribe {
	t.Helper()
	mgr := session.NewManager(filepath.Dir(path))
	mgr.Config = quick(filepath.Dir(path))
	for _, f := range adjust {
		f(&mgr.Config)
	}
	return scribe{closeWith(t, mustGet(mgr.Load(path))(t)), t}
}

// again loads the session a second time.
func (s scribe) again(adjust ...func(*session.Config)) scribe {
	s.t.Helper()
	return loadScribe(s.t, s.File(), adjust...)
}

func (s scribe) add(e session.Entry) string {
	s.t.Helper()
	return mustGet(s.AppendAll(e))(s.t)[0]
}

func (s scribe) message(role session.MessageRole, content ...session.Content) string {
	s.t.Helper()
	return mustGet(s.AppendMessage(role, content))(s.t)
}

func (s scribe) user(text string) string {
	s.t.Helper()
	return s.message(session.RoleUser, session.Text(text))
}

func (s scribe) say(text string) string {
	s.t.Helper()
	return s.message(session.RoleAssistant, session.Text(text))
}

// call appends one message of the model that calls tools.
func (s scribe) call(ids ...string) string {
	s.t.Helper()
	return s.message(session.RoleAssistant, calls(ids...)...)
}

// result appends one message that answers calls.
func (s scribe) result(ids ...string) string {
	s.t.Helper()
	return s.message(session.RoleTool, results(ids...)...)
}

func calls(ids ...string) (blocks []session.Content) {
	for _, id := range ids {
		blocks = append(blocks, session.ToolUse(id, "tool", map[string]any{"n": 1.0}))
	}
	return blocks
}

func results(ids ...string) (blocks []session.Content) {
	for _, id := range ids {
		blocks = append(blocks, session.ToolResult(id, "out of "+id, false))
	}
	return blocks
}

func (s scribe) compact(summary, firstKept string) string {
	s.t.Helper()
	return mustGet(s.AppendCompaction(summary, firstKept, 100))(s.t)
}

func (s scribe) branch(id string) {
	s.t.Helper()
	mustDo(s.t, s.Branch(id))
}

func (s scribe) at(leaf string) *session.Context {
	s.t.Helper()
	return mustGet(s.Context(session.ContextOptions{Leaf: leaf}))(s.t)
}

// sees fails unless the context at the leaf reads as given; GetContext and
// Context must agree.
func (s scribe) sees(want ...string) {
	s.t.Helper()
	got := view(mustGet(s.GetContext())(s.t))
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.t.Errorf("context (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, view(s.at("").Entries)); diff != "" {
		s.t.Errorf("GetContext and Context differ:\n%s", diff)
	}
}

// ids returns the ids of all entries in the order of the log, and then those of
// the gaps.
func (s scribe) ids() []string {
	s.t.Helper()
	var all, gaps []string
	for e, err := range s.Entries() {
		mustDo(s.t, err)
		if e.Type == session.TypeGap {
			gaps = append(gaps, e.ID)
		} else {
			all = append(all, e.ID)
		}
	}
	return append(all, gaps...)
}

func (s scribe) problems() []session.Problem {
	s.t.Helper()
	return mustGet(s.Problems())(s.t)
}

// problemKinds returns the kinds of the session's problems, sorted, each once.
func (s scribe) problemKinds() []session.ProblemKind {
	s.t.Helper()
	var kinds []session.ProblemKind
	for _, p := range s.problems() {
		kinds = append(kinds, p.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// view renders entries as a person would tell them.
func view(entries []session.Entry) []string {
	lines := []string{}
	for _, e := range entries {
		switch {
		case e.Compaction != nil:
			lines = append(lines, "summary: "+e.Compaction.Summary)
		case e.BranchSummary != nil:
			lines = append(lines, "branch: "+e.BranchSummary.Summary)
		case e.Merge != nil:
			lines = append(lines, "merge: "+e.Merge.Summary)
		case e.Message != nil:
			lines = append(lines, viewMessage(e.Message))
		default:
			lines = append(lines, string(e.Type))
		}
	}
	return lines
}

func viewMessage(m *session.MessageEntry) string {
	var parts []string
	for _, c := range m.Content {
		switch {
		case c.Text != nil:
			parts = append(parts, shorten(c.Text.Content))
		case c.ToolUse != nil:
			parts = append(parts, "call "+c.ToolUse.ID)
		case c.ToolResult != nil:
			parts = append(parts, c.ToolResult.ToolUseID+" = "+shorten(c.ToolResult.Content))
		case c.Thinking != nil:
			parts = append(parts, "thinking "+c.Thinking.Content)
		default:
			parts = append(parts, string(c.Type))
		}
	}
	return m.Role + ": " + strings.Join(parts, ", ")
}

func shorten(text string) string {
	if len(text) > 80 {
		return fmt.Sprintf("%s… (%d bytes)", text[:20], len(text))
	}
	return text
}

const interrupted = "[interrupted: the tool did not return a result]"

// encode writes an entry as a line.
func encode(t testing.TB, e session.Entry) string {
	t.Helper()
	return string(mustGet(e.MarshalJSON())(t))
}

// tell renders all of a context, so that two can be compared.
func tell(t testing.TB, c *session.Context) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "leaf %s\nmodel %s/%s\nthinking %s\ntokens %d, %d uncounted\ncompaction %s\nedited %v\n",
		c.Leaf, c.Provider, c.Model, c.ThinkingLevel, c.Tokens, c.Uncounted, c.Compaction, c.Edited)
	for i, e := range c.Entries {
		fmt.Fprintf(&b, "%s %s\n", c.Fingerprints[i], encode(t, e))
	}
	for _, p := range c.Problems {
		fmt.Fprintf(&b, "%s\n", p)
	}
	return b.String()
}

// flatten lists the entries of a tree, parents before children.
func flatten(nodes []session.TreeNode) []session.Entry {
	var all []session.Entry
	for _, n := range nodes {
		all = append(append(all, n.Entry), flatten(n.Children)...)
	}
	return all
}

func entryIDs(entries []session.Entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

// headerLine and messageLine are lines as a stranger might write them.
const headerLine = `{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00.000Z"}`

func messageLine(id, parent, role, text string) string {
	quoted := "null"
	if parent != "" {
		quoted = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":%s,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":%q,"content":[{"type":"text","text":{"content":%q}}]}}`, id, quoted, role, text)
}

// writeLog writes lines to a session file of a directory of its own.
func writeLog(t testing.TB, lines ...string) string {
	t.Helper()
	return writeBytes(t, []byte(strings.Join(lines, "\n")+"\n"))
}

func writeBytes(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	mustDo(t, os.WriteFile(path, data, 0o600))
	return path
}

func readBytes(t testing.TB, path string) []byte {
	t.Helper()
	return mustGet(os.ReadFile(path))(t)
}

// survives appends to the session file at a path and loads it again: everything
// that could be seen before must be there, then the new entry, and no byte of
// what stood before may have changed.
func survives(t testing.TB, path string) scribe {
	t.Helper()
	bytesBefore := readBytes(t, path)
	s := loadScribe(t, path)
	before := s.ids()
	added := s.user("appended later")
	after := loadScribe(t, path)
	if after.LeafID() != added {
		t.Errorf("after a reload the leaf is %q, want the appended %q", after.LeafID(), added)
	}
	atEnd := func(ids []string) []string { // the new one stands before the gaps
		return append(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == added }), added)
	}
	if diff := cmp.Diff(atEnd(before), atEnd(after.ids())); diff != "" || !slices.Contains(after.ids(), added) {
		t.Errorf("entries after an append and a reload (-want +got):\n%s", diff)
	}
	if entries := mustGet(after.GetContext())(t); len(entries) == 0 || entries[len(entries)-1].ID != added {
		t.Errorf("the context does not end with the appended entry: %q", view(entries))
	}
	whole := bytesBefore[:bytes.LastIndexByte(bytesBefore, '\n')+1]
	if !bytes.HasPrefix(readBytes(t, path), whole) {
		t.Error("bytes before the append have changed")
	}
	return after
}

func TestThreeShapes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	byFunction := mustGet(session.New(dir, "parent-1"))(t)
	closeWith(t, byFunction)
	if h := byFunction.Header(); h.ParentSession != "parent-1" || h.Version != session.Version || h.Type != session.TypeSession || h.CreatedAt.IsZero() {
		t.Errorf("header %+v", h)
	}
	if byFunction.File() != filepath.Join(dir, byFunction.ID()+".jsonl") {
		t.Errorf("path %s", byFunction.File())
	}

	var mgr session.Manager = session.FileManager{}
	byManager := closeWith(t, mustGet(mgr.New(session.Config{Dir: dir, CWD: "/project"}))(t))
	if again := closeWith(t, mustGet(mgr.Load(byManager.File()))(t)); again.Header().CWD != "/project" {
		t.Errorf("header %+v", again.Header())
	}

	directory := session.NewManager(dir)
	inDir := closeWith(t, mustGet(directory.New("", ""))(t))
	other := t.TempDir()
	elsewhere := closeWith(t, mustGet(directory.New(other, "p"))(t))
	if filepath.Dir(inDir.File()) != dir || filepath.Dir(elsewhere.File()) != other {
		t.Errorf("paths %s and %s", inDir.File(), elsewhere.File())
	}
	for _, ref := range []string{inDir.ID(), inDir.File()} {
		if s := closeWith(t, mustGet(directory.Load(ref))(t)); s.ID() != inDir.ID() {
			t.Errorf("Load(%q) gave %q", ref, s.ID())
		}
	}
	if infos := mustGet(session.List(dir))(t); len(infos) != 3 {
		t.Errorf("List gave %d sessions, want 3", len(infos))
	}
}

// TestContinueRecentAfterASubagent: a program that was killed while a subagent worked goes on
// with the session that started it.
func TestContinueRecentAfterASubagent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lead := closeWith(t, mustGet(session.New(dir, ""))(t))
	call := mustGet(lead.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "task", nil)}))(t)
	sub := closeWith(t, mustGet(session.OpenSubagent(t.Context(), lead, call, "c"))(t))
	further := closeWith(t, mustGet(session.OpenSubagent(t.Context(), sub, "e", "d"))(t))
	if h := further.Header(); session.ParentCall(&h) != "d" || h.ParentSession != sub.ID() {
		t.Errorf("the subagent has the header %+v", h)
	}
	next := closeWith(t, mustGet(session.Create(t.Context(), lead.Store(), session.Header{ParentSession: further.ID(), Relation: session.RelationContinuation}, nil))(t))
	for _, s := range []*session.Session{sub, further, next} {
		time.Sleep(time.Millisecond) // so that their times differ
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")}))(t)
		if got := closeWith(t, mustGet(session.ContinueRecent(dir))(t)); got.ID() != lead.ID() {
			t.Errorf("continued %s, want %s", got.ID(), lead.ID())
		}
	}
	mustDo(t, os.Remove(lead.File()))
	if got := closeWith(t, mustGet(session.ContinueRecent(dir))(t)); got.ID() != next.ID() {
		t.Errorf("continued %s after the first was removed, want %s", got.ID(), next.ID())
	}
}

func TestContinueRecent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "yet")
	if _, err := session.ContinueRecent(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking for a session made the directory")
	}
	old := closeWith(t, mustGet(session.New(dir, ""))(t))
	recent := closeWith(t, mustGet(session.New(dir, ""))(t))
	past := time.Now().Add(-time.Hour)
	mustDo(t, os.Chtimes(recent.File(), past, past))
	if s := closeWith(t, mustGet(session.ContinueRecent(dir))(t)); s.ID() != old.ID() {
		t.Errorf("continued %s, want the one active last, %s", s.ID(), old.ID())
	}

	// One that cannot be read does not stand in the way of the one before it.
	mustDo(t, os.WriteFile(filepath.Join(dir, "broken.jsonl"), []byte("\n\n"), 0o600))
	if s := closeWith(t, mustGet(session.ContinueRecent(dir))(t)); s.ID() != old.ID() {
		t.Errorf("continued %s, want %s", s.ID(), old.ID())
	}
	only := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(only, "broken.jsonl"), []byte("\n\n"), 0o600))
	if _, err := session.ContinueRecent(only); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("only a broken session: %v, want one that matches ErrNotExist and says why", err)
	}
}

// Tidying up writes to files, too. It does not make an old session the latest.
func TestActivityDatesASession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	said := func(when time.Time) *session.Session {
		cfg := session.Config{Dir: dir, Options: session.Options{Now: func() time.Time { return when }}}
		s := closeWith(t, mustGet((&session.Directory{Config: cfg}).New(dir, ""))(t))
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}))(t)
		return s
	}
	old := said(at)
	latest := said(at.Add(time.Minute))
	tidied := said(at.Add(time.Second))
	for _, s := range []*session.Session{old, tidied} {
		mustGet(s.AppendEntry(session.Tags("tidy")))(t)
		mustGet(s.AppendSessionInfo("a name"))(t)
	}
	now := time.Now()
	mustDo(t, os.Chtimes(latest.File(), now, now.Add(-time.Minute))) // whatever the clock's steps
	if s := closeWith(t, mustGet(session.ContinueRecent(dir))(t)); s.ID() != latest.ID() {
		t.Errorf("continued %s, want %s", s.ID(), latest.ID())
	}
	infos := mustGet(session.List(dir))(t)
	for i, want := range []*session.Session{latest, tidied, old} {
		if infos[i].ID != want.ID() {
			t.Errorf("%d is %s, want %s", i, infos[i].ID, want.ID())
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := quick(dir)
	cfg.ParentSession, cfg.CWD = "before", "/src"
	made := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	cfg.Options.Now = func() time.Time { return made }
	s := scribe{closeWith(t, mustGet(session.FileManager{}.New(cfg))(t)), t}
	first := s.user("one")
	s.say("two")
	mustGet(s.AppendSessionInfo("old name"))(t)
	s.branch(first)
	s.say("other two")
	mustGet(s.AppendSessionInfo("new name"))(t)

	cfg.ParentSession, cfg.CWD = "", ""
	archived := scribe{mustGet(session.FileManager{}.New(cfg))(t), t}
	archived.user("cold")
	mustDo(t, archived.Close())
	st := mustGet(file.Open(dir, nil))(t)
	defer st.Close()
	mustDo(t, st.Archive(context.Background(), archived.ID()))
	mustDo(t, os.WriteFile(filepath.Join(dir, "empty.jsonl"), nil, 0o600))
	mustDo(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no session"), 0o600))
	mustDo(t, os.WriteFile(filepath.Join(dir, "newer.jsonl"), []byte(`{"type":"session","id":"newer","version":99}`+"\n"), 0o600))

	byID := make(map[string]session.SessionInfo)
	infos := mustGet(session.List(dir))(t)
	for _, info := range infos {
		byID[info.ID] = info
	}
	if len(infos) != 4 {
		t.Fatalf("List gave %d: %+v", len(infos), infos)
	}
	if !slices.IsSortedFunc(infos, func(a, b session.SessionInfo) int { return b.Updated.Compare(a.Updated) }) {
		t.Error("not sorted by activity")
	}
	got := byID[s.ID()]
	if got.Name != "new name" || got.MessageCount != 3 || !got.Created.Equal(made) || got.Err != nil || got.Archived ||
		got.Path != s.File() || got.ParentSession != "before" || got.CWD != "/src" || got.Size == 0 || got.Modified.IsZero() || got.Updated.IsZero() {
		t.Errorf("%+v", got)
	}
	if got := byID[archived.ID()]; !got.Archived || got.MessageCount != 1 || got.Err != nil {
		t.Errorf("archived: %+v", got)
	}
	if got := byID["empty"]; !errors.Is(got.Err, session.ErrCorrupt) || got.Path == "" {
		t.Errorf("empty file: %+v", got)
	}
	if got := byID["newer"]; !errors.Is(got.Err, session.ErrInvalid) || !strings.Contains(got.Err.Error(), "version 99") {
		t.Errorf("newer version: %+v", got)
	}
	// An archived session can be loaded by its path and appended to.
	back := loadScribe(t, archived.File())
	back.user("warm again")
	back.again().sees("user: cold", "user: warm again")
	if infos, err := session.List(filepath.Join(dir, "none")); err != nil || len(infos) != 0 {
		t.Errorf("List of a directory that does not exist: %v, %v", infos, err)
	}
}

// A damaged session_info line must hide neither the name before it nor the
// session itself.
func TestNameWhenTheLatestIsDamaged(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "hello"),
		`{"type":"session_info","id":"n1","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","session_info":{"name":"good"}}`,
		`{"type":"session_info","id":"n2","parent_id":"n1","timestamp":"2024-01-01T10:00:03.000Z","session_info":{"name":"ba`+"\x00"+`d"}}`)
	s := loadScribe(t, path)
	if name, err := s.Name(); err != nil || name != "good" {
		t.Errorf("name %q, %v", name, err)
	}
	if infos := mustGet(session.List(filepath.Dir(path)))(t); infos[0].Err != nil || infos[0].Name != "good" {
		t.Errorf("%+v", infos[0])
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s := scribe{closeWith(t, mustGet(session.New(dir, ""))(t)), t}
	s.message(session.RoleTool, session.ToolResult("c", strings.Repeat("x", session.DefaultBlobThreshold+1), false))
	mustDo(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		mustDo(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info := mustGet(d.Info())(t); info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	}))
}

func TestUseAfterClose(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	id := s.user("hello")
	mustDo(t, s.Close())
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if s.ID() == "" || s.File() == "" || s.LeafID() != id {
		t.Error("what is in memory is forgotten")
	}
	for name, use := range map[string]func() error{
		"AppendMessage": func() error {
			_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("x")})
			return err
		},
		"Append":       func() error { return s.Append(session.Entry{Type: "x"}) },
		"AppendAll":    func() error { _, err := s.AppendAll(); return err },
		"Branch":       func() error { return s.Branch(id) },
		"ResetLeaf":    s.ResetLeaf,
		"SetLabel":     func() error { _, err := s.SetLabel(id, "x"); return err },
		"Merge":        func() error { _, err := s.AppendEntry(session.Merge(id, "x")); return err },
		"Undo":         func() error { _, err := s.Undo(); return err },
		"Compaction":   func() error { _, err := s.AppendCompaction("x", id, 1); return err },
		"EditContext":  func() error { _, err := s.AppendEntry(session.ContextEdit(id)); return err },
		"GetContext":   func() error { _, err := s.GetContext(); return err },
		"GetTree":      func() error { _, err := s.GetTree(); return err },
		"Entry":        func() error { _, err := s.Entry(id); return err },
		"Leaves":       func() error { _, err := s.Leaves(); return err },
		"Labels":       func() error { _, err := s.Labels(); return err },
		"Name":         func() error { _, err := s.Name(); return err },
		"Problems":     func() error { _, err := s.Problems(); return err },
		"Refresh":      func() error { _, err := s.Refresh(); return err },
		"Continue":     func() error { _, err := s.Continue(); return err },
		"CreateBranch": func() error { _, err := s.CreateBranchedSession(id); return err },
		"MessageCount": func() error { _, err := s.MessageCount(); return err },
		"Plan": func() error {
			_, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 1, Count: func(session.Entry) int { return 1 }})
			return err
		},
		"Entries": func() error {
			for _, err := range s.Entries() {
				return err
			}
			return nil
		},
		"Follow": func() error {
			for _, err := range s.Follow(t.Context()) {
				return err
			}
			return nil
		},
	} {
		if err := use(); !errors.Is(err, session.ErrClosed) || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// Whoever comes back to a session that is beyond reading finds the one that went
// on in its place, also if an older program made it, and if several come at once.
func TestRecoverySurvivesARestart(t *testing.T) {
	t.Parallel()
	garbage := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		mustDo(t, os.WriteFile(path, []byte("garbage\n"), 0o600))
		return path
	}
	t.Run("one after the other", func(t *testing.T) {
		path := garbage(t)
		for n := range 3 {
			s := scribe{mustGet(session.LoadOrRecover(path))(t), t}
			s.user("again")
			if got := mustGet(s.MessageCount())(t); got != n+2 {
				t.Errorf("%d messages, want %d", got, n+2)
			}
			mustDo(t, s.Close())
		}
		if infos := mustGet(session.List(filepath.Dir(path)))(t); len(infos) != 2 {
			t.Errorf("%d sessions, want the garbage and one in its place", len(infos))
		}
	})
	t.Run("made by another program", func(t *testing.T) {
		path := garbage(t)
		st := mustGet(file.Open(filepath.Dir(path), nil))(t)
		defer st.Close()
		old := mustGet(session.Create(t.Context(), st, session.Header{ParentSession: "s", Relation: session.RelationRecovery}, nil))(t)
		mustDo(t, old.Close())
		s := closeWith(t, mustGet(session.LoadOrRecover(path))(t))
		if id := mustGet(session.FindRecovery(t.Context(), st, "s"))(t); s.ID() != old.ID() || id != old.ID() {
			t.Errorf("recovered in %q, found %q, want %q", s.ID(), id, old.ID())
		}
	})
	t.Run("at once", func(t *testing.T) {
		path := garbage(t)
		var all sync.WaitGroup
		ids := make([]string, 4)
		for i := range ids {
			all.Go(func() {
				s, err := session.LoadOrRecover(path)
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = s.ID()
				s.Close()
			})
		}
		all.Wait()
		if slices.Sort(ids); len(slices.Compact(ids)) != 1 {
			t.Errorf("recovered in %q", ids)
		}
	})
	t.Run("itself beyond reading", func(t *testing.T) {
		path := garbage(t)
		first := mustGet(session.LoadOrRecover(path))(t)
		mustDo(t, first.Close())
		mustDo(t, os.WriteFile(first.File(), []byte("garbage\n"), 0o600))
		s := closeWith(t, mustGet(session.LoadOrRecover(path))(t))
		if s.ID() == first.ID() || mustGet(s.MessageCount())(t) != 1 {
			t.Errorf("recovered in %q", s.ID())
		}
	})
	t.Run("without files", func(t *testing.T) {
		st := memory.New(nil)
		mustDo(t, mustGet(st.Create(t.Context(), "s", store.Lines([]byte("garbage"))))(t).Close())
		_, cause := session.Open(t.Context(), st, "s", nil)
		first := closeWith(t, mustGet(session.Recover(t.Context(), st, "s", cause, nil))(t))
		second := closeWith(t, mustGet(session.Recover(t.Context(), st, "s", cause, nil))(t))
		if first.ID() != second.ID() {
			t.Errorf("recovered in %q, then in %q", first.ID(), second.ID())
		}
	})
}

func TestLoadOrRecover(t *testing.T) {
	t.Parallel()
	good := headerLine + "\n" + messageLine("a", "", "user", "hello") + "\n"
	t.Run("primary", func(t *testing.T) {
		t.Parallel()
		path := writeBytes(t, []byte(good))
		mustDo(t, os.WriteFile(path+".bak", []byte(headerLine+"\n"), 0o600))
		s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
		s.sees("user: hello")
		if string(readBytes(t, path)) != good {
			t.Error("the file was changed")
		}
	})
	t.Run("backup", func(t *testing.T) {
		t.Parallel()
		path := writeBytes(t, []byte("garbage\n"))
		mustDo(t, os.WriteFile(path+".bak", []byte(good), 0o600))
		s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
		s.sees("user: hello")
		if string(readBytes(t, path)) != good {
			t.Error("the backup was not copied over the file")
		}
		saved := mustGet(filepath.Glob(filepath.Join(filepath.Dir(path), ".coppice", "quarantine", "*")))(t)
		if len(saved) != 1 || string(readBytes(t, saved[0])) != "garbage\n" {
			t.Errorf("the unreadable file is not in quarantine: %v", saved)
		}
	})
	t.Run("salvage", func(t *testing.T) {
		t.Parallel()
		path := writeLog(t, "garbage", messageLine("a", "", "user", "hello"), `{"type":"mess`, messageLine("b", "a", "user", "there"))
		s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
		s.sees("user: hello", "user: there")
		if s.ID() != "s" {
			t.Errorf("id %q", s.ID())
		}
	})
	for name, backup := range map[string]string{"no backup": "", "backup as bad": "also garbage\n", "backup without entries": `{"foo":1}` + "\n"} {
		t.Run("recovery session, "+name, func(t *testing.T) {
			t.Parallel()
			path := writeBytes(t, bytes.Repeat([]byte{0}, 4096))
			if backup != "" {
				mustDo(t, os.WriteFile(path+".bak", []byte(backup), 0o600))
			}
			s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
			if h := s.Header(); h.ID == "s" || h.ParentSession != "s" || h.Relation != session.RelationRecovery {
				t.Errorf("header %+v", h)
			}
			entries := mustGet(s.GetContext())(t)
			if len(entries) != 1 || entries[0].Message.Role != "system" || !strings.Contains(entries[0].Message.Content[0].Text.Content, `"s"`) {
				t.Errorf("notice %q", view(entries))
			}
			s.user("going on")
			s.again()
			if !bytes.Equal(readBytes(t, path), make([]byte, 4096)) && backup == "" {
				t.Error("the unreadable file was changed")
			}
		})
	}
	t.Run("recovery session, not even a line", func(t *testing.T) {
		t.Parallel()
		path := writeBytes(t, []byte("hello, world"))
		s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
		if entries := mustGet(s.GetContext())(t); len(entries) != 1 || !strings.Contains(entries[0].Message.Content[0].Text.Content, "12 bytes") {
			t.Errorf("notice %q", view(entries))
		}
	})
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		if _, err := session.LoadOrRecover(filepath.Join(t.TempDir(), "none.jsonl")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, want fs.ErrNotExist", err)
		}
	})
	t.Run("newer version", func(t *testing.T) {
		t.Parallel()
		path := writeLog(t, `{"type":"session","id":"s","version":2}`)
		if _, err := session.LoadOrRecover(path); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	})
}

// Sessions of one manager share nothing that closing one would take away from
// another.
func TestIDsOfUnsavedSessionsDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	cfg := quick(dir)
	cfg.Options.Now = func() time.Time { return now } // all within one instant
	seen := make(map[string]bool)
	for range 50 {
		s := closeWith(t, mustGet(session.FileManager{}.New(cfg))(t))
		if seen[s.ID()] {
			t.Fatalf("id %s twice", s.ID())
		}
		seen[s.ID()] = true
	}
}

func TestEmptyDirectoryName(t *testing.T) {
	t.Parallel()
	if _, err := session.New("", ""); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("New(\"\"): %v", err)
	}
	mgr := session.NewManager("")
	if _, err := mgr.ContinueRecent(); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("ContinueRecent: %v", err)
	}
	if _, err := mgr.List(); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("List: %v", err)
	}
	if _, err := mgr.Load("x"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Load: %v", err)
	}
	if _, err := session.ForkFrom(writeLog(t, headerLine), ""); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("ForkFrom: %v", err)
	}
}
