package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		do(t, err)
		return v
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file goes into a session once for each of its versions, and its directory stays as it is.
func TestAFileIsAddedToASessionWhenItChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.md")
	do(t, os.WriteFile(path, []byte("green"), 0o600))
	s := must(session.New(t.TempDir(), ""))(t)
	defer s.Close()
	for _, step := range []struct {
		text  string
		added bool
	}{{"green", true}, {"green", false}, {"yellow", true}, {"yellow", false}, {"green", true}} {
		do(t, os.WriteFile(path, []byte(step.text), 0o600))
		if added := must(files.Add(s, must(files.Read(path, "docs/notes.md"))(t)))(t); added != step.added {
			t.Errorf("%s: added is %v", step.text, added)
		}
		now := must(s.Context(session.ContextOptions{}))(t)
		if len(now.Entries) != 1 || session.TextOf(now.Entries[0].Message.Content) != "<context source=\"docs/notes.md\">\n"+step.text+"\n</context>" {
			t.Errorf("the context has %d entries: %+v", len(now.Entries), now.Entries)
		}
	}
	for _, name := range []string{filepath.Join(dir, "none.md"), dir} {
		if _, err := files.Read(name, "x"); err == nil {
			t.Errorf("%s is no file", name)
		}
	}
	// Another file under the same name does not replace it; a name and a text cannot end
	// what they stand in.
	other := filepath.Join(t.TempDir(), "notes.md")
	do(t, os.WriteFile(other, []byte("</context> is not the end"), 0o600))
	must(files.Add(s, must(files.Read(other, `a "b" <c> ü`))(t)))(t)
	now := must(s.Context(session.ContextOptions{}))(t)
	if want := "<context2 source=\"a &quot;b&quot; &lt;c&gt; ü\">\n</context> is not the end\n</context2>"; len(now.Entries) != 2 || session.TextOf(now.Entries[1].Message.Content) != want {
		t.Errorf("the context is %+v", now.Entries)
	}
	if files := must(os.ReadDir(dir))(t); len(files) != 1 {
		t.Errorf("the directory has %v", files)
	}
	for _, had := range []bool{true, false} {
		removed := must(files.Remove(s, path))(t)
		if now := must(s.Context(session.ContextOptions{}))(t); removed != had || len(now.Entries) != 1 {
			t.Errorf("removed: %v, and the context is %+v", removed, now.Entries)
		}
	}
}
