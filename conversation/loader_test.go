package conversation_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// contextDir makes a directory of context files.
func contextDir(t testing.TB, files map[string]string) (string, *conversation.Loader) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "context")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	l := must(conversation.NewLoader(dir))(t)
	t.Cleanup(func() { l.Close() })
	return dir, l
}

// change writes a file so that its time is another.
func change(t testing.TB, path, text string, age time.Duration) {
	t.Helper()
	do(t, os.WriteFile(path, []byte(text), 0o600))
	when := time.Now().Add(-age)
	do(t, os.Chtimes(path, when, when))
}

func TestNewContextDirectory(t *testing.T) {
	t.Parallel()
	dir, l := contextDir(t, nil)
	config := must(l.Config())(t)
	if len(config.CoreFiles) != 0 || config.Notes != "" {
		t.Errorf("%+v", config)
	}
	if _, err := os.Stat(filepath.Join(dir, conversation.ContextConfigName)); err != nil {
		t.Error("no sample was written")
	}
	do(t, os.Remove(filepath.Join(dir, conversation.ContextConfigName)))
	if config := must(l.Config())(t); len(config.CoreFiles) != 0 {
		t.Errorf("%+v", config)
	}
	if files := must(l.ListAvailableFiles())(t); len(files) != 0 {
		t.Errorf("%+v", files)
	}
}

func TestContextLoader(t *testing.T) {
	t.Parallel()
	dir, l := contextDir(t, map[string]string{
		"context_config.yml": "core_files:\n  - spec.md\n  - ./sub/rules.yaml\n  - missing.md\nnotes: see spec.md first\n",
		"spec.md":            "the specification", "sub/rules.yaml": "a: b", "plain": "x", ".hidden": "x", ".git/config": "x",
	})
	if got := must(l.Config())(t); got.Notes != "see spec.md first" || len(got.CoreFiles) != 3 {
		t.Errorf("%+v", got)
	}
	want := []conversation.ContextFile{
		{Path: "plain", Size: 1, Type: "text"}, {Path: "spec.md", Size: 17, Core: true, Type: "markdown"}, {Path: "sub/rules.yaml", Size: 4, Core: true, Type: "yaml"},
	}
	if diff := cmp.Diff(want, must(l.ListAvailableFiles())(t), cmpopts.IgnoreFields(conversation.ContextFile{}, "Modified")); diff != "" {
		t.Error(diff)
	}
	m := newManager(t, t.TempDir(), 5)
	c := newSystem(t, m)
	added, err := l.LoadCoreContext(c)
	wantError(t, err, os.ErrNotExist) // of missing.md, which is said
	if len(added) != 2 || !strings.Contains(err.Error(), "missing.md") {
		t.Errorf("%v, %v", texts(added), err)
	}
	first := `system: <context source="context/spec.md">` + "\nthe specification\n</context>"
	rules := `system: <context source="context/sub/rules.yaml">` + "\na: b\n</context>"
	see := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, entryTexts(must(c.View())(t).Entries)); diff != "" {
			t.Error(diff)
		}
	}
	see(first, rules)
	if added, _ := l.LoadCoreContext(c); len(added) != 0 {
		t.Errorf("loaded again: %v", texts(added))
	}
	if added := must(l.Refresh(c))(t); len(added) != 0 {
		t.Errorf("nothing has changed: %v", texts(added))
	}
	must(c.AddUserMessage("1"))(t)
	// A file that has changed is noticed; the old version is no longer sent, but
	// is kept.
	change(t, filepath.Join(dir, "spec.md"), "the new specification", time.Hour)
	if added := must(l.Refresh(c))(t); len(added) != 1 {
		t.Errorf("%v", texts(added))
	}
	second := `system: <context source="context/spec.md">` + "\nthe new specification\n</context>"
	see(rules, "user: 1", second)
	if n := len(must(c.Conversation())(t).Messages); n != 4 {
		t.Errorf("%d messages", n)
	}
	// One that was only touched is not loaded again; one that is gone stays.
	change(t, filepath.Join(dir, "spec.md"), "the new specification", 2*time.Hour)
	do(t, os.Remove(filepath.Join(dir, "sub", "rules.yaml")))
	if added := must(l.Refresh(c))(t); len(added) != 0 {
		t.Errorf("%v", texts(added))
	}
	see(rules, "user: 1", second)
	// Across a boundary only what counts is carried, and changes are noticed.
	must(c.AddAssistantMessage(reply("2")))(t)
	must(c.AddUserMessage("3"))(t)
	all := must(c.Conversation())(t)
	if len(all.Links) != 2 {
		t.Fatalf("%d links", len(all.Links))
	}
	if carried := strings.Join(texts(must(m.LoadSession(all.Links[1].ID))(t).Messages), "|"); strings.Contains(carried, "the specification") || !strings.Contains(carried, "the new specification") {
		t.Errorf("carried over: %s", carried)
	}
	change(t, filepath.Join(dir, "spec.md"), "the third", 3*time.Hour)
	must(l.Refresh(c))(t)
	third := `system: <context source="context/spec.md">` + "\nthe third\n</context>"
	got := entryTexts(must(c.View())(t).Entries)
	if got[len(got)-1] != third || strings.Contains(strings.Join(got, "|"), "the specification") {
		t.Errorf("%v", got)
	}
	if added := must(l.Refresh(c))(t); len(added) != 0 {
		t.Errorf("%v", texts(added))
	}
	// The notes of the configuration are for those who keep the directory.
	if strings.Contains(strings.Join(got, "|"), "see spec.md first") {
		t.Errorf("the notes were sent: %v", got)
	}
}

// A file is another if its content is, whatever its time and size say.
func TestChangeOfTheSameTimeAndSize(t *testing.T) {
	t.Parallel()
	dir, l := contextDir(t, map[string]string{"spec.md": "one"})
	path := filepath.Join(dir, "spec.md")
	c := newSystem(t, newManager(t, "", 100))
	if _, _, err := l.LoadFile(c, "spec.md"); err != nil {
		t.Fatal(err)
	}
	info := must(os.Stat(path))(t)
	do(t, os.WriteFile(path, []byte("two"), 0o600))
	do(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	if added := must(l.Refresh(c))(t); len(added) != 1 || !strings.Contains(added[0].Text(), "two") {
		t.Errorf("%v", texts(added))
	}
}

func TestContextLoaderRefuses(t *testing.T) {
	t.Parallel()
	dir, l := contextDir(t, map[string]string{"ok.md": "x", "binary": "a\x00b", "latin": "\xff\xfe", "sub/x": "y"})
	secret := filepath.Join(filepath.Dir(dir), "secret.md")
	do(t, os.WriteFile(secret, []byte("secret"), 0o600))
	do(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, files.MaxContext+1), 0o600))
	c := newSystem(t, newManager(t, "", 100))
	for _, name := range []string{"../secret.md", "/etc/passwd", secret, "sub/../../secret.md", "", "binary", "latin", "sub"} {
		_, _, err := l.LoadFile(c, name)
		wantError(t, err, session.ErrInvalid)
	}
	_, _, err := l.LoadFile(c, "large")
	wantError(t, err, session.ErrTooLarge)
	_, _, err = l.LoadFile(c, "missing")
	wantError(t, err, os.ErrNotExist)
	if c.ID() != "" {
		t.Error("something was loaded")
	}
	do(t, os.WriteFile(filepath.Join(dir, conversation.ContextConfigName), []byte("core_files: {"), 0o600))
	_, err = l.LoadCoreContext(c)
	wantError(t, err, session.ErrInvalid)
	_, err = l.ListAvailableFiles()
	wantError(t, err, session.ErrInvalid)
}

func TestContextLoaderAndLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // making symbolic links needs a privilege there
	}
	t.Parallel()
	dir, l := contextDir(t, map[string]string{"inside.md": "x"})
	secret := filepath.Join(filepath.Dir(dir), "secret.md")
	do(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for name, target := range map[string]string{"abs.md": secret, "rel.md": "../secret.md", "up": "..", "ok.md": "inside.md", "loop": "loop"} {
		do(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	c := newSystem(t, newManager(t, "", 100))
	for _, name := range []string{"abs.md", "rel.md", "up/secret.md", "loop"} {
		if m, _, err := l.LoadFile(c, name); err == nil {
			t.Errorf("%s leads out: %s", name, m.Text())
		}
	}
	if _, added, err := l.LoadFile(c, "ok.md"); err != nil || !added {
		t.Errorf("a link inside: %v", err)
	}
	var names []string
	for _, f := range must(l.ListAvailableFiles())(t) {
		names = append(names, f.Path)
	}
	if diff := cmp.Diff([]string{"inside.md", "ok.md"}, names); diff != "" {
		t.Error(diff)
	}
}

// A turn notices by itself what has changed.
func TestTurnNoticesChangedFiles(t *testing.T) {
	t.Parallel()
	dir, _ := contextDir(t, map[string]string{"context_config.yml": "core_files: [spec.md]", "spec.md": "one"})
	m := newConversations(t, "", conversation.ManagerOptions{Sessions: *quiet(100), Model: echo(), ContextDir: dir})
	if added := must(m.LoadContext())(t); len(added) != 1 {
		t.Errorf("%v", texts(added))
	}
	must(m.ProcessMessage(t.Context(), "hello", ""))(t)
	change(t, filepath.Join(dir, "spec.md"), "two", time.Hour)
	must(m.ProcessMessage(t.Context(), "again", ""))(t)
	got := strings.Join(entryTexts(must(m.Current().View())(t).Entries), "|")
	if strings.Contains(got, "\none\n") || !strings.Contains(got, "\ntwo\n") {
		t.Errorf("%s", got)
	}
}
