package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func asExit(err error, failed **exec.ExitError) bool { return errors.As(err, failed) }

// testApp is the program in this process.
func testApp(t *testing.T, dir string) (*app, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	env := map[string]string{"HOME": dir, "COPPICE_HOME": dir, "NO_COLOR": "1", "COPPICE_SYNC": "never"}
	getenv := func(name string) string { return env[name] }
	return &app{talk: newTalk(&out, &out, getenv), stdin: strings.NewReader(""), getenv: getenv}, &out
}

// someLines are those of a session x with branches, tools and labels.
func someLines(t *testing.T) []byte {
	t.Helper()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{ID: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	must := func(id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	say := func(role session.MessageRole, c session.Content) string {
		return must(s.AppendMessage(role, []session.Content{c}))
	}
	first := say(session.RoleUser, session.Text("plan a garden"))
	say(session.RoleAssistant, session.ToolUse("c1", "ls", map[string]any{"path": "."}))
	say(session.RoleTool, session.ToolResult("c1", "a.txt", false))
	last := say(session.RoleAssistant, session.Text("roses"))
	must("", s.Branch(first))
	say(session.RoleUser, session.Text("rather not"))
	must(s.SetLabel(last, "roses"))
	must(s.AppendEntry(session.Tags("garden")))
	say(session.RoleAssistant, session.Text("beans"))
	content, err := os.ReadFile(s.File())
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A session that is open while it is repaired does not write to a wrong place.
func TestRepairUnderAnOpenSession(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	content := bytes.Replace(someLines(t), []byte("roses"), []byte("ro\x00ses"), 1)
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAll(t, dir, "x", nil)
	if _, err := s.Problems(); err != nil { // it has read everything
		t.Fatal(err)
	}
	if out, err := program(dir, "repair", "x"); err != nil {
		t.Fatal(out, err)
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("still there?")}); !errors.Is(err, session.ErrReplaced) {
		t.Errorf("appending: %v, want %v", err, session.ErrReplaced)
	}
	if out, err := program(dir, "fsck", "x"); err != nil {
		t.Error(out, err)
	}
}

// On a full disk every command says so and changes nothing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	path := filepath.Join(dir, "s", "x.jsonl")
	first := someLines(t)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "s"), 0o700), os.WriteFile(path, first, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := program(filepath.Join(dir, "s"), "tag", "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := program(filepath.Join(dir, "s"), "ls"); err != nil { // so that there is an index
		t.Fatal(err)
	}
	if _, err := program(filepath.Join(dir, "s"), "pin", "x"); err != nil { // which the index does not know of
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content = append(content, `{"type":"mess`...)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(dir, "full"))
	for _, args := range [][]string{
		{"append", "x", "--role", "user", strings.Repeat("y", 9000)}, {"fork", "x"}, {"archive", "x"}, {"repair", "x"},
	} {
		out, err := program(filepath.Join(dir, "s"), args...)
		if err == nil || !strings.Contains(out, "no space left on device") || strings.Count(out, "\n") > 2 {
			t.Errorf("%.20q: %v", args, err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(now, content[:len(content)-13]) || len(now) > len(content) {
			t.Fatalf("%.20q: the file has changed: %v", args, err)
		}
	}
	// To see what could go, the index is somewhere else.
	a, out := testApp(t, filepath.Join(dir, "s"))
	env := map[string]string{"HOME": t.TempDir(), "COPPICE_HOME": filepath.Join(dir, "s")}
	a.getenv = func(name string) string { return env[name] }
	if code := a.run(t.Context(), []string{"ls"}); code != exitOK || !strings.Contains(out.String(), "x\t") {
		t.Errorf("ls: exit code %d: %s", code, out)
	}
}

// smallDisk returns a directory on a disk of 2 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	needs.This(t, needs.Root)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dir
}

// fill writes a file until there is no room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := fmt.Fprintf(f, "%*d", size, 0); err != nil {
			size /= 2
		}
	}
}
