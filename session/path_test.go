package session_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// pathOf returns the ids of the last n entries of the path to an entry, or of all for 0.
func (s scribe) pathOf(id string, n int) []string {
	s.t.Helper()
	var ids []string
	for e, err := range s.Path(id) {
		mustDo(s.t, err)
		ids = append(ids, e.ID)
		if len(ids) == n {
			break
		}
	}
	return ids
}

// drawn returns the ids of the path to an entry as the tree has it, the entry first.
func (s scribe) drawn(id string) []string {
	s.t.Helper()
	var ids []string
	shape := mustGet(s.Shape())(s.t)
	at := shape.Leaf()
	if id != "" {
		at = shape.Index(id)
	}
	for _, n := range slices.Backward(shape.Path(at)) {
		ids = append(ids, shape.ID(n))
	}
	return ids
}

func TestPathBeginsAtItsEnd(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	if got := s.pathOf("", 0); len(got) != 0 {
		t.Errorf("an empty session has %q", got)
	}
	var middle string
	long := strings.Repeat("x", 500)
	for i := range 300 { // far more than is read when it is opened
		id := s.user(fmt.Sprint(i, long))
		if i == 100 {
			middle = id
		}
	}
	mustDo(t, s.Branch(middle))
	s.user("on a branch")
	whole := s.drawn("")
	for name, s := range map[string]scribe{"written": s, "opened": s.again()} {
		if got := s.pathOf("", 0); !slices.Equal(got, whole) {
			t.Errorf("%s: %d entries, want %d", name, len(got), len(whole))
		}
		if got := s.pathOf("", 5); !slices.Equal(got, whole[:5]) {
			t.Errorf("%s: the last five are %q, want %q", name, got, whole[:5])
		}
	}
	opened := s.again()
	if got := opened.pathOf(middle, 0); !slices.Equal(got, s.drawn(middle)) {
		t.Errorf("%d entries before the middle, want %d", len(got), len(s.drawn(middle)))
	}
	for _, err := range s.again().Path("nobody") {
		if !errors.Is(err, session.ErrNotExist) {
			t.Errorf("an unknown entry: %v", err)
		}
	}
}

// Content that is kept in a blob is there.
func TestPathFetchesContent(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	output := strings.Repeat("y", 100<<10)
	for range 50 {
		s.user(strings.Repeat("x", 1000))
	}
	mustGet(s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "f", nil)}))(t)
	mustGet(s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", output, false)}))(t)
	for e, err := range s.again().Path("") {
		mustDo(t, err)
		if got := e.Message.Content[0].ToolResult.Content; got != output {
			t.Errorf("%d bytes, want %d", len(got), len(output))
		}
		break
	}
}

// Damage in the middle hides nothing before it.
func TestPathGoesPastDamage(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	var ids []string
	for i := range 100 {
		ids = append(ids, s.user(fmt.Sprintf("number %d %s", i, strings.Repeat("x", 500))))
	}
	mustDo(t, s.Close())
	data := string(mustGet(os.ReadFile(s.File()))(t))
	broken := strings.Replace(data, `"type":"message","id":"`+ids[20], `"type":"mess`, 1)
	if broken == data {
		t.Fatal("the line to damage was not found")
	}
	mustDo(t, os.WriteFile(s.File(), []byte(broken), 0o600))
	damaged := loadScribe(t, s.File())
	got := damaged.pathOf("", 0)
	if !slices.Contains(got, ids[21]) || !slices.Contains(got, ids[40]) {
		t.Errorf("entries after the damage are missing: %d of %d", len(got), len(ids))
	}
	if want := damaged.drawn(""); !slices.Equal(got, want) {
		t.Errorf("%d entries, and the tree has %d", len(got), len(want))
	}
	path := mustGet(damaged.Forward(""))(t)
	for i := 1; i < len(path); i++ {
		if parent := path[i].ParentID; parent == nil || *parent != path[i-1].ID {
			t.Errorf("%s follows %v, want %s", path[i].ID, parent, path[i-1].ID)
		}
	}
}

// A path is read to its root, however long it is, and says what its missing entries follow.
func TestPathOfManyEntries(t *testing.T) {
	t.Parallel()
	const count = 20_000
	st := memory.New(nil)
	s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
	var batch []session.Entry
	for range count {
		batch = append(batch, session.Custom("note", nil))
	}
	ids := mustGet(s.AppendAll(batch...))(t)
	mustGet(s.Shape())(t)
	path := mustGet(s.Forward(""))(t)
	if len(path) != count {
		t.Fatalf("%d entries, want %d", len(path), count)
	}
	for i := range path {
		if path[i].ID != ids[i] || i > 0 && *path[i].ParentID != ids[i-1] {
			t.Fatalf("entry %d is %s after %v, want %s", i, path[i].ID, path[i].ParentID, ids[i])
		}
	}
	mustDo(t, s.Close())
}
