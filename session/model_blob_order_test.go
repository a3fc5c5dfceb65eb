package session_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// A line names a blob only after the blob is on the disk: written, synced, at
// its name, and the name synced. So no crash leaves a line that leads nowhere.
func TestBlobIsDurableBeforeItsLine(t *testing.T) {
	output := strings.Repeat("output ", 10_000)
	digits, _ := store.RefOf([]byte(output)).Hex()
	for name, add := range map[string]func(s *session.Session) error{
		"message": func(s *session.Session) error {
			_, err := s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("call", output, false)})
			return err
		},
		"edit": func(s *session.Session) error {
			_, err := s.AppendEntry(session.ContextEdit(s.LeafID(), session.ToolResult("call", output, false)))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex // guards ops
			var ops []string
			disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
			st, err := file.Open("/sessions", &file.Options{FS: disk})
			noError(t, err)
			defer st.Close()
			s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
			noError(t, err)
			say(t, s, session.RoleUser, "the first append also looks the file up")
			disk.Before = func(op vfstest.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if op.Kind.Mutates() && op.Kind != vfstest.OpMkdir {
					ops = append(ops, op.Kind.String()+" "+whatFile(op))
				}
				return nil
			}
			noError(t, add(s))
			want := []string{
				"create blobs.lock",
				"syncdir .coppice", "syncdir blobs", // in which the blob's directory was made
				"create tmp", "write tmp", "sync tmp", "rename " + digits, "syncdir " + digits[:2],
				"write s.jsonl", "sync s.jsonl",
			}
			if diff := cmp.Diff(want, ops); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

// whatFile names a file without what differs from run to run.
func whatFile(op vfstest.Op) string {
	name := op.Name
	if op.To != "" {
		name = op.To
	}
	if filepath.Base(filepath.Dir(name)) == "tmp" {
		return "tmp"
	}
	return filepath.Base(name)
}
