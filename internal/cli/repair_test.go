package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	must(s.SetTags("garden"))
	say(session.RoleAssistant, session.Text("beans"))
	content, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// hurt damages a file as crashes, disks and editors do.
func hurt(rng *rand.Rand, content []byte) []byte {
	lines := bytes.SplitAfter(bytes.Clone(content), []byte("\n"))
	lines = lines[:len(lines)-1]
	at := rng.IntN(len(lines))
	line := lines[at]
	switch rng.IntN(7) {
	case 0: // cut off
		lines[at] = append(line[:rng.IntN(len(line))], '\n')
	case 1: // its line end is missing: the next is joined to it
		lines[at] = line[:rng.IntN(len(line))]
	case 2: // a lost block
		from := rng.IntN(len(line))
		clear(line[from : len(line)-1])
	case 3: // repeated
		lines = append(lines, line)
	case 4: // deleted
		lines[at] = nil
	case 5: // moved to the end
		lines[at] = nil
		lines = append(lines, line)
	case 6: // a flipped bit
		line[rng.IntN(len(line))] ^= 1 << rng.IntN(7)
	}
	hurt := bytes.Join(lines, nil)
	if rng.IntN(4) == 0 {
		hurt = hurt[:len(hurt)-rng.IntN(len(hurt)/4)]
	}
	return hurt
}

// readable is what can be read of a session: its entries, and the path to its
// leaf.
type readable struct {
	Entries map[string]string
	Leaf    string
	Path    []string
}

func readSession(t *testing.T, dir, name string) (r readable, ok bool) {
	t.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Open(t.Context(), st, name, nil)
	if errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrInvalid) {
		return readable{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r = readable{Entries: make(map[string]string), Leaf: s.LeafID()}
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if line, err := e.MarshalJSON(); err == nil && e.Type != session.TypeGap {
			r.Entries[e.ID] = string(line)
		}
	}
	path, err := s.PathTo(r.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range path {
		r.Path = append(r.Path, e.ID)
	}
	return r, true
}

// Whatever the damage, repair loses nothing that could be read, leaves the leaf
// and its path where they were, keeps the file as it was, and has nothing more
// to do afterwards.
func TestRepairLosesNothing(t *testing.T) {
	t.Parallel()
	content := someLines(t)
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 0))
		damaged := content
		for range 1 + rng.IntN(3) {
			damaged = hurt(rng, damaged)
		}
		repairDamaged(t, seed, damaged)
	}
}

func repairDamaged(t *testing.T, seed uint64, damaged []byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	path := filepath.Join(dir, "x.jsonl")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, damaged, 0o600)); err != nil {
		t.Fatal(err)
	}
	before, ok := readSession(t, dir, "x")
	a, out := testApp(t, dir)
	code := a.run(t.Context(), []string{"repair", "x"})
	if !ok && (code == exitCorrupt || code == exitUsage) {
		return // there is nothing to be saved, or it seems to be of a later version
	}
	if code != exitOK && code != exitPartial {
		t.Fatalf("seed %d: exit code %d: %s\n%s", seed, code, out, damaged)
	}
	after, _ := readSession(t, dir, "x")
	for id, line := range before.Entries {
		if after.Entries[id] != line {
			t.Errorf("seed %d: entry %s was\n%s and is\n%s", seed, id, line, after.Entries[id])
		}
	}
	// What was saved from the end is the new leaf. Where a path ended at damage, it
	// may go on to what stands before it.
	saved := bytes.Contains(out.Bytes(), []byte("glued line")) || bytes.Contains(out.Bytes(), []byte("the entry is whole"))
	missing := len(after.Path) - len(before.Path)
	if !saved && (before.Leaf != after.Leaf || missing < 0 || !slices.Equal(before.Path, after.Path[missing:])) {
		t.Errorf("seed %d: the path was\n%v and is\n%v\n%s\n%s", seed, before.Path, after.Path, damaged, out)
	}
	checkKept(t, dir, damaged)
	out.Reset()
	a.run(t.Context(), []string{"repair", "x"})
	if !strings.Contains(out.String(), "0 repairs were made") {
		t.Errorf("seed %d: repairing again: %s", seed, out)
	}
}

// checkKept makes sure that the file as it was is in quarantine, if it changed.
func checkKept(t *testing.T, dir string, damaged []byte) {
	t.Helper()
	now, err := os.ReadFile(filepath.Join(dir, "x.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(now, damaged) {
		return
	}
	kept, err := filepath.Glob(filepath.Join(dir, ".coppice", "quarantine", "x.*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("in quarantine: %v, %v", kept, err)
	}
	if was, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(was, damaged) {
		t.Errorf("what was kept is not what was there: %v", err)
	}
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
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
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
		{"rename", "x", strings.Repeat("y", 9000)}, {"fork", "x"}, {"archive", "x"}, {"repair", "x"},
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
