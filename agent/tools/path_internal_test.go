package tools

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a system that does not care about case, a path can lead into the working directory
// and not look like it. It must then be named as rules name it.
func TestWorkingDirectoryByAnotherName(t *testing.T) {
	t.Parallel()
	d, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "a/b": true, "": true, "..": false, "../x": false} {
		full := filepath.Join(d.real, name)
		if rel, ok := d.contains(full); ok != want || ok && rel != filepath.Clean(name) {
			t.Errorf("%q: %q, %v", name, rel, ok)
		}
	}
	if at, err := d.openOutside(filepath.Join(d.real, "a")); err == nil || !strings.Contains(err.Error(), "name it a") {
		t.Errorf("%v, %v", at, err)
	}
}

// A file that somebody else changed after it was read is left alone.
func TestChangeInTheMeantimeIsKept(t *testing.T) {
	t.Parallel()
	d, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := &toolset{dir: d}
	name := filepath.Join(d.real, "a")
	set := func(content string, modified time.Time) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	at, err := d.open(path{name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	now := time.Now()
	for what, change := range map[string]func(){
		"longer":  func() { set("theirs and more", now) },
		"other":   func() { set("others", now) }, // of the same size and time
		"removed": func() { os.Remove(name) },
	} {
		set("theirs", now)
		before, err := at.look()
		if err != nil {
			t.Fatal(err)
		}
		change()
		kept, _ := os.ReadFile(name)
		if err := k.replace(at, before, sha256.Sum256([]byte("theirs")), []byte("ours")); err == nil || !strings.Contains(err.Error(), "in the meantime") {
			t.Errorf("%s: %v", what, err)
		}
		if got, _ := os.ReadFile(name); string(got) != string(kept) {
			t.Errorf("%s: %q", what, got)
		}
	}
	set("theirs", now)
	if err := k.replace(at, nil, digest{}, []byte("ours")); err == nil {
		t.Error("a file was replaced that was not there before")
	}
}
