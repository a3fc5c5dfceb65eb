package storetest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

// The checks of the capabilities that only some stores have. The caller has asked whether
// the store has them.
var (
	directoryChecks = []check{{"Paths", checkDirectoryPaths}}
	archiveChecks   = []check{{"ThereAndBack", checkArchiveThereAndBack}, {"Edit", checkArchiveEdit}}
	mendChecks      = []check{{"NoFaults", checkMendNoFaults}, {"Rewrite", checkMendRewrite}, {"Readmit", checkMendReadmit}, {"Backup", checkMendBackup}}
)

func as[T any](s store.Store) T {
	t, _ := store.As[T](s)
	return t
}

func checkDirectoryPaths(t *testing.T, s store.Store) {
	d := as[store.Directory](s)
	paths := []string{s.Where(), d.Path("a"), d.Path("b"), d.IndexPath()}
	for i, path := range paths {
		if !filepath.IsAbs(path) || i > 0 && !filepath.IsLocal(mustRel(t, paths[0], path)) || i > 0 && path == paths[i-1] {
			t.Errorf("the paths are %q", paths)
		}
	}
	if _, err := os.Lstat(d.IndexPath()); err == nil {
		t.Error("the store has made an index")
	}
}

func mustRel(t *testing.T, base, path string) string {
	t.Helper()
	rel, err := filepath.Rel(base, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func checkArchiveThereAndBack(t *testing.T, s store.Store) {
	a := as[store.Archiver](s)
	MustCreate(t, s, "a", nums(0, 100)...).Close()
	wantErr(t, a.Archive(t.Context(), "b"), "b", store.ErrNotExist)
	for range 2 {
		if err := a.Archive(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if !mustStat(t, s, "a").Archived {
			t.Fatal("the log is not archived")
		}
		wantLines(t, MustOpen(t, s, "a"), nums(0, 100)...)
	}
	if err := a.Unarchive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if mustStat(t, s, "a").Archived {
		t.Fatal("the log is still archived")
	}
	MustAppend(t, MustOpen(t, s, "a"), num(100))
	wantLines(t, MustOpen(t, s, "a"), nums(0, 101)...)
}

// A log stays archived when something is taken out of it.
func checkArchiveEdit(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0)).Close()
	if err := as[store.Archiver](s).Archive(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mustEdit(t, s, logPart(s, "a"))
	if !mustStat(t, s, "a").Archived {
		t.Error("the log is no longer archived")
	}
	wantLines(t, MustOpen(t, s, "a"), `{"edited":{"n":0}}`)
}

func checkMendNoFaults(t *testing.T, s store.Store) {
	MustCreate(t, s, "a", num(0)).Close()
	m := as[store.Mender](s)
	for _, faults := range []func(func(store.Fault, error) bool){m.InspectLog(t.Context(), "a"), m.InspectRest(t.Context())} {
		for f, err := range faults {
			t.Errorf("a new store has a fault: %+v, %v", f, err)
		}
	}
}

func mustRaw(t *testing.T, s store.Store, name string) store.Raw {
	t.Helper()
	raw, err := as[store.Mender](s).OpenRaw(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}

// rewrite yields a new first line, and the rest as it is.
func rewrite(raw store.Raw, line string, from store.Pos) func(func(store.Piece, error) bool) {
	return func(yield func(store.Piece, error) bool) {
		if yield(store.Piece{Line: []byte(line)}, nil) {
			yield(store.Piece{From: from, To: store.Pos(raw.Size())}, nil)
		}
	}
}

func checkMendRewrite(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", nums(0, 3)...)
	second := MustRead(t, log, 0)[1].Pos
	raw := mustRaw(t, s, "a")
	var lines [][]byte
	for line, err := range raw.Lines(t.Context()) {
		if err != nil || line.Torn {
			t.Fatalf("line %+v: %v", line, err)
		}
		lines = append(lines, bytes.Clone(line.Data))
	}
	if len(lines) != 3 {
		t.Fatalf("there are %d lines", len(lines))
	}
	kept, err := raw.Rewrite(t.Context(), rewrite(raw, num(9), second))
	if err != nil || kept == "" {
		t.Fatalf("rewrite: kept at %q, %v", kept, err)
	}
	wantLines(t, MustOpen(t, s, "a"), num(9), num(1), num(2))
	_, err = raw.Rewrite(t.Context(), rewrite(raw, num(8), second))
	wantErr(t, err, "a", store.ErrConflict)
	wantErr(t, log.Current(), "a", store.ErrReplaced)
	_, err = as[store.Mender](s).OpenRaw(t.Context(), "b")
	wantErr(t, err, "b", store.ErrNotExist)
}

func checkMendReadmit(t *testing.T, s store.Store) {
	m := as[store.Mender](s)
	second := MustRead(t, MustCreate(t, s, "a", nums(0, 3)...), 0)[1].Pos
	raw := mustRaw(t, s, "a")
	if _, err := raw.Rewrite(t.Context(), rewrite(raw, num(9), second)); err != nil {
		t.Fatal(err)
	}
	items, err := m.Quarantined(t.Context())
	if err != nil || len(items) != 1 || items[0].Name != "a" || items[0].Torn {
		t.Fatalf("quarantined: %+v, %v", items, err)
	}
	_, err = m.Readmit(t.Context(), items[0].ID)
	wantErr(t, err, "a", store.ErrExist)
	mustRemove(t, s, "a")
	if name, err := m.Readmit(t.Context(), items[0].ID); err != nil || name != "a" {
		t.Fatalf("readmitted %q, %v", name, err)
	}
	wantLines(t, MustOpen(t, s, "a"), nums(0, 3)...)
}

func checkMendBackup(t *testing.T, s store.Store) {
	m := as[store.Mender](s)
	MustCreate(t, s, "a", num(0)).Close()
	if path, ok := m.HasBackup("a"); ok {
		t.Fatalf("there is a backup at %q", path)
	}
	if err := m.RestoreBackup(t.Context(), "a"); !errors.Is(err, store.ErrNotExist) {
		t.Fatalf("restore: %v", err)
	}
	wantLines(t, MustOpen(t, s, "a"), num(0))
}
