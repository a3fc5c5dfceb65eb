package transcript_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
)

// A transcript of Claude Code becomes a session. Importing it again adds nothing.
func ExampleImporter() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.jsonl")
	text := `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":"Do roses need sun?"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-01T10:00:02Z","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Six hours a day."}]}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	st, err := file.Open(filepath.Join(dir, "sessions"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer st.Close()

	ctx := context.Background()
	importer := &transcript.Importer{Store: st}
	for range 2 {
		f, err := transcript.OpenFile(path)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := importer.Import(ctx, claudecode.Format(), f)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(report.Format, "new:", report.New())
	}

	s, err := session.Open(ctx, st, transcript.SessionID("claude-code", "s1"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	entries, err := s.GetContext()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Println(e.Message.Role+":", e.Message.Content[0].Text.Content)
	}
	// Output:
	// claude-code new: 2
	// claude-code new: 0
	// user: Do roses need sun?
	// assistant: Six hours a day.
}
