package format_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/goose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const gooseFixtures = "testdata/goose/*.jsonl"

func TestGooseStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: goose.Format(), Fixtures: []string{gooseFixtures},
		Made: func(t testing.TB) []string { return []string{gooseDatabase(t)} }, Sessions: 4,
		Name: "x.jsonl",
		Detected: map[string]bool{
			`{"working_dir":"/p"}`: true,
			`{"working_dir":"/p"}` + "\n" + `{"role":"user","created":1,"content":[]}`: true,
			`{"working_dir":"/p"}` + "\n" + `{"x":1}`:                                  false,
			`{"type":"session","description":"x"}`:                                     false,
			`[]`:                                                                       false,
		},
	})
}

func gooseDatabase(t testing.TB) string {
	t.Helper()
	return transcripttest.Database(t, "sessions.db",
		`CREATE TABLE sessions(id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT, working_dir TEXT, created_at TIMESTAMP, accumulated_cost REAL, provider_name TEXT, model_config_json TEXT, parent_session_id TEXT)`,
		`CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT)`,
		`CREATE TABLE usage_ledger(session_id TEXT, created_timestamp INTEGER, model TEXT, input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL)`,
		`INSERT INTO sessions VALUES('20260101_1', 'List the docs', '', 'user', '/p', '2026-01-01 00:00:00', 0.5, 'anthropic', '{"model_name":"claude-sonnet-4-5"}', NULL)`,
		`INSERT INTO sessions VALUES('20260101_2', '', 'Look', 'sub_agent', '/p', '2026-01-01 00:00:01', NULL, NULL, NULL, '20260101_1')`,
		`INSERT INTO sessions VALUES('20260101_3', '', 'A fork', 'user', '/p', '2026-01-01 00:00:02', NULL, NULL, NULL, '20260101_1')`,
		`INSERT INTO messages(message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES
		 ('m1', '20260101_1', 'user', '[{"type":"text","text":"list"}]', 1767225600, '{"userVisible":true,"agentVisible":false}'),
		 ('m2', '20260101_1', 'assistant', '[{"type":"text","text":"two files"}]', 1767225602, '{"userVisible":true,"agentVisible":false}'),
		 ('m3', '20260101_1', 'assistant', '[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Conversation compacted"}]', 1767225603, '{"userVisible":true,"agentVisible":true}'),
		 ('m4', '20260101_1', 'user', '[{"type":"text","text":"Summary: two files."}]', 1767225604, '{"userVisible":false,"agentVisible":true}'),
		 ('m5', '20260101_1', 'user', '[{"type":"text","text":"go on, says the program"}]', 1767225605, '{"userVisible":false,"agentVisible":true}'),
		 ('m6', '20260101_1', 'assistant', '[{"type":"text","text":"more"}]', 1767225606, '{"userVisible":true,"agentVisible":true,"inference":{"provider":"openai","requestedModel":"gpt-5"}}'),
		 (NULL, '20260101_2', 'user', 'not json', 1767225606, NULL),
		 (NULL, '20260101_2', 'user', '[{"type":"toolResponse","id":"t","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"x"}],"isError":true}}}]', 1767225607, NULL)`,
		`INSERT INTO usage_ledger VALUES('20260101_1', 1767225602, 'claude-sonnet-4-5', 1000, 50, 1050, 700, 100, 0.01), ('20260101_1', 1767225605, 'gpt-5', 10, 5, 15, 0, 0, NULL), ('20260101_1', 1767229999, 'gpt-5', 1, 1, 2, 0, 0, NULL)`,
	)
}

func TestGooseDatabase(t *testing.T) {
	t.Parallel()
	got := transcripttest.Collect(t, goose.Format(), transcripttest.Open(t, gooseDatabase(t)))
	// Rows without an id are named by a hash, which the fixture need not have.
	for i, r := range got.Conversations[1].Records {
		if r.ID == "" {
			t.Errorf("record %d has no id", i)
		}
		got.Conversations[1].Records[i].ID = "(hash)"
	}
	transcripttest.Golden(t, "testdata/goose/database.golden", transcripttest.Outline(got))
}

func TestGooseExport(t *testing.T) {
	t.Parallel()
	text := `{"id":"20260101_9","working_dir":"/p","name":"N","conversation":[{"id":"a","role":"user","created":1767225600,"content":[{"type":"text","text":"hi"}],"metadata":{"userVisible":true,"agentVisible":true}}]}`
	got := transcripttest.Collect(t, goose.Format(), transcript.FileOf("s.json", []byte(text)))
	if c := got.Conversations[0]; c.ID != "20260101_9" || len(c.Records) != 1 || c.Records[0].ID != "a" {
		t.Errorf("got\n%s", transcripttest.Outline(got))
	}
	_, err := transcript.Collect(t.Context(), goose.Format(), transcript.FileOf("s.json", []byte(text[:100])))
	if !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("half an export gives %v, want ErrCorrupt", err)
	}
}

func TestGoosePlaces(t *testing.T) {
	t.Parallel()
	vars := map[string]string{}
	env := transcript.Env{Home: "/home/u", Getenv: func(name string) string { return vars[name] }, GOOS: "linux"}
	if got := goose.Format().Places(env); len(got) != 2 || !got[0].Match("sessions.db") || !got[0].Match("a.jsonl") || got[0].Match("a.txt") {
		t.Errorf("places are %v", got)
	}
	env.GOOS = "windows"
	if got := goose.Format().Places(env); len(got) != 1 {
		t.Errorf("on Windows places are %v", got)
	}
	vars["GOOSE_PATH_ROOT"] = t.TempDir()
	if got := goose.Format().Places(env); len(got) != 1 {
		t.Errorf("with a root of its own places are %v", got)
	}
}

func TestGooseSamples(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"goose-jsonl/*.jsonl", "goose-sqlite/*.db"} {
		for _, path := range transcripttest.Samples(t, pattern) {
			got := transcripttest.Collect(t, goose.Format(), transcripttest.Open(t, path))
			// Both samples have one session with one call, answered, and four
			// messages or more.
			if messages, calls := transcripttest.Totals(got); len(got.Conversations) != 1 || messages < 4 || calls != 1 {
				t.Errorf("%s: %d conversations, %d messages, %d calls", path, len(got.Conversations), messages, calls)
			}
		}
	}
}

func FuzzGooseRead(f *testing.F) { transcripttest.FuzzReader(f, goose.Format(), gooseFixtures) }
