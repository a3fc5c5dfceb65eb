package transcripttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/transcript"
)

// Fixtures returns the files that match patterns, except for goldens.
func Fixtures(t testing.TB, patterns ...string) []string {
	t.Helper()
	var paths []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if filepath.Ext(path) != ".txt" {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		t.Fatalf("no fixtures match %q", patterns)
	}
	return paths
}

// ReadFixtures reads fixtures, and compares what is found with the outlines
// beside them, which have the ending .txt.
func ReadFixtures(t *testing.T, format *transcript.Format, patterns ...string) {
	t.Helper()
	readFixtures(t, format, Open, patterns)
}

func readFixtures(t *testing.T, format *transcript.Format, open opener, patterns []string) {
	t.Helper()
	for _, path := range Fixtures(t, patterns...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := Collect(t, format, open(t, path))
			CheckTree(t, c)
			Golden(t, strings.TrimSuffix(path, filepath.Ext(path))+".txt", Outline(c))
		})
	}
}

// CheckTree checks that all records can be kept, have ids of their own, and
// follow records that came before.
func CheckTree(t testing.TB, c *transcript.Collected) {
	t.Helper()
	for _, conv := range c.Conversations {
		seen := map[string]bool{"": true, transcript.Root: true}
		for i, r := range conv.Records {
			if _, err := r.Entry.MarshalJSON(); err != nil {
				t.Errorf("record %d cannot be kept: %v", i, err)
			}
			if r.ID != "" && seen[r.ID] {
				t.Errorf("record %d has the id %q of an earlier record", i, r.ID)
			}
			seen[r.ID] = true
			for _, alias := range r.Aliases {
				seen[alias] = true
			}
		}
	}
}

// FuzzReader runs a reader on fuzzed fixtures. It must not panic, and a session must be able
// to hold whatever it finds.
func FuzzReader(f *testing.F, format *transcript.Format, patterns ...string) {
	f.Helper()
	for _, path := range Fixtures(f, patterns...) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		storetest.Bounded(t, 256<<20+int64(len(data))*20_000, func() { fuzzOne(t, format, data) })
	})
}

func fuzzOne(t *testing.T, format *transcript.Format, data []byte) {
	c, err := transcript.Collect(t.Context(), format, transcript.FileOf("fuzz", data))
	if err != nil {
		return // not a document
	}
	for _, conv := range c.Conversations {
		for i := range conv.Records {
			if _, err := conv.Records[i].Entry.MarshalJSON(); err != nil {
				t.Errorf("record %d cannot be kept: %v", i, err)
			}
		}
	}
}

// Counts are how many messages, calls and results there are.
type Counts struct{ Messages, Calls, Results int }

// Count counts what a reader found.
func Count(c *transcript.Collected) (n Counts) {
	for _, conv := range c.Conversations {
		for i := range conv.Records {
			m := conv.Records[i].Entry.Message
			if m == nil {
				continue
			}
			n.Messages++
			for _, b := range m.Content {
				if b.ToolUse != nil {
					n.Calls++
				}
				if b.ToolResult != nil {
					n.Results++
				}
			}
		}
	}
	return n
}
