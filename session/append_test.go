package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// A message that is appended costs one object of memory, its id; all else is used
// again. Not in parallel: it counts.
func TestAppendMessageAllocatesOnlyTheID(t *testing.T) {
	s, err := session.FileManager{}.New(session.Config{Dir: t.TempDir(), Files: file.Options{Sync: file.Never}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	content := []session.Content{session.Text("hello")}
	n := testing.AllocsPerRun(1000, func() {
		if _, err := s.AppendMessage(session.RoleUser, content); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("%v objects for each message", n)
	}
}

// What Options.Clean is given may be kept: the memory of one message is not used
// for the next.
func TestCleanMayKeepTheMessage(t *testing.T) {
	var kept []*session.MessageEntry
	clean := func(e *session.Entry) error {
		kept = append(kept, e.Message)
		return nil
	}
	s, err := session.FileManager{}.New(session.Config{Dir: t.TempDir(), Options: session.Options{Clean: clean}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"one", "two"} {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"one", "two"} {
		if got := session.TextOf(kept[i].Content); got != want {
			t.Errorf("message %d is %q now, want %q", i, got, want)
		}
	}
}

// An append follows the leaf. A caller who names another parent is told how to get there;
// only Append, whose design fills the parent in, takes the entry.
func TestAppendRefusesAParent(t *testing.T) {
	t.Parallel()
	s := newMemory(t, memory.New(nil))
	one := mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}))(t)
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}))(t)
	e := session.Message(session.RoleUser, session.Text("three"))
	e.ParentID = &one
	for name, add := range map[string]func() error{
		"AppendEntry": func() error { _, err := s.AppendEntry(e); return err },
		"AppendAll":   func() error { _, err := s.AppendAll(e); return err },
		"Tx.Append": func() error {
			return s.Update(t.Context(), func(tx *session.Tx) error { tx.Append(e); return nil })
		},
	} {
		if err := add(); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "Tx.Branch") {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustDo(t, s.Append(e))
	if n := len(mustGet(s.Forward(""))(t)); n != 3 {
		t.Errorf("the path has %d entries, want 3", n)
	}
}
