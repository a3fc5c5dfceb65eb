package home_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/upkeep"
)

// indexedSecret is a made-up secret; split, so that nobody takes this file for one.
const indexedSecret = "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"

// leaks returns the files below a directory that have the secret, or its end: an
// index folds case and leaves out what a word shares with the one before.
func leaks(t *testing.T, dir string) (found []string) {
	t.Helper()
	secret := bytes.ToLower([]byte(indexedSecret))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(bytes.ToLower(data), secret[len(secret)-16:]) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// another opens a home once more, as another process would.
func another(t *testing.T, h *home.Home, o home.Options) *home.Home {
	t.Helper()
	o.Settings = h.Settings()
	other, err := home.Open(t.Context(), h.Dir(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// While a redaction is under way, others index what is not redacted yet. Whenever
// they do, no file has the secret when the redaction is done.
func TestRedactedTextIsNotInTheIndexOfASearchMeanwhile(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"replacing secrets", "reading every file again"} {
		t.Run(moment, func(t *testing.T) {
			h, dir := keptHome(t)
			keep(t, dir, "plain", 1, "nothing of note")
			keep(t, dir, "secret", 1, "use "+indexedSecret)
			searcher := another(t, h, home.Options{})
			searched := 0
			redacter := another(t, h, home.Options{Progress: func(doing string, done, _ int64) {
				if doing != moment {
					return
				}
				found, err := searcher.Search.Find(t.Context(), home.FindRequest{Query: "note"})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%+v, %v", found, err)
				}
				searched++
			}})
			if _, err := h.Search.Find(t.Context(), home.FindRequest{Query: indexedSecret}); err != nil {
				t.Fatal(err)
			}
			if len(leaks(t, dir)) < 2 {
				t.Fatal("the index has no trace of the secret to begin with")
			}
			done, err := redacter.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true})
			if err != nil || searched == 0 || done.Index == "" {
				t.Fatalf("%+v, %v after %d searches", done, err, searched)
			}
			if found := leaks(t, dir); len(found) > 0 {
				t.Errorf("still in %v", found)
			}
			found, err := searcher.Search.Find(t.Context(), home.FindRequest{Query: "REDACTED"})
			if err != nil || len(found.Hits) != 1 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// The same with searches at any moment, from this home and from others.
func TestRedactionLeavesNothingToThoseWhoSearchAllTheWhile(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "plain", 1, "nothing of note")
	var searching sync.WaitGroup
	done := make(chan struct{})
	for _, by := range []*home.Home{h, another(t, h, home.Options{}), another(t, h, home.Options{})} {
		searching.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				found, err := by.Search.Find(t.Context(), home.FindRequest{Query: "note"})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%+v, %v", found, err)
					return
				}
			}
		})
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		keep(t, dir, name, 1, "use "+indexedSecret)
		if _, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
			t.Error(err)
		}
		if found := leaks(t, dir); len(found) > 0 {
			t.Errorf("still in %v", found)
		}
	}
	close(done)
	searching.Wait()
}

// An interrupted redaction is finished by the next who writes. By then others may
// have made the index again.
func TestFinishingARedactionLeavesNothingInTheIndex(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "secret", 1, "use "+indexedSecret)
	searcher := another(t, h, home.Options{})
	search := func() {
		if _, err := searcher.Search.Find(t.Context(), home.FindRequest{Query: "use"}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	redacter := another(t, h, home.Options{Progress: func(doing string, done, _ int64) {
		if doing == "replacing secrets" {
			search()
			cancel()
		}
	}})
	if _, err := redacter.Upkeep.Redact(ctx, home.RedactRequest{All: true, Apply: true}); err == nil {
		t.Fatal("the redaction was not interrupted")
	}
	finisher := another(t, h, home.Options{Progress: func(doing string, done, _ int64) {
		if doing == "replacing secrets" || doing == "reading every file again" {
			search()
		}
	}})
	if _, err := finisher.Sessions.Create(t.Context(), home.CreateRequest{Title: "new"}); err != nil {
		t.Fatal(err)
	}
	if found := leaks(t, dir); len(found) > 0 {
		t.Errorf("still in %v", found)
	}
}

// Indexes in the cache are named after a path, and the home may have had another one: a
// link, a mount, or the one before it was moved. None keeps what was redacted.
func TestRedactionReachesIndexesUnderOtherPaths(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "secret", 1, "use "+indexedSecret)
	cache := filepath.Join(t.TempDir(), "cache")
	env := map[string]string{"HOME": t.TempDir(), "COPPICE_SYNC": "never", "XDG_CACHE_HOME": cache}
	settings, err := home.LoadSettings(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	room, err := sqlite.Open(t.Context(), filepath.Join(cache, "coppice", "0123456789abcdef.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ix := index.New(h.Store(), room, &index.Options{Apart: true})
	if _, err := ix.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if len(leaks(t, cache)) == 0 {
		t.Fatal("the index has no trace of the secret to begin with")
	}
	redacter, err := home.Open(t.Context(), dir, &home.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	defer redacter.Close()
	if _, err := redacter.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
		t.Fatal(err)
	}
	if found := leaks(t, cache); len(found) > 0 {
		t.Errorf("still in %v", found)
	}
}

// A process that was killed leaves its temporary index behind. The next one that needs such
// an index deletes it, and leaves alone what is in use.
func TestTemporaryIndexesOfKilledProcessesAreDeleted(t *testing.T) {
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	left := filepath.Join(temp, "coppice-index-1")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lock", "index.db"} {
		if err := os.WriteFile(filepath.Join(left, name), []byte(indexedSecret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	search := func() *home.Home {
		h, err := home.Open(t.Context(), t.TempDir(), nil) // nobody has written here
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Search.Find(t.Context(), home.FindRequest{Query: "x"}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	for i, h := range []*home.Home{search(), search()} {
		if found, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(found) != 2-i {
			t.Errorf("%v, %v", found, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if found, err := os.ReadDir(temp); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// The receipt names an index that a running program has for itself, and says where it
// looked. When that program was killed, the next redaction deletes the index, even if it has
// nothing else to do.
func TestReceiptNamesTemporaryIndexes(t *testing.T) {
	temp := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, temp)
	}
	h, dir := keptHome(t)
	keep(t, dir, "secret", 1, "use "+indexedSecret)
	for name, of := range map[string]string{"coppice-index-1": dir, "coppice-index-2": t.TempDir()} {
		if err := os.Mkdir(filepath.Join(temp, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"lock": "", "of": of, "index.db": indexedSecret} {
			if err := os.WriteFile(filepath.Join(temp, name, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	redact := func() *clean.Receipt {
		done := must[*upkeep.RedactResult](t)(h.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}))
		return done.Receipt
	}
	var running []vfs.File
	for _, name := range []string{"coppice-index-1", "coppice-index-2"} {
		f, err := vfs.OS{}.OpenFile(filepath.Join(temp, name, "lock"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f.TryLock(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		running = append(running, f)
	}
	got := redact()
	if len(got.Left) != 1 || got.Left[0].Path != filepath.Join(temp, "coppice-index-1") {
		t.Errorf("left: %+v", got.Left)
	}
	if !slices.Contains(got.Searched, h.Dir()) || !slices.Contains(got.Searched, temp) {
		t.Errorf("searched: %v", got.Searched)
	}
	for _, f := range running { // the program is killed
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := redact(); len(got.Left) > 0 || len(got.Kinds) > 0 {
		t.Errorf("%+v", got)
	}
	if found := leaks(t, temp); len(found) > 0 {
		t.Errorf("still in %v", found)
	}
}
