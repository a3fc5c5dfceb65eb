package format_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/llm"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func llmDatabase(t testing.TB) string {
	t.Helper()
	return transcripttest.Database(t, "logs.db",
		`CREATE TABLE conversations(id TEXT PRIMARY KEY, name TEXT, model TEXT)`,
		`CREATE TABLE responses(id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, options_json TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, resolved_model TEXT)`,
		`CREATE TABLE tool_calls(id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT)`,
		`CREATE TABLE tool_results(id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT, exception TEXT)`,
		`CREATE TABLE attachments(id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB)`,
		`CREATE TABLE prompt_attachments(response_id TEXT, attachment_id TEXT, "order" INTEGER)`,
		`INSERT INTO conversations VALUES('c1', 'What is in it', 'gpt-4o'), ('c0', 'Empty', 'x')`,
		`INSERT INTO responses VALUES
		 ('r1', 'gpt-4o', 'what is in it?', 'be brief', '{"temperature":0}', '', 'c1', '2026-01-01T00:00:00.5', 100, 20, '{"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}', 'gpt-4o-2024'),
		 ('r2', 'gpt-4o', '', 'be brief', '{}', 'A cat.', 'c1', '2026-01-01T00:00:01', NULL, NULL, NULL, NULL),
		 ('r3', 'gpt-4o', 'and now?', 'be long', '{}', '', 'c1', '2026-01-01T00:00:02', 1, 0, NULL, NULL),
		 ('r4', 'm', 'alone', NULL, NULL, 'yes', NULL, '2026-01-02T00:00:00+00:00', NULL, NULL, NULL, NULL)`,
		`INSERT INTO attachments VALUES('a1', 'image/png', NULL, NULL, x'00'), ('a2', 'audio/wav', NULL, 'https://example.com/a.wav', NULL), ('a3', 'application/pdf', '/p/a.pdf', NULL, NULL)`,
		`INSERT INTO prompt_attachments VALUES('r1', 'a2', 2), ('r1', 'a1', 1), ('r1', 'a3', 3)`,
		`INSERT INTO tool_calls VALUES(1, 'r1', 'look', '{"n":1}', 't1'), (2, 'r1', 'smell', 'oops', 't2')`,
		`INSERT INTO tool_results VALUES(1, 'r2', 'look', 'fur', 't1', NULL), (2, 'r2', 'smell', '', 't2', 'NoNose')`,
	)
}

func TestLLMStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: llm.Format(), Made: func(t testing.TB) []string { return []string{llmDatabase(t)} }, Sessions: 2,
		Detected: map[string]bool{`{}`: false},
	})
}

func TestLLMRead(t *testing.T) {
	got := transcripttest.Collect(t, llm.Format(), transcripttest.Open(t, llmDatabase(t)))
	transcripttest.Golden(t, "testdata/llm/logs.golden", transcripttest.Outline(got))
}

// TestLLMNewerStore: of the store that is to follow, every row is kept.
func TestLLMNewerStore(t *testing.T) {
	path := transcripttest.Database(t, "logs.db",
		`CREATE TABLE threads(id TEXT)`, `CREATE TABLE turns(id TEXT)`, `CREATE TABLE messages(id TEXT)`, `CREATE TABLE parts(id TEXT)`,
		`INSERT INTO threads VALUES('t')`, `INSERT INTO parts VALUES('p1'), ('p2')`)
	got := transcripttest.Collect(t, llm.Format(), transcripttest.Open(t, path))
	if got.Counts[transcript.Became{What: "row of parts", Became: transcript.OnlyKept}] != 2 || got.Kept == 0 || len(got.Conversations) != 1 {
		t.Errorf("got\n%s", transcripttest.Outline(got))
	}
}

func TestLLMPlaces(t *testing.T) {
	vars := map[string]string{}
	env := transcript.Env{Home: "/home/u", Getenv: func(name string) string { return vars[name] }}
	for goos, want := range map[string]string{"linux": ".config", "darwin": "Library", "windows": "AppData"} {
		env.GOOS = goos
		if got := llm.Format().Places(env); len(got) != 1 || !strings.Contains(got[0].Dir, want) {
			t.Errorf("on %s places are %v", goos, got)
		}
	}
	vars["LLM_USER_PATH"] = t.TempDir()
	if got := llm.Format().Places(env)[0].Dir; got != filepath.Join(vars["LLM_USER_PATH"], "logs.db") {
		t.Errorf("with a path of its own the log is at %s", got)
	}
}

// FuzzLLMResponse lets the fuzzer make what a response and its tool call say.
func FuzzLLMResponse(f *testing.F) {
	f.Add([]byte("hello"), []byte(`{"n":1}`), []byte(`{"prompt_tokens_details":{"cached_tokens":60}}`))
	f.Add([]byte(""), []byte("oops"), []byte(`[`))
	f.Fuzz(func(t *testing.T, said, arguments, details []byte) {
		text := func(b []byte) string { return "CAST(x'" + hex.EncodeToString(b) + "' AS TEXT)" }
		path := transcripttest.Database(t, "logs.db",
			`CREATE TABLE conversations(id TEXT PRIMARY KEY, name TEXT, model TEXT)`,
			`CREATE TABLE responses(id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, options_json TEXT, response TEXT, conversation_id TEXT, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, resolved_model TEXT)`,
			`CREATE TABLE tool_calls(id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT)`,
			`CREATE TABLE tool_results(id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT, exception TEXT)`,
			fmt.Sprintf(`INSERT INTO responses VALUES('r', 'm', %s, NULL, %s, %[1]s, 'c', %[1]s, 1, 2, %[2]s, NULL)`, text(said), text(details)),
			fmt.Sprintf(`INSERT INTO tool_calls VALUES(1, 'r', 'look', %s, 't')`, text(arguments)),
		)
		c, err := transcript.Collect(t.Context(), llm.Format(), transcripttest.Open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		transcripttest.CheckTree(t, c)
	})
}
