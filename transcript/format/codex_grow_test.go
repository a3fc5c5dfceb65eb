package format_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestCodexGrow: a rollout that is imported after every line becomes the same tree as one
// that is imported when it is complete, and costs the same. An answer is there before
// its token count is.
func TestCodexGrow(t *testing.T) {
	t.Parallel()
	for _, path := range codexFixtures(t) {
		if filepath.Ext(path) != ".jsonl" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var parts [][]byte
			for i, c := range data {
				if c == '\n' {
					parts = append(parts, data[:i+1])
				}
			}
			grown, whole := importParts(t, path, parts...), importParts(t, path, data)
			if diff := cmp.Diff(whole, grown); diff != "" {
				t.Errorf("imported line by line it is another tree (-whole +grown):\n%s", diff)
			}
		})
	}
}

// TestCodexGrowFailure: that a command failed may be written after its result.
func TestCodexGrowFailure(t *testing.T) {
	t.Parallel()
	lines := [][]byte{
		[]byte(`{"timestamp":"2026-02-01T10:00:00.000Z","type":"session_meta","payload":{"id":"019c0000-0000-7000-8000-0000000000aa","timestamp":"2026-02-01T10:00:00.000Z","cwd":"/w"}}`),
		[]byte(`{"timestamp":"2026-02-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Run it."}]}}`),
		[]byte(`{"timestamp":"2026-02-01T10:00:02.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}}`),
		[]byte(`{"timestamp":"2026-02-01T10:00:03.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"no"}}`),
		[]byte(`{"timestamp":"2026-02-01T10:00:04.000Z","type":"event_msg","payload":{"type":"exec_command_end","call_id":"c1","exit_code":1}}`),
		[]byte(`{"timestamp":"2026-02-01T10:00:05.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It failed."}]}}`),
	}
	var parts [][]byte
	for i := range lines {
		parts = append(parts, append(bytes.Join(lines[:i+1], []byte("\n")), '\n'))
	}
	got := importParts(t, "rollout.jsonl", parts...)
	for id, g := range got {
		if n := len(g.Entries); n != 4 {
			t.Errorf("session %s has %d entries: %v, want 4 messages", id, n, g.Entries)
		}
	}
}

// grownSession is what must not depend on when a file was imported.
type grownSession struct {
	Leaf    string
	Entries map[string]string // what entries say after which others, by id
	Tokens  int
}

// importParts imports the states of a file one after the other.
func importParts(t *testing.T, path string, states ...[]byte) map[string]grownSession {
	t.Helper()
	im := &transcript.Importer{Store: memory.New(nil), Now: transcripttest.Now}
	ids := make(map[string]bool)
	for _, data := range states {
		report, err := im.Import(t.Context(), codex.Format(), transcript.FileOf(path, data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range report.Sessions {
			ids[s.ID] = true
			if s.Revised > 0 {
				t.Errorf("after %d bytes %d records were taken for revised", len(data), s.Revised)
			}
		}
	}
	all := make(map[string]grownSession)
	for id := range ids {
		s, err := session.Open(t.Context(), im.Store, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		script, err := transcript.NewScript(s, "codex", "", transcripttest.Now())
		if err != nil {
			t.Fatal(err)
		}
		spent, err := session.SpentIn(s)
		if err != nil {
			t.Fatal(err)
		}
		g := grownSession{Leaf: s.LeafID(), Entries: make(map[string]string), Tokens: spent.Tokens()}
		for i := range script.All {
			if e := &script.All[i]; !e.IsAside() {
				line, err := e.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				// A flag that comes after its result was imported is left out.
				g.Entries[e.ID] = strings.ReplaceAll(string(line), `"is_error":true`, `"is_error":false`)
			}
		}
		all[id] = g
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
