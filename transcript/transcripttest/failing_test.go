package transcripttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failures int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Fatal(...any)          { r.Fatalf("") }

func (r *recorder) Fatalf(string, ...any) {
	r.failures++
	panic(r)
}

// fails counts the failures of a test.
func fails(t *testing.T, test func(t testing.TB)) (n int) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		n = r.failures
	}()
	test(r)
	return r.failures
}

// TestFailures: the helpers fail when they should.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COPPICE_UPDATE", "")
	t.Setenv("COPPICE_SAMPLES", dir)
	reader := func(read func(to transcript.Sink) error) *transcript.Format {
		return &transcript.Format{
			Name: "x", Detect: func(*transcript.File) bool { return true },
			Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error { return read(to) },
		}
	}
	broken := reader(func(transcript.Sink) error { return errors.New("no") })
	other := &transcript.Format{Detect: func(*transcript.File) bool { return false }}
	n := 0
	changing := reader(func(to transcript.Sink) error {
		n++
		text := session.Text(string(rune('a' + n)))
		return errors.Join(to.Begin(transcript.Conversation{ID: "c"}), to.Add(transcript.Record{ID: "r", Entry: session.Entry{
			Type: session.TypeMessage, Message: &session.MessageEntry{Role: "user", Content: []session.Content{text}},
		}}))
	})
	unkeepable := session.Entry{Type: "odd", Extra: session.Fields{{Name: "x", Value: json.RawMessage("{")}}}
	twice := &transcript.Collected{Conversations: []*transcript.CollectedConversation{{
		Records: []transcript.Record{{ID: "a", Entry: unkeepable}, {ID: "a", Entry: unkeepable}},
	}}}
	tests := map[string]struct {
		test func(t testing.TB)
		want int
	}{
		"a file that is missing":    {func(t testing.TB) { transcripttest.Open(t, path+"x") }, 1},
		"another format":            {func(t testing.TB) { transcripttest.Collect(t, other, transcripttest.Open(t, path)) }, 1},
		"a reader's error":          {func(t testing.TB) { transcripttest.Collect(t, broken, transcripttest.Open(t, path)) }, 1},
		"no samples":                {func(t testing.TB) { transcripttest.Samples(t, "*.none") }, 1},
		"no fixtures":               {func(t testing.TB) { transcripttest.Fixtures(t, filepath.Join(dir, "*.none")) }, 1},
		"a bad pattern":             {func(t testing.TB) { transcripttest.Fixtures(t, "[") }, 1},
		"no golden":                 {func(t testing.TB) { transcripttest.Golden(t, path+"x", "") }, 1},
		"another golden":            {func(t testing.TB) { transcripttest.Golden(t, path, "two") }, 1},
		"a tree that is none":       {func(t testing.TB) { transcripttest.CheckTree(t, twice) }, 3},
		"an import that fails":      {func(t testing.TB) { transcripttest.Import(t, broken, path) }, 1},
		"an import that adds again": {func(t testing.TB) { transcripttest.Import(t, changing, path) }, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fails(t, tt.test); got != tt.want {
				t.Errorf("there are %d failures, want %d", got, tt.want)
			}
		})
	}
}
