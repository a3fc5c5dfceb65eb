package coppice_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice"
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
func another(t *testing.T, h *coppice.Home, o coppice.Options) *coppice.Home {
	t.Helper()
	o.Settings = h.Settings()
	other, err := coppice.Open(t.Context(), h.Dir(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// While a redaction is under way, others index what is not redacted yet. Whenever
// they do, no file has the secret when the redaction is done.
func TestRedactedTextIsNotInTheIndexOfASearchMeanwhile(t *testing.T) {
	for _, moment := range []string{"replacing secrets", "reading every file again"} {
		t.Run(moment, func(t *testing.T) {
			h, dir := keptHome(t)
			keep(t, dir, "plain", 1, "nothing of note")
			keep(t, dir, "secret", 1, "use "+indexedSecret)
			searcher := another(t, h, coppice.Options{})
			searched := 0
			redacter := another(t, h, coppice.Options{Progress: func(doing string, done, _ int64) {
				if doing != moment {
					return
				}
				found, err := searcher.Search.Find(t.Context(), coppice.FindRequest{Query: "note"})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%+v, %v", found, err)
				}
				searched++
			}})
			if _, err := h.Search.Find(t.Context(), coppice.FindRequest{Query: indexedSecret}); err != nil {
				t.Fatal(err)
			}
			if len(leaks(t, dir)) < 2 {
				t.Fatal("the index has no trace of the secret to begin with")
			}
			done, err := redacter.Upkeep.Redact(t.Context(), coppice.RedactRequest{All: true, Apply: true})
			if err != nil || searched == 0 || done.Index == "" {
				t.Fatalf("%+v, %v after %d searches", done, err, searched)
			}
			if found := leaks(t, dir); len(found) > 0 {
				t.Errorf("still in %v", found)
			}
			found, err := searcher.Search.Find(t.Context(), coppice.FindRequest{Query: "REDACTED"})
			if err != nil || len(found.Hits) != 1 {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// The same with searches at any moment, from this home and from others.
func TestRedactionLeavesNothingToThoseWhoSearchAllTheWhile(t *testing.T) {
	h, dir := keptHome(t)
	keep(t, dir, "plain", 1, "nothing of note")
	var searching sync.WaitGroup
	done := make(chan struct{})
	for _, by := range []*coppice.Home{h, another(t, h, coppice.Options{}), another(t, h, coppice.Options{})} {
		searching.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				found, err := by.Search.Find(t.Context(), coppice.FindRequest{Query: "note"})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%+v, %v", found, err)
					return
				}
			}
		})
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		keep(t, dir, name, 1, "use "+indexedSecret)
		if _, err := h.Upkeep.Redact(t.Context(), coppice.RedactRequest{All: true, Apply: true}); err != nil {
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
	h, dir := keptHome(t)
	keep(t, dir, "secret", 1, "use "+indexedSecret)
	searcher := another(t, h, coppice.Options{})
	search := func() {
		if _, err := searcher.Search.Find(t.Context(), coppice.FindRequest{Query: "use"}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	redacter := another(t, h, coppice.Options{Progress: func(doing string, done, _ int64) {
		if doing == "replacing secrets" {
			search()
			cancel()
		}
	}})
	if _, err := redacter.Upkeep.Redact(ctx, coppice.RedactRequest{All: true, Apply: true}); err == nil {
		t.Fatal("the redaction was not interrupted")
	}
	finisher := another(t, h, coppice.Options{Progress: func(doing string, done, _ int64) {
		if doing == "replacing secrets" || doing == "reading every file again" {
			search()
		}
	}})
	if _, err := finisher.Sessions.Create(t.Context(), coppice.CreateRequest{Title: "new"}); err != nil {
		t.Fatal(err)
	}
	if found := leaks(t, dir); len(found) > 0 {
		t.Errorf("still in %v", found)
	}
}
