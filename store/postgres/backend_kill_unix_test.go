//go:build unix

package postgres_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// backendChildEnv, when set, makes the test binary a child that puts blobs into that store.
const backendChildEnv = "COPPICE_BACKEND_CHILD"

// TestBackendChild is the child. It names every second blob, deletes the others, and says on
// standard output which blobs it has named. As a test of its own it has nothing to do.
func TestBackendChild(t *testing.T) {
	where, from, isChild := strings.Cut(os.Getenv(backendChildEnv), "|")
	if !isChild {
		return
	}
	s := mustOpen(t, where, nil)
	for n := 0; ; n++ {
		ref := storetest.MustPut(t, s.Blobs(), bytes.Repeat(fmt.Appendf(nil, "%s %d ", from, n), 10_000))
		if n%2 == 1 {
			mustCollect(t, s, ref)
			continue
		}
		storetest.MustCreate(t, s, fmt.Sprintf("%s-%d", from, n), fmt.Sprintf(`{"blob":%q}`, ref))
		fmt.Println(ref)
	}
}

// A program is killed while it puts and deletes blobs. What it has named is there, all that is
// there is whole, and what it has left behind can be deleted.
func TestKilledWithBlobsElsewhere(t *testing.T) {
	eachPlace(t, func(t *testing.T, where, _ string) {
		s := mustOpen(t, where, nil)
		rng := soak.Rand(t)
		var named []store.Ref
		for round := range soak.N(3) {
			named = append(named, killWriter(t, rng, where, round)...)
		}
		if len(named) == 0 {
			t.Fatal("nothing was written")
		}
		for _, ref := range append(mustAll(t, s), named...) {
			wantBlob(t, s, ref, nil)
		}
		unreferenced, err := s.Blobs().Unreferenced(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range unreferenced {
			if ref := store.Ref(p.Name); slices.Contains(named, ref) || len(mustCollect(t, s, ref)) != 1 {
				t.Errorf("%s is left over, or cannot be deleted", ref)
			}
		}
		for _, ref := range named {
			wantBlob(t, s, ref, nil)
		}
	})
}

// killWriter runs a child, kills it when it has said a few lines, and returns what it has named.
func killWriter(t *testing.T, rng *rand.Rand, where string, round int) (named []store.Ref) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestBackendChild$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", backendChildEnv, where, round))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		ref := store.Ref(lines.Text())
		if _, ok := ref.Hex(); !ok {
			t.Errorf("the child says %q", ref)
			continue
		}
		if named = append(named, ref); len(named) == 3 {
			time.Sleep(time.Duration(rng.IntN(int(20 * time.Millisecond))))
			_ = child.Process.Kill()
		}
	}
	_ = child.Wait() // it was killed
	return named
}

// What a killed program has left in a directory of blobs is found and deleted when it is old.
func TestLeftInDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, mustMakeWith(t, dir), nil)
	ref := storetest.MustPut(t, s.Blobs(), []byte("content"))
	rooms, err := filepath.Glob(filepath.Join(dir, "*", "*", ".coppice", "tmp"))
	if err != nil || len(rooms) != 1 {
		t.Fatalf("%v, %v", rooms, err)
	}
	left, yesterday := filepath.Join(rooms[0], "LEFT"), time.Now().Add(-24*time.Hour)
	if err := os.WriteFile(left, []byte("cont"), 0o600); err != nil {
		t.Fatal(err)
	}
	find := func() (found []store.Part) {
		for p, err := range s.Parts().All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind == store.PartTemp {
				found = append(found, p)
			}
		}
		return found
	}
	if found := find(); len(found) > 0 {
		t.Errorf("what is being written is taken for left: %+v", found)
	}
	if err := os.Chtimes(left, yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	found := find()
	if len(found) != 1 || found[0].Place != left || found[0].Size != 4 {
		t.Fatalf("found %+v", found)
	}
	if err := s.Parts().Remove(t.Context(), found[0]); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("it is still there")
	}
	wantBlob(t, s, ref, nil)
}
