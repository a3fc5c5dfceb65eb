package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// program runs the program in a process of its own, as a user would.
func program(dir string, args ...string) (string, error) {
	cmd := exec.Command("coppice", append([]string{"--dir", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("coppice %q: %w: %s", args, err, out)
	}
	return string(out), err
}

// openAll opens the one session of a directory.
func openAll(t *testing.T, dir, name string, o *session.Options) *session.Session {
	t.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), st, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); st.Close() })
	return s
}

// Two processes change one session while an agent talks in it: nothing of any
// of the three is lost.
func TestTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	created, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	first, err := created.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	id := created.ID()
	created.Close()

	const each = 12
	var group sync.WaitGroup
	errs := make(chan error, 1000)
	for _, who := range []string{"a", "b"} {
		group.Go(func() {
			for i := range each {
				tag := fmt.Sprintf("+%s%02d", who, i)
				_, err := program(dir, "tag", id, tag)
				errs <- err
				_, err = program(dir, "label", id, first, tag)
				errs <- err
			}
		})
	}
	agent := openAll(t, dir, id, &session.Options{OnConflict: session.GrowBranch})
	var said []string
	group.Go(func() {
		for range 100 {
			entry, err := agent.AppendMessage(session.RoleUser, []session.Content{session.Text("on and on")})
			errs <- err
			said = append(said, entry)
		}
	})
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	checkTogether(t, openAll(t, dir, id, nil), said, each)
}

func checkTogether(t *testing.T, s *session.Session, said []string, each int) {
	t.Helper()
	found, err := s.Remarks()
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Tags) != 2*each {
		t.Errorf("there are %d tags, want %d: %v", len(found.Tags), 2*each, found.Tags)
	}
	labels := 0
	var messages []string
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Label != nil:
			labels++
		case e.Message != nil:
			messages = append(messages, e.ID)
		}
	}
	if labels != 2*each || !slices.Equal(messages[1:], said) {
		t.Errorf("there are %d labels and %d messages, want %d and %d", labels, len(messages)-1, 2*each, len(said))
	}
	problems, err := s.Problems()
	if err != nil || len(problems) > 0 {
		t.Errorf("problems: %v, %v", problems, err)
	}
}

// Whoever appends a message says it wherever the conversation has got to: nobody is
// turned away because others append at the same moment.
func TestAppendsTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	id, err := program(dir, "new")
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	const writers, each = 4, 5
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				if _, err := program(dir, "append", id, "--role", "user", "me too"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	path, err := openAll(t, dir, id, nil).Forward("")
	said := slices.DeleteFunc(path, func(e session.Entry) bool { return e.Type != session.TypeMessage })
	if err != nil || len(said) != writers*each {
		t.Errorf("%d messages are on the branch, want %d; %v", len(said), writers*each, err)
	}
}

// Two processes merge at once: each either does it or reports a conflict.
func TestMergesTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("on another branch")})
	if err := errors.Join(err, s.Branch(first)); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	s.Close()
	var group sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 2 {
		group.Go(func() {
			for range 10 {
				_, err := program(dir, "merge", id, other, "--summary", "x")
				var failed *exec.ExitError
				mu.Lock()
				switch {
				case err == nil:
					done++
				case !asExit(err, &failed) || failed.ExitCode() != exitConflict:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	merges := 0
	for e, err := range openAll(t, dir, id, nil).Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Merge != nil {
			merges++
		}
	}
	if merges != done || done == 0 {
		t.Errorf("%d merges were reported done, %d are there", done, merges)
	}
}

// Two processes write into one store and search it at the same time: each finds
// what it wrote, and in the end everything is found once.
func TestIndexTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	const each = 8
	var group sync.WaitGroup
	for _, who := range []string{"heron", "otter"} {
		group.Go(func() {
			id, err := program(dir, "new", "--title", who)
			if err != nil {
				t.Error(err)
				return
			}
			id = strings.TrimSpace(id)
			for i := range each {
				if _, err := program(dir, "append", id, "--role", "user", fmt.Sprintf("%s number%d", who, i)); err != nil {
					t.Error(err)
				}
				out, err := program(dir, "search", "--json", who, fmt.Sprintf("number%d", i))
				if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, id) {
					t.Errorf("%s finds %q, %v", who, out, err)
				}
			}
		})
	}
	group.Wait()
	out, err := program(dir, "search", "--json", "-n", "100", "--kind", "text", "heron", "OR", "otter")
	if err != nil || strings.Count(out, "\n") != 2*each {
		t.Errorf("in the end %d are found: %v", strings.Count(out, "\n"), err)
	}
	out, err = program(dir, "ls", "--json")
	if err != nil || strings.Count(out, fmt.Sprintf(`"messages":%d,`, each)) != 2 {
		t.Errorf("the list has %s, %v", out, err)
	}
	if out, err := program(dir, "fsck"); err != nil {
		t.Error(out, err)
	}
}
