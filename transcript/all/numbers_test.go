package all_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
)

// TestLargeIntegersComeBack: in the arguments of calls, in metadata, and in what a
// source says of a conversation, every digit survives the way in and out again.
func TestLargeIntegersComeBack(t *testing.T) {
	t.Parallel()
	const n = "123456789012345678"
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }, GOOS: "linux"}
	for _, tt := range []struct {
		format, file, text string
		times              int
	}{
		{"penguin", "session_20260401_120000_aaaa0001.json", `{"id":"session_20260401_120000_aaaa0001","created_at":"2026-04-01T12:00:00",` +
			`"last_active":"2026-04-01T12:00:09","metadata":{"owner":` + n + `},"messages":[{"role":"user","content":"hi","category":"DIALOG",` +
			`"id":"msg_1","timestamp":"2026-04-01T12:00:01","metadata":{"chat":` + n + `},"tokens":0}]}`, 2},
		{"openagent", "2026-01-02_101500.json", `{"metadata":{"session_id":"2026-01-02_101500","created_at":"2026-01-02T10:15:00",` +
			`"updated_at":"2026-01-02T10:15:09","message_count":2,"total_tokens":0,"title":null,"tags":[]},"messages":[` +
			`{"role":"user","content":"hi","timestamp":"2026-01-02T10:15:01","metadata":{"chat":` + n + `}},` +
			`{"role":"assistant","content":"","timestamp":"2026-01-02T10:15:02","tool_calls":[{"tool":"send","args":{"chat":` + n + `}}],"metadata":{}}]}`, 2},
	} {
		t.Run(tt.format, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, tt.file)
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			st, err := file.Open(filepath.Join(dir, "sessions"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			f, err := transcript.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			format := transcript.Named(tt.format)
			report, err := (&transcript.Importer{Store: st}).Import(t.Context(), format, f)
			if err != nil {
				t.Fatal(err)
			}
			s, err := session.Open(t.Context(), st, report.Sessions[0].ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			script, err := transcript.NewScript(s, format.Name, "", s.Header().CreatedAt)
			if err != nil {
				t.Fatal(err)
			}
			out, err := format.Write(t.Context(), script, env)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(out.Files[0].Data), n); got != tt.times {
				t.Errorf("the number is there %d times, want %d, in\n%s", got, tt.times, out.Files[0].Data)
			}
		})
	}
}
