package all_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// tree makes files, each with its own name as content.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// names returns the paths of sources below a directory.
func names(t *testing.T, dir string, sources []discover.Source) []string {
	t.Helper()
	var list []string
	for _, src := range sources {
		rel, err := filepath.Rel(dir, src.Path)
		if err != nil || src.Path == discover.Stdin {
			rel = src.Path
		}
		list = append(list, filepath.ToSlash(rel))
	}
	return list
}

func TestDiscoverSourcesAreEveryFileOnce(t *testing.T) {
	t.Parallel()
	dir := tree(t, "a.jsonl", "b/c.jsonl", "b/.git/config")
	sources, err := discover.Sources(filepath.Join(dir, "a.jsonl"), dir, discover.Stdin, discover.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.jsonl", "b/c.jsonl", "-"}
	if diff := cmp.Diff(want, names(t, dir, sources)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if sources[0].Found || !sources[1].Found {
		t.Errorf("found: %v, %v; only what nobody named was found", sources[0].Found, sources[1].Found)
	}
	if sources[1].Size != int64(len("b/c.jsonl")) {
		t.Errorf("size is %d", sources[1].Size)
	}
}

func TestDiscoverSourcesOfNothingIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := discover.Sources(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDiscoverSourcesDoNotFollowLinksInDirectories(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // links need rights there
	}
	dir := tree(t, "in/a.jsonl", "out/b.jsonl")
	if err := os.Symlink(filepath.Join(dir, "out"), filepath.Join(dir, "in", "link")); err != nil {
		t.Fatal(err)
	}
	sources, err := discover.Sources(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"in/a.jsonl"}, names(t, dir, sources)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	// But one that somebody named they want to be followed.
	sources, err = discover.Sources(filepath.Join(dir, "in", "link"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"in/link/b.jsonl"}, names(t, dir, sources)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// People keep the directory of a program elsewhere, and a link to it in its place.
func TestDiscoverKnownFollowsThePlaceOfAProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // links need rights there
	}
	home := tree(t, "disk/2026/01/02/rollout-2026-01-02T03-04-05-22222222-4d57-4a54-9be1-3f6b1b2f6f10.jsonl", ".codex/config.toml")
	if err := os.Symlink(filepath.Join(home, "disk"), filepath.Join(home, ".codex", "sessions")); err != nil {
		t.Fatal(err)
	}
	if found := discover.Known(transcript.Env{Home: home, GOOS: "linux"}); len(found) != 1 {
		t.Errorf("found %v", found)
	}
}

func TestDiscoverKnownFindsWhatProgramsKeep(t *testing.T) {
	t.Parallel()
	home := tree(t, ".claude/projects/-w/11111111-4d57-4a54-9be1-3f6b1b2f6f10.jsonl", ".claude/settings.json", "notes.txt",
		".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-22222222-4d57-4a54-9be1-3f6b1b2f6f10.jsonl")
	env := transcript.Env{Home: home, GOOS: "linux"}
	programs := discover.ByProgram(discover.Known(env))
	for i := range programs {
		programs[i].Bytes = 0
	}
	want := []discover.Program{
		{Name: "codex", Title: "Codex", Files: 1},
		{Name: "claude-code", Title: "Claude Code", Files: 1},
	}
	if diff := cmp.Diff(want, programs); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	if len(discover.Known(transcript.Env{Home: t.TempDir(), GOOS: "linux"})) > 0 {
		t.Error("an empty home has transcripts")
	}
}

// TestLookedListsEachOnce looks twice: for what a program keeps, and at a directory of it. An empty
// directory is listed, because the next file may appear in it.
func TestLookedListsEachOnce(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	projects := filepath.Join(home, ".claude", "projects")
	file := filepath.Join(projects, "-w", id(1)+".jsonl")
	write(t, file, talk(id(1), 1))
	if err := os.MkdirAll(filepath.Join(projects, "-empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	var l discover.Looked
	if err := l.In(file, filepath.Join(projects, "-w")); err != nil {
		t.Fatal(err)
	}
	l.For(transcript.Env{Home: home, GOOS: "linux"}, transcript.Named("claude-code"))
	if len(l.Sources) != 1 || l.Sources[0].Path != file || l.Sources[0].Found {
		t.Errorf("sources: %+v; want the one file, as it was named", l.Sources)
	}
	want := []string{filepath.Join(projects, "-w"), projects, filepath.Join(projects, "-empty")}
	if diff := cmp.Diff(want, l.Dirs); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
}
