package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
)

// TestGeminiCLIImportWhileItIsWritten: however often a recording is imported while a reply grows,
// a model is sent the reply as it is in the end, and its tokens count once.
func TestGeminiCLIImportWhileItIsWritten(t *testing.T) {
	t.Parallel()
	reply := func(more string) string {
		return `{"id":"g1","timestamp":"2026-01-01T00:00:02Z","type":"gemini","content":"ok","model":"m"` + more + `}`
	}
	tokens := `,"tokens":{"input":23,"output":29,"cached":5,"thoughts":3,"tool":0,"total":55}`
	call := func(id, rest string) string { return `{"id":"` + id + `","name":"run","args":{},` + rest + `}` }
	first := call("c1", `"status":"success","result":[`+result1+`]`)
	lines := []string{
		head, prompt, reply(""), reply(tokens),
		reply(tokens + `,"toolCalls":[` + call("c1", `"status":"executing"`) + `]`),
		reply(tokens + `,"toolCalls":[` + first + `]`),
		reply(tokens + `,"toolCalls":[` + first + `,` + call("c2", `"status":"success","result":[`+result2+`]`) + `]`),
		done,
	}
	path := filepath.Join(t.TempDir(), "session-2026-01-01T00-00-aaaaaaaa.jsonl")
	said := func(steps ...int) (list []string, tokens int) {
		im := &transcript.Importer{Store: memory.New(nil)}
		id := ""
		for _, n := range steps {
			if err := os.WriteFile(path, []byte(recording(lines[:n]...)), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := transcript.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			report, err := im.Import(t.Context(), geminicli.Format(), f)
			if err != nil {
				t.Fatal(err)
			}
			id = report.Sessions[0].ID
		}
		s, err := session.Open(t.Context(), im.Store, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := s.Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Entries {
			var blocks []string
			for _, b := range e.Message.Content {
				switch {
				case b.Text != nil:
					blocks = append(blocks, b.Text.Content)
				case b.ToolUse != nil:
					blocks = append(blocks, "call "+b.ToolUse.ID)
				case b.ToolResult != nil:
					blocks = append(blocks, b.ToolResult.ToolUseID+" is "+b.ToolResult.Content)
				}
			}
			list = append(list, strings.Join(blocks, ", "))
		}
		spent, err := session.SpentIn(s)
		if err != nil {
			t.Fatal(err)
		}
		return list, spent.Tokens()
	}
	want, spent := said(len(lines))
	if len(want) != 4 || want[1] != "ok, call c1, call c2" {
		t.Fatalf("at once: %q", want)
	}
	got, counted := said(2, 3, 4, 5, 6, 7, 8)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the context (-at once +as it grew):\n%s", diff)
	}
	if counted != spent {
		t.Errorf("%d tokens, and %d at once", counted, spent)
	}
}
