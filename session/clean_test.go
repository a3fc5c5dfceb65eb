package session_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// hush takes the word sesame out of whatever has it.
func hush(e *session.Entry) error {
	line, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	var clean session.Entry
	if err := clean.UnmarshalJSON(bytes.ReplaceAll(line, []byte("sesame"), []byte("…"))); err != nil {
		return err
	}
	clean.ID, clean.ParentID, clean.Timestamp = e.ID, e.ParentID, e.Timestamp
	*e = clean
	return nil
}

// What Clean takes out reaches neither the log nor the blobs, by whatever way an
// entry gets in, and what the caller gave stays as it was.
func TestCleanSeesEveryEntry(t *testing.T) {
	dir := t.TempDir()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{}, &session.Options{Clean: hush, BlobThreshold: 10})
	if err != nil {
		t.Fatal(err)
	}
	content := []session.Content{session.ToolResult("c", "open sesame, open sesame", false)}
	first, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("sesame")})
	if err != nil {
		t.Fatal(err)
	}
	graft := session.Entry{Type: session.TypeMessage, ID: "grafted", ParentID: &first, Message: &session.MessageEntry{Role: "tool", Content: content}}
	graft.Timestamp = s.Header().CreatedAt
	steps := []func() error{
		func() error { _, err := s.AppendMessage(session.RoleTool, content); return err },
		func() error { _, err := s.SetLabel(first, "sesame"); return err },
		func() error { _, err := s.AppendCustomEntry("x", map[string]any{"a": "sesame"}); return err },
		func() error { _, err := s.AppendEntry(session.ContextEdit(first, session.Text("sesame"))); return err },
		func() error { _, err := s.BranchWithSummary(first, "sesame"); return err },
		func() error { _, err := s.AppendCompaction("sesame", "", 1); return err },
		func() error { return s.Graft(graft) },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if content[0].ToolResult.Content != "open sesame, open sesame" || content[0].ToolResult.Blob != "" {
		t.Errorf("what the caller gave was changed: %+v", content[0].ToolResult)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("sesame")) {
			t.Errorf("%s has it: %s", path, data)
		}
		files++
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestCleanRefuses(t *testing.T) {
	no := errors.New("no")
	for want, clean := range map[string]func(*session.Entry) error{
		"cleaning the entry: no": func(*session.Entry) error { return no },
		"cleaning the entry changed the type of its payload": func(e *session.Entry) error {
			e.Message, e.Label = nil, nil
			e.Compaction, e.BranchSummary, e.ContextEdit = nil, nil, nil
			return nil
		},
	} {
		st, err := file.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		s, err := session.Create(t.Context(), st, session.Header{}, &session.Options{Clean: clean})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err1 := s.AppendMessage(session.RoleUser, []session.Content{session.Text("x")})
		_, err2 := s.SetLabel("x", "y")
		_, err3 := s.AppendCompaction("x", "", 1)
		_, err4 := s.BranchWithSummary("x", "y")
		_, err5 := s.AppendEntry(session.ContextEdit("x"))
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if s.LeafID() != "" {
			t.Error("something was appended")
		}
	}
}
