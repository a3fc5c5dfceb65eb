package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// What the random test found, or finds only seldom.

// pairOfSessions returns two handles of one session, as in two processes.
func pairOfSessions(t *testing.T) (a, b *session.Session) {
	t.Helper()
	disk := vfstest.NewMemory()
	st := storeOn(t, disk)
	a, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
	noError(t, err)
	return a, openOn(t, disk)
}

func storeOn(t *testing.T, disk vfs.FS) *file.Store {
	t.Helper()
	st, err := file.Open("/sessions", &file.Options{FS: disk, Sync: file.Never})
	noError(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

func openOn(t *testing.T, disk vfs.FS) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), storeOn(t, disk), "s", nil)
	noError(t, err)
	return s
}

func say(t *testing.T, s *session.Session, role session.MessageRole, text string) string {
	t.Helper()
	id, err := s.AppendMessage(role, []session.Content{session.Text(text)})
	noError(t, err)
	return id
}

func wantContextIDs(t *testing.T, s *session.Session, want ...string) {
	t.Helper()
	entries, err := s.GetContext()
	noError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
}

// Branch records where it goes also when that is where this handle stands but
// the log does not say so, because another writer was the last.
func TestBranchToWhereWeStand(t *testing.T) {
	ours, theirs := pairOfSessions(t)
	here := say(t, ours, session.RoleUser, "hello")
	_, err := theirs.Refresh()
	noError(t, err)
	say(t, theirs, session.RoleUser, "another answer")
	if _, err := ours.AppendMessage(session.RoleUser, nil); err == nil {
		t.Fatal("no conflict")
	}
	noError(t, ours.Branch(here))
	_, err = theirs.Refresh()
	noError(t, err)
	if got := theirs.LeafID(); got != here {
		t.Errorf("the log's leaf is %s, want %s", got, here)
	}
}

// There is no cut inside a response, also where a label was set in between.
func TestNoCutInsideAResponse(t *testing.T) {
	s, _ := pairOfSessions(t)
	question := say(t, s, session.RoleUser, "why?")
	thought, err := s.AppendMessage(session.RoleAssistant, []session.Content{
		{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}},
	})
	noError(t, err)
	label, err := s.SetLabel(question, "start")
	noError(t, err)
	answer := say(t, s, session.RoleAssistant, "because")
	for _, id := range []string{thought, question} {
		entries, err := s.Forward("")
		noError(t, err)
		noError(t, session.CheckCut(entries, id))
	}
	for _, id := range []string{label, answer} {
		if _, err := s.AppendCompaction("summary", id, 0); err == nil {
			t.Errorf("cut between thinking and what it led to, before %s", id)
		} else {
			t.Log(err)
		}
	}
}

// An entry that moves the leaf is shown when something hangs on it, however
// far below.
func TestTreeBelowLeafEntries(t *testing.T) {
	move := func(id, parent string) string {
		return `{"type":"leaf","id":"` + id + `","parent_id":` + parent + `,"timestamp":"2024-01-01T10:00:02.000Z","leaf":{"from_id":"a"}}`
	}
	below := "below"
	s := loadScribe(t, writeLog(t, headerLine, messageLine("a", "", "user", "hello"),
		move("first", "null"), move("second", `"first"`), messageLine(below, "second", "user", "below")))
	forest, err := s.GetTree()
	noError(t, err)
	if !slices.Contains(drawn(forest, ""), "  "+below+" ") {
		t.Errorf("entry %s is not in the tree: %q", below, drawn(forest, ""))
	}
}

// A session that has read only the end of its log reads more when another writer
// compacts so that earlier entries are kept again.
func TestForeignCompactionKeepsMore(t *testing.T) {
	disk := vfstest.NewMemory()
	a, err := session.Create(t.Context(), storeOn(t, disk), session.Header{ID: "s"}, nil)
	noError(t, err)
	say(t, a, session.RoleUser, "one")
	second := say(t, a, session.RoleUser, "two")
	say(t, a, session.RoleUser, strings.Repeat("much ", 10_000))
	third := say(t, a, session.RoleUser, "three")
	compaction, err := a.AppendCompaction("one and two", third, 0)
	noError(t, err)

	b := openOn(t, disk)
	wantContextIDs(t, b, compaction, third) // which are at the log's end
	again, err := a.AppendCompaction("one", second, 0)
	noError(t, err)
	_, err = b.Refresh()
	noError(t, err)
	entries, err := b.GetContext()
	noError(t, err)
	if len(entries) != 4 || entries[0].ID != again || entries[1].ID != second {
		t.Errorf("%d entries, which begin with %s; want 4 from %s on", len(entries), entries[0].ID, second)
	}
}

// What was cleared from the context does not come back through a merge after a
// compaction.
func TestMergeOfEditedEntry(t *testing.T) {
	s, _ := pairOfSessions(t)
	first := say(t, s, session.RoleUser, "first")
	secret := say(t, s, session.RoleUser, "secret")
	noError(t, s.Branch(first))
	// An edit of what is not on the path is none that an append accepts.
	noError(t, graft(s, session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{
		TargetID: secret, Replacement: []session.Content{session.Text("removed")},
	}}))
	later := say(t, s, session.RoleUser, "later")
	merge := func() string {
		merged, err := s.AppendEntry(session.Merge(secret, "", secret))
		noError(t, err)
		defer func() {
			_, err := s.AppendEntry(session.Revert(merged))
			noError(t, err)
		}()
		c, err := s.Context(session.ContextOptions{})
		noError(t, err)
		return c.Entries[len(c.Entries)-1].Message.Content[0].Text.Content
	}
	if got := merge(); got != "removed" {
		t.Errorf("the merge shows %q", got)
	}
	_, err := s.AppendCompaction("summary", later, 0)
	noError(t, err)
	if got := merge(); got != "removed" {
		t.Errorf("after a compaction the merge shows %q", got)
	}
}

// Where a leaf stands that is moved to a move may be known only from the beginning
// of the log, of which a session that was opened has read the end.
func TestBranchToAMoveThatLeadsFarBack(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	n := 0
	name := func(kind session.EntryType) string { n++; return fmt.Sprintf("%s-%d", kind, n) }
	s, err := session.Create(t.Context(), storeOn(t, disk), session.Header{ID: "s"}, &session.Options{NewID: name})
	noError(t, err)
	say := func(text string) string {
		id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		noError(t, err)
		return id
	}
	first := say("first")
	say(strings.Repeat("long ", 20_000))
	cut := say("one way")
	noError(t, s.Branch(first)) // which is written as leaf-4
	say("another way")
	noError(t, s.Branch(cut))
	_, err = s.AppendCompaction("what was said", cut, 0)
	noError(t, err)
	again := openOn(t, disk)
	if _, err := again.Context(session.ContextOptions{}); err != nil {
		t.Fatal(err)
	}
	noError(t, again.Branch("leaf-4"))
	if leaf := again.LeafID(); leaf != first {
		t.Errorf("the leaf is %q, want the entry to which the move led, %q", leaf, first)
	}
}
