package session_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestTagsAndPins(t *testing.T) {
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if found, err := s.Remarks(); err != nil || found.Tags != nil || found.Pinned {
		t.Fatalf("a new session has %+v, %v", found, err)
	}
	for _, tags := range [][]string{{"go", "bug", "go", " "}, {"later"}} {
		if _, err := s.AppendEntry(session.Tags(tags...)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AppendEntry(session.Tags("go", "bug", "go")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEntry(session.Pinned(true)); err != nil {
		t.Fatal(err)
	}
	again, err := session.Load(s.File())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if found, err := again.Remarks(); err != nil || !slices.Equal(found.Tags, []string{"bug", "go"}) || !found.Pinned {
		t.Errorf("%+v, %v", found, err)
	}
}

// Who labels a session from another program must not make the agent that works
// A message follows the remark with which another writer began the session, so the session has one
// root.
func TestWhatIsSaidFollowsTheRemarkThatBeganASession(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	other := s.again()
	named := mustGet(other.AppendEntry(session.Name("Garden")))(t)
	said := s.user("one")
	if e := mustGet(s.Entry(said))(t); e.ParentID == nil || *e.ParentID != named {
		t.Errorf("it follows %v, want %q", e.ParentID, named)
	}
	if problems := s.problems(); len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
}

// in it fail.
func TestRemarksAreNoConflict(t *testing.T) {
	agent, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	first, err := agent.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	other, err := session.Load(agent.File())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.SetLabel(first, "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.AppendSessionInfo("greeting"); err != nil {
		t.Fatal(err)
	}
	second, err := agent.AppendMessage(session.RoleAssistant, []session.Content{session.Text("hi")})
	if err != nil {
		t.Fatalf("a label got in the way: %v", err)
	}
	e, err := agent.Entry(second)
	if err != nil || *e.ParentID != first {
		t.Errorf("the answer follows %v, %v; want %s", e.ParentID, err, first)
	}
	again, err := session.Load(agent.File())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.LeafID() != second {
		t.Errorf("leaf %s, want %s", again.LeafID(), second)
	}
	if labels, _ := again.Labels(); labels[first] != "begin" {
		t.Errorf("labels %q", labels)
	}

	// But a message of another writer is a conflict.
	if _, err := other.AppendMessage(session.RoleUser, []session.Content{session.Text("me too")}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a message in between: %v", err)
	}
}

func TestChangeTags(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []map[string]any
		want []string
	}{
		{"nothing", nil, nil},
		{"added to none", []map[string]any{{"add": []any{"b", "a"}}}, []string{"a", "b"}},
		{"added to some", []map[string]any{{"tags": []any{"b"}}, {"add": []any{"a", "b"}}}, []string{"a", "b"}},
		{"taken away", []map[string]any{{"tags": []any{"a", "b"}}, {"remove": []any{"a", "z"}}}, []string{"b"}},
		{"added and taken away", []map[string]any{{"add": []any{"a", "b"}, "remove": []any{"b"}}}, []string{"a"}},
		{"set anew", []map[string]any{{"add": []any{"a"}}, {"tags": []any{"c"}}, {"add": []any{"d"}}}, []string{"c", "d"}},
		{"set to none", []map[string]any{{"add": []any{"a"}}, {"tags": []any{}}}, nil},
		{"not lists", []map[string]any{{"add": []any{"a"}}, {"add": "b", "remove": []any{1.0}}}, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := mustGet(session.New(t.TempDir(), ""))(t)
			defer s.Close()
			for _, data := range tc.data {
				mustGet(s.AppendCustomEntry(session.CustomTags, data))(t)
				mustGet(s.AppendCustomEntry("other", map[string]any{"tags": []any{"other"}}))(t)
			}
			if tags := mustGet(s.Remarks())(t).Tags; !slices.Equal(tags, tc.want) {
				t.Errorf("tags %q, want %q", tags, tc.want)
			}
		})
	}
}

// Two programs that know nothing of each other both get the tags they want.
func TestTagsOfTwoWriters(t *testing.T) {
	a := mustGet(session.New(t.TempDir(), ""))(t)
	defer a.Close()
	mustGet(a.AppendEntry(session.Tags("old", "kept")))(t)
	b := mustGet(session.Load(a.File()))(t)
	defer b.Close()
	mustGet(a.AppendEntry(session.TagChange{Add: []string{"ours"}, Remove: []string{"old"}}.Entry()))(t)
	mustGet(b.AppendEntry(session.TagChange{Add: []string{" theirs ", "theirs", ""}}.Entry()))(t)
	for name, s := range map[string]*session.Session{"the last writer": b, "a reader": mustGet(session.Load(a.File()))(t)} {
		if tags := mustGet(s.Remarks())(t).Tags; !slices.Equal(tags, []string{"kept", "ours", "theirs"}) {
			t.Errorf("%s sees the tags %q", name, tags)
		}
		s.Close()
	}
}

// A label at the end of a branch, or beside it, is no branch.
func TestRemarksEndNoBranch(t *testing.T) {
	s := scribe{mustGet(session.New(t.TempDir(), ""))(t), t}
	defer s.Close()
	leaves := func(want ...string) {
		t.Helper()
		if got := mustGet(s.Leaves())(t); !slices.Equal(got, want) {
			t.Errorf("leaves %q, want %q", got, want)
		}
	}
	mustGet(s.AppendSessionInfo("a name"))(t)
	leaves()
	first := s.user("one")
	leaves(first)
	label := mustGet(s.SetLabel(first, "here"))(t)
	mustGet(s.AppendCustomEntry("mine", nil))(t)
	leaves(first)
	mustDo(t, s.Branch(first)) // beside the label
	second := s.user("two")
	leaves(second)
	mustDo(t, s.Branch(label)) // below the label
	third := s.user("three")
	leaves(second, third)
	mustDo(t, s.Branch(first))
	mustGet(s.AppendEntry(session.Tags("tag")))(t)
	leaves(second, third)
}

// Tags change in the order of the lines, even if a line was written again in place of a damaged
// one that comes earlier.
func TestTagsOfALineWrittenAgain(t *testing.T) {
	t.Parallel()
	const tags = `{"type":"custom","id":%q,"parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","custom":{"custom_type":"coppice.tags","data":{"tags":[%q]}}}`
	first, second := fmt.Sprintf(tags, "1", "first"), fmt.Sprintf(tags, "2", "second")
	s := mustGet(session.Load(writeLog(t, headerLine, first[:90], second, first)))(t)
	defer s.Close()
	if found := mustGet(s.Remarks())(t); !slices.Equal(found.Tags, []string{"first"}) {
		t.Errorf("the tags are %q, not those of the last line", found.Tags)
	}
}
