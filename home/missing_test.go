package home_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A tool's output is in a file of its own. Nobody reads the conversation as if it were
// whole once that is lost, and nobody takes it for lost while it only cannot be read.
func TestLostOutputIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	s := h.say(session.Header{ID: "s0"}, "look at the log")
	for _, m := range []session.Entry{
		session.Message(session.RoleAssistant, session.ToolUse("c1", "read", map[string]any{"path": "log"})),
		session.Message(session.RoleTool, session.ToolResult("c1", strings.Repeat("line of the log\n", 8<<10), false)),
	} {
		if err := s.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	blobs := must[[]string](t)(filepath.Glob(filepath.Join(h.dir, ".coppice", "blobs", "*", "*")))
	if len(blobs) != 1 {
		t.Fatalf("%d blobs", len(blobs))
	}
	shelf := filepath.Dir(blobs[0])
	path := func() (*home.PathResult, error) {
		return h.open(&home.Options{}).Entries.Path(t.Context(), home.PathRequest{Session: "s0"}, nil)
	}
	context := func() (*home.ContextResult, error) {
		return h.open(&home.Options{}).Entries.Context(t.Context(), home.ContextRequest{Session: "s0"})
	}
	if read, err := path(); err != nil || len(read.Missing) > 0 {
		t.Fatalf("before: %+v, %v", read, err)
	}
	if err := os.Rename(shelf, shelf+".away"); err != nil {
		t.Fatal(err)
	}
	if read, err := path(); !errors.Is(err, home.ErrIncomplete) || len(read.Missing) != 1 || read.Missing[0].Blob == "" {
		t.Errorf("the path does not name what is lost: %+v, %v", read, err)
	}
	if now, err := context(); err != nil || len(now.Missing) != 1 || now.Missing[0].Blob == "" || len(now.Entries) != 3 {
		t.Errorf("the context does not name what is lost: %+v, %v", now, err)
	}
	// A disk that answers with an error has not lost it.
	if err := os.WriteFile(shelf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := path(); err == nil || errors.Is(err, home.ErrIncomplete) {
		t.Errorf("the path of what cannot be read now: %v", err)
	}
	if _, err := context(); err == nil {
		t.Error("the context goes on without what cannot be read now")
	}
}
