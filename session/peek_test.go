package session_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestPeek(t *testing.T) {
	s := scribe{mustGet(session.New(t.TempDir(), ""))(t), t}
	defer s.Close()
	first := s.user("one")
	mustGet(s.AppendModelChange("p", "m"))(t)
	mustGet(s.AppendThinkingLevelChange("high"))(t)
	mustGet(s.AppendSessionInfo("name"))(t)
	mustGet(s.SetLabel(first, "label"))(t)
	mustGet(s.AppendCustomEntry("mine", nil))(t)
	mustDo(t, s.Append(session.Entry{Type: "other"}))
	mustGet(s.BranchWithSummary(first, "left"))(t)
	second := s.user("two")
	edit := mustGet(s.AppendEntry(session.ContextEdit(first)))(t)
	mustGet(s.AppendEntry(session.Revert(edit)))(t)
	mustGet(s.AppendEntry(session.Merge(first, "merged")))(t)
	mustGet(s.AppendCompaction("sum", second, 1))(t)

	ids := mustGet(s.Shape())(t).IDs()
	var entries []session.Entry
	for e, err := range s.Entries() {
		mustDo(t, err)
		entries = append(entries, e)
	}
	slices.Reverse(ids)
	slices.Reverse(entries)
	if got := mustGet(s.Peek(ids...))(t); !reflect.DeepEqual(got, entries) {
		t.Errorf("peek gives\n%+v, want\n%+v", got, entries)
	}
	if _, err := s.Peek("nobody"); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("peek at nobody: %v", err)
	}
}

// Blobs are not fetched, and damage is a gap.
func TestPeekFetchesNothing(t *testing.T) {
	s := scribe{mustGet(session.New(t.TempDir(), ""))(t), t}
	s.user("one")
	id := mustGet(s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", strings.Repeat("x", 100_000), false)}))(t)
	e := mustGet(s.Peek(id))(t)[0]
	if r := e.Message.Content[0].ToolResult; r.Content != "" || r.Blob == "" || r.Size != 100_000 {
		t.Errorf("peek gives %+v", r)
	}
	if r := mustGet(s.Entry(id))(t).Message.Content[0].ToolResult; len(r.Content) != 100_000 {
		t.Error("the entry is not whole")
	}
	path := s.File()
	mustDo(t, s.Close())
	data := strings.Replace(string(readBytes(t, path)), `"one"`, `"one`, 1)
	mustDo(t, os.WriteFile(path, []byte(data), 0o600))
	again := mustGet(session.Load(path))(t)
	defer again.Close()
	if e := mustGet(again.Peek(mustGet(again.Shape())(t).IDs()...))(t)[0]; e.Type != session.TypeGap {
		t.Errorf("a damaged line is %+v", e)
	}
}

// The path in a shape says which of its entries are messages, and has nothing beside it.
func TestShapeHasThePath(t *testing.T) {
	t.Parallel()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, text := range []string{"one", "two", "aside", "three"} {
		id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		if err != nil {
			t.Fatal(err)
		}
		if text != "aside" {
			want = append(want, id)
		} else if err := s.Branch(want[1]); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.AppendSessionInfo("a name"); err != nil {
				t.Fatal(err)
			}
		}
	}
	shape := mustGet(s.Shape())(t)
	var got []string
	for _, n := range shape.Path(shape.Leaf()) {
		if shape.Type(n) == session.TypeMessage {
			got = append(got, shape.ID(n))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
}
