package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
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
