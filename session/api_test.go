package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A context that is done ends every operation that would wait, and nothing is
// written. The session itself goes on.
func TestOperationsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	s.say("b")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, use := range map[string]func(*session.Session) error{
		"AppendMessage":    func(s *session.Session) error { _, err := s.AppendMessage("user", nil); return err },
		"Append":           func(s *session.Session) error { return s.Append(session.Entry{Type: "x"}) },
		"Branch":           func(s *session.Session) error { return s.Branch(a) },
		"AppendCompaction": func(s *session.Session) error { _, err := s.AppendCompaction("s", a, 0); return err },
		"CreateBranched":   func(s *session.Session) error { _, err := s.CreateBranchedSession(a); return err },
		"Context":          func(s *session.Session) error { _, err := s.Context(session.ContextOptions{}); return err },
		"Path":             func(s *session.Session) error { _, err := s.Forward(""); return err },
		"GetTree":          func(s *session.Session) error { _, err := s.GetTree(); return err },
		"Problems":         func(s *session.Session) error { _, err := s.Problems(); return err },
		"Continue":         func(s *session.Session) error { _, err := s.Continue(); return err },
	} {
		opened := s.again()
		if err := use(opened.WithContext(done)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
		if err := use(opened.Session); err != nil && name != "Continue" {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}

// A view of a session is the same session.
func TestViewOfASessionIsTheSameSession(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	view := s.WithContext(t.Context())
	id := mustGet(view.AppendMessage("user", []session.Content{session.Text("a")}))(t)
	if s.LeafID() != id || view.ID() != s.ID() {
		t.Errorf("the leaf is %q, want %q", s.LeafID(), id)
	}
	mustDo(t, view.Close())
	if err := s.Append(session.Entry{Type: "x"}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("append after the view was closed: %v", err)
	}
}

func TestAppendEntryReturnsTheID(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for _, given := range []string{"", "mine"} {
		id := mustGet(s.AppendEntry(session.Entry{Type: "x", ID: given}))(t)
		if id == "" || id != s.LeafID() || given != "" && id != given {
			t.Errorf("id %q, leaf %q", id, s.LeafID())
		}
	}
}

// What NewManager returns is a Manager too, and works with contexts.
func TestDirectoryIsAManager(t *testing.T) {
	t.Parallel()
	d := session.NewManager(t.TempDir())
	var m session.Manager = d.Manager()
	s := mustGet(m.New(session.Config{CWD: "/src"}))(t)
	mustDo(t, s.Close())
	if filepath.Dir(s.File()) != d.Dir || s.Header().CWD != "/src" {
		t.Errorf("made %s for %q", s.File(), s.Header().CWD)
	}
	again := mustGet(m.Load(s.File()))(t)
	mustDo(t, again.Close())
	other := mustGet(session.FileManager{}.New(session.Config{Dir: t.TempDir()}))(t)
	mustDo(t, other.Close())
	mustDo(t, mustGet(session.FileManager{}.Load(other.File()))(t).Close())

	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, use := range map[string]func(*session.Directory) error{
		"New":            func(d *session.Directory) error { _, err := d.New("", ""); return err },
		"Load":           func(d *session.Directory) error { _, err := d.Load(s.ID()); return err },
		"ContinueRecent": func(d *session.Directory) error { _, err := d.ContinueRecent(); return err },
		"ForkFrom":       func(d *session.Directory) error { _, err := d.ForkFrom(s.File()); return err },
		"List":           func(d *session.Directory) error { _, err := d.List(); return err },
	} {
		if err := use(d.WithContext(done)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
	if infos := mustGet(d.List())(t); len(infos) != 1 {
		t.Errorf("%d sessions", len(infos))
	}
}

// A problem is an error that can be asked what it is.
func TestProblemIsAnError(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), "garbage", messageLine("b", "nowhere", "user", "two"),
		`{"type":"message","id":"c","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"x","content":"","blob":"`+string(store.RefOf([]byte("gone")))+`","size":4}}]}}`)
	want := map[session.ProblemKind]error{
		session.ProblemDamaged: session.ErrCorrupt, session.ProblemDangling: session.ErrNotExist,
		session.ProblemBlob: session.ErrNotExist, session.ProblemOrphan: session.ErrInvalid,
	}
	var met []session.ProblemKind
	for _, p := range mustGet(loadScribe(t, path).Problems())(t) {
		var err error = p
		if w := want[p.Kind]; w != nil && !errors.Is(err, w) {
			t.Errorf("%v does not match %v", p, w)
		}
		if p.Kind == session.ProblemBlob && !errors.As(err, new(*store.Error)) {
			t.Errorf("%v has no cause", p)
		}
		met = append(met, p.Kind)
	}
	for kind := range want {
		if !slices.Contains(met, kind) {
			t.Errorf("no %s among %q", kind, met)
		}
	}
}
