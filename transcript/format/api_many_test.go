package format_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/api"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
)

// TestAPIAFileDoesNotDecideHowMuchMemoryItTakes: of the shortest messages and blocks there
// are, a file holds millions. They take a few times its size, the messages beside them
// are read, and the report says what was left out.
func TestAPIAFileDoesNotDecideHowMuchMemoryItTakes(t *testing.T) {
	const n = 4 * session.MaxBlocks
	many := strings.Repeat("{},", n-1) + "{}"
	empty := fmt.Sprintf("messages without a role and content: %d", n)
	long := "more than 100000 blocks"
	line := `{"timestamp":"2026-02-01T10:00:00.000Z","type":`
	for name, c := range map[string]struct {
		format     *transcript.Format
		text, want string
	}{
		"openai, messages":    {api.OpenAI(), `{"messages":[{"role":"user","content":"hello"},` + many + `]}`, empty},
		"openai, list":        {api.OpenAI(), `[{"role":"user","content":"hello"},` + many + `]`, empty},
		"anthropic, messages": {api.Anthropic(), `{"messages":[{"role":"user","content":"hello"},` + many + `]}`, empty},
		"google, contents":    {api.Google(), `{"contents":[{"role":"user","parts":[{"text":"hello"}]},` + many + `]}`, empty},
		"openai, content":     {api.OpenAI(), `{"messages":[{"role":"user","content":"hello"},{"role":"user","content":[` + many + `]}]}`, long},
		"responses, content":  {api.Responses(), `{"input":[{"role":"user","content":"hello"},{"role":"user","content":[` + many + `]}]}`, long},
		"google, parts":       {api.Google(), `{"contents":[{"role":"user","parts":[{"text":"hello"}]},{"role":"user","parts":[` + many + `]}]}`, long},
		"gemini cli, content": {geminicli.Format(), `{"sessionId":"s","projectHash":"p","messages":[{"id":"a","type":"user","content":"hello"},{"id":"b","type":"user","content":[` + many + `]}]}`, long},
		"codex, content": {codex.Format(), line + `"session_meta","payload":{"id":"x","cwd":"/p"}}` + "\n" +
			line + `"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}` + "\n" +
			line + `"response_item","payload":{"type":"message","role":"user","content":[` + many + `]}}` + "\n", long},
	} {
		t.Run(name, func(t *testing.T) {
			file := transcript.FileOf("x.json", []byte(c.text))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := transcript.Collect(t.Context(), c.format, file)
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			// Seven times at most, and eleven where the race detector empties pools.
			if used := after.TotalAlloc - before.TotalAlloc; used > 16*uint64(len(c.text)) {
				t.Errorf("%d bytes, %.1f times the size of the file", used, float64(used)/float64(len(c.text)))
			}
			if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Reason, c.want) {
				t.Errorf("%d problems: %.300v", len(got.Problems), got.Problems)
			}
			if len(got.Conversations) != 1 || len(got.Conversations[0].Records) != 1 ||
				session.TextOf(got.Conversations[0].Records[0].Entry.Message.Content) != "hello" {
				t.Errorf("%d conversations: %.300v", len(got.Conversations), got.Conversations)
			}
		})
	}
}
