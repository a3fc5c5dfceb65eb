package home_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestRoomsDeletedInUse: somebody deletes .coppice under a running program, which goes on
// as it would after a restart.
func TestRoomsDeletedInUse(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	s := h.say(session.Header{}, "lantern")
	id, said := s.ID(), 1
	large := strings.Repeat("lantern ", 10_000)
	say := func(text string) {
		t.Helper()
		said++
		content := []session.Content{session.ToolResult("c", text, false)}
		if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: &session.MessageEntry{Role: session.RoleTool, Content: content}, Force: true}); err != nil {
			t.Error(err)
		}
	}
	for name, do := range map[string]func(){
		"append":        func() { say("lantern") },
		"append a blob": func() { say(large) },
		"open session": func() {
			said++
			_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("lantern")})
			noError(t, err)
		},
		"create": func() { _, err := h.Sessions.Create(t.Context(), home.CreateRequest{}); noError(t, err) },
		"list":   func() { _, err := h.Sessions.List(t.Context(), home.ListRequest{}); noError(t, err) },
	} {
		if _, err := s.Refresh(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(h.dir, ".coppice")); err != nil {
			t.Fatal(err)
		}
		if do(); t.Failed() {
			t.Fatal(name)
		}
		found, err := h.Search.Find(t.Context(), home.FindRequest{Query: "lantern"})
		if err != nil || len(found.Hits) == 0 {
			t.Fatalf("%s: found %+v, %v", name, found, err)
		}
	}
	info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
	if err != nil || info.Messages != said {
		t.Errorf("%+v, %v; want %d messages", info, err, said)
	}

	away := h.dir + "-away"
	if err := os.Rename(h.dir, away); err != nil {
		t.Fatal(err)
	}
	if list, err := h.Sessions.List(t.Context(), home.ListRequest{}); err == nil {
		t.Errorf("a home that was moved away has %d sessions", len(list.Sessions))
	}
	if _, err := os.Lstat(h.dir); err == nil {
		t.Error("a home that was moved away was made again")
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
