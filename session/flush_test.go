package session_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// What was appended, created and forked before a Flush survives the worst power
// cut, with its large content, however lazily the store syncs.
func TestFlushSurvivesAPowerCut(t *testing.T) {
	for name, level := range map[string]file.Sync{"always": file.Always, "every hour": file.Every(time.Hour), "never": file.Never} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			st := mustGet(file.Open("/d", &file.Options{FS: disk, Sync: level}))(t)
			s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
			output := strings.Repeat("output ", 20_000)
			mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")}))(t)
			mustGet(s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", output, false)}))(t)
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			fork := mustGet(s.Fork(t.Context(), st, nil))(t)
			if err := fork.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("not flushed")}))(t)

			left := mustGet(file.Open("/d", &file.Options{FS: disk.CrashClone(nil, vfstest.LoseAll)}))(t)
			for _, id := range []string{s.ID(), fork.ID()} {
				found := mustGet(session.Open(t.Context(), left, id, nil))(t)
				path := mustGet(found.Forward(""))(t)
				if len(path) < 2 || path[1].Message.Content[0].ToolResult.Content != output {
					t.Errorf("%d entries are left, want two with their content", len(path))
				}
			}
		})
	}
}

func TestFailedFlushEndsTheSession(t *testing.T) {
	fail := false
	disk := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if fail && op.Kind == vfstest.OpSync {
			return syscall.EIO
		}
		return nil
	}}
	st := mustGet(file.Open("/d", &file.Options{FS: disk, Sync: file.Never}))(t)
	s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")}))(t)
	fail = true
	for range 2 {
		if err := s.Flush(t.Context()); !errors.Is(err, session.ErrUnknown) {
			t.Errorf("flush: %v, want ErrUnknown", err)
		}
		fail = false // a second sync would say that all is well
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("on")}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("append after it: %v, want ErrClosed", err)
	}
	s.Close()
	if err := s.Flush(t.Context()); !errors.Is(err, session.ErrClosed) {
		t.Errorf("flush of a closed session: %v, want ErrClosed", err)
	}
}
