package index_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
)

// Whoever redacts a store deletes its index, but does not know of one elsewhere. That
// one must not keep the words, however little the rewritten log differs.
func TestAnIndexApartForgetsWhatWasRewritten(t *testing.T) {
	t.Parallel()
	const secret = "hunter2swordfish"
	for name, replacement := range map[string]string{
		"by something shorter":     "[gone]",
		"by something as long":     strings.Repeat("x", len(secret)),
		"by something longer":      strings.Repeat("x", 2*len(secret)),
		"and the log was appended": "[gone]",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.say("the password is "+secret, "thank you")
			f.say("another session")
			place := t.TempDir()
			ix, err := index.Open(t.Context(), f.st, filepath.Join(place, "index.db"), &index.Options{Apart: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ix.Close() })
			mustCatchUp(t, ix)
			if !holds(t, place, secret) {
				t.Fatal("the word is not in the index to begin with")
			}
			path := filepath.Join(f.dir, s.ID()+".jsonl")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.ReplaceAll(data, []byte(secret), []byte(replacement))
			if strings.HasSuffix(name, "appended") {
				data = append(data, []byte(`{"type":"message","id":"zz","parent_id":null,"timestamp":"2026-03-15T12:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"`+strings.Repeat("more ", 50)+`"}}]}}`+"\n")...)
			}
			if err := os.WriteFile(path+".new", data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			if report := mustCatchUp(t, ix); !report.Rebuilt {
				t.Errorf("it was not rebuilt: %+v", report)
			}
			if holds(t, place, secret) {
				t.Error("the index still has the word")
			}
			if hits := search(t, ix, index.SearchOptions{Query: "password OR another"}); len(hits) != 2 {
				t.Errorf("%d hits", len(hits))
			}
			if report := mustCatchUp(t, ix); report.Rebuilt {
				t.Error("it was rebuilt again, for nothing")
			}
		})
	}
}

// holds reports whether a file in a directory has a word, or its end: an index leaves
// out what a word shares with the one before.
func holds(t *testing.T, dir, word string) bool {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(word[len(word)-8:])) {
			return true
		}
	}
	return false
}
