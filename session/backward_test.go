package session_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// backward returns the ids of the last n entries of the path to an entry, or of all for 0.
func (s scribe) backward(id string, n int) []string {
	s.t.Helper()
	var ids []string
	for e, err := range s.Backward(id) {
		mustDo(s.t, err)
		ids = append(ids, e.ID)
		if len(ids) == n {
			break
		}
	}
	return ids
}

// forward returns the ids of the path to an entry, the entry first.
func (s scribe) forward(id string) []string {
	s.t.Helper()
	var ids []string
	for _, e := range mustGet(s.PathTo(id))(s.t) {
		ids = append(ids, e.ID)
	}
	slices.Reverse(ids)
	return ids
}

func TestBackwardIsThePathFromItsEnd(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	if got := s.backward("", 0); len(got) != 0 {
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
	whole := s.forward("")
	for name, s := range map[string]scribe{"written": s, "opened": s.again()} {
		if got := s.backward("", 0); !slices.Equal(got, whole) {
			t.Errorf("%s: %d entries, want %d", name, len(got), len(whole))
		}
		if got := s.backward("", 5); !slices.Equal(got, whole[:5]) {
			t.Errorf("%s: the last five are %q, want %q", name, got, whole[:5])
		}
	}
	opened := s.again()
	if got := opened.backward(middle, 0); !slices.Equal(got, s.forward(middle)) {
		t.Errorf("%d entries before the middle, want %d", len(got), len(s.forward(middle)))
	}
	for _, err := range s.again().Backward("nobody") {
		if !errors.Is(err, session.ErrNotExist) {
			t.Errorf("an unknown entry: %v", err)
		}
	}
}

// Content that is kept in a blob is there.
func TestBackwardFetchesContent(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	output := strings.Repeat("y", 100<<10)
	for range 50 {
		s.user(strings.Repeat("x", 1000))
	}
	mustGet(s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "f", nil)}))(t)
	mustGet(s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", output, false)}))(t)
	for e, err := range s.again().Backward("") {
		mustDo(t, err)
		if got := e.Message.Content[0].ToolResult.Content; got != output {
			t.Errorf("%d bytes, want %d", len(got), len(output))
		}
		break
	}
}

// Damage in the middle hides nothing before it.
func TestBackwardGoesPastDamage(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	var ids []string
	for i := range 100 {
		ids = append(ids, s.user(fmt.Sprintf("number %d %s", i, strings.Repeat("x", 500))))
	}
	mustDo(t, s.Close())
	data := string(mustGet(os.ReadFile(s.Path()))(t))
	broken := strings.Replace(data, `"type":"message","id":"`+ids[20], `"type":"mess`, 1)
	if broken == data {
		t.Fatal("the line to damage was not found")
	}
	mustDo(t, os.WriteFile(s.Path(), []byte(broken), 0o600))
	damaged := loadScribe(t, s.Path())
	got := damaged.backward("", 0)
	if !slices.Contains(got, ids[21]) || !slices.Contains(got, ids[40]) {
		t.Errorf("entries after the damage are missing: %d of %d", len(got), len(ids))
	}
	if want := damaged.forward(""); !slices.Equal(got, want) {
		t.Errorf("%d entries, and PathTo has %d", len(got), len(want))
	}
}
