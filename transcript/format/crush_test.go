package format_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/crush"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

var schema = []string{
	`CREATE TABLE sessions(id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, message_count INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER, created_at INTEGER, summary_message_id TEXT, todos TEXT)`,
	`CREATE TABLE messages(id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER, updated_at INTEGER, finished_at INTEGER, provider TEXT, is_summary_message INTEGER)`,
}

func crushDatabase(t testing.TB) string {
	t.Helper()
	return transcripttest.Database(t, ".crush/crush.db", append(slices.Clone(schema),
		`INSERT INTO sessions VALUES('s1', NULL, 'Fix the port', 9, 5000, 600, 0.02, 1767225660, 1767225600, 'm8', '[{"content":"find it","status":"completed"}]')`,
		`INSERT INTO sessions VALUES('m2$$c1', 's1', 'Search', 1, 0, 0, 0, 1767225640, 1767225630, NULL, '')`,
		`INSERT INTO sessions VALUES('title-s1', 's1', 'Generate a title', 0, 60, 8, 0, 1767225602, 1767225601, NULL, NULL)`,
		`INSERT INTO messages VALUES('m1', 's1', 'user', '[{"type":"text","data":{"text":"flaky"}},{"type":"binary","data":{"Path":"a.png","MIMEType":"image/png","Data":"AA=="}},{"type":"binary","data":{"Path":"a.pdf","MIMEType":"application/pdf","Data":"AA=="}},{"type":"image_url","data":{"url":"https://example.com/x.png"}}]', NULL, 1767225600, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m2', 's1', 'assistant', '[{"type":"reasoning","data":{"thinking":"look","signature":"sig","tool_id":"","started_at":1}},{"type":"reasoning","data":{"thinking":""}},{"type":"text","data":{"text":"I look."}},{"type":"text","data":{"text":""}},{"type":"tool_call","data":{"id":"c1","name":"agent","input":"{\"q\":1}"}},{"type":"tool_call","data":{"id":"c2","name":"grep","input":"{\"pat"}},{"type":"finish","data":{"reason":"tool_use","time":1}}]', 'claude-sonnet-4-5', 1767225601, 0, NULL, 'anthropic', 0)`,
		`INSERT INTO messages VALUES('m3', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c1","content":"found","metadata":"{\"n\":1}","is_error":false}},{"type":"tool_result","data":{"tool_call_id":"c2","content":"bad input","data":"AA==","mime_type":"image/png","is_error":true}}]', NULL, 1767225601, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m4', 's1', 'assistant', '[{"type":"finish","data":{"reason":"error","message":"overloaded","details":"529"}}]', NULL, 1767225602, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m5', 's1', 'assistant', '[{"type":"text","data":{"text":"cut"}},{"type":"finish","data":{"reason":"error","message":"overloaded","details":"529"}}]', NULL, 1767225602, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m6', 's1', 'user', '[{"type":"shell_command","data":{"command":"go test","output":"ok","exit_code":0}}]', NULL, 1767225603, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m7', 's1', 'user', '[{"type":"hologram","data":{"x":1}}]', NULL, 1767225604, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('m8', 's1', 'assistant', '[{"type":"text","data":{"text":"Summary: port 0."}}]', 'claude-sonnet-4-5', 1767225605, 0, NULL, 'anthropic', 1)`,
		`INSERT INTO messages VALUES('m9', 's1', 'user', '[{"type":"text","data":{"text":"thanks"}}]', NULL, 1767225606, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('n1', 'm2$$c1', 'user', 'not json', NULL, 1767225630, 0, NULL, NULL, 0)`,
		`INSERT INTO messages VALUES('n2', 'm2$$c1', 'user', '[{"type":"text","data":{"text":"search"}}]', NULL, 1767225631, 0, NULL, NULL, 0)`,
	)...)
}

func TestCrushStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: crush.Format(), Made: func(t testing.TB) []string { return []string{crushDatabase(t)} }, Sessions: 2,
	})
}

func TestCrushRead(t *testing.T) {
	t.Parallel()
	path := crushDatabase(t)
	got := transcripttest.Collect(t, crush.Format(), transcripttest.Open(t, path))
	project := filepath.Dir(filepath.Dir(path))
	if got.Conversations[0].CWD != project {
		t.Errorf("the project is %s, want %s", got.Conversations[0].CWD, project)
	}
	got.Conversations[0].CWD, got.Conversations[1].CWD = "", ""
	transcripttest.Golden(t, "testdata/crush/crush.golden", transcripttest.Outline(got))
}

func TestCrushDetect(t *testing.T) {
	t.Parallel()
	path := transcripttest.Database(t, "other.db", `CREATE TABLE sessions(id TEXT)`, `CREATE TABLE messages(content_json TEXT)`)
	if crush.Format().Detect(transcripttest.Open(t, path)) {
		t.Error("another program's database is taken for Crush's")
	}
}

func TestCrushPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	transcripttest.WriteFile(t, filepath.Join(home, ".local/share/crush/projects.json"),
		`{"projects":[{"path":"/a"},{"path":"/b","data_dir":"data"},{"path":"/c","data_dir":"/d"}]}`)
	env := transcript.Env{Home: home, Getenv: func(string) string { return "" }}
	var dirs []string
	for _, p := range crush.Format().Places(env) {
		dirs = append(dirs, filepath.ToSlash(p.Dir))
	}
	if len(dirs) != 3 || dirs[0] != "/a/.crush/crush.db" || dirs[1] != "/b/data/crush.db" || dirs[2] != "/d/crush.db" {
		t.Errorf("places are %q", dirs)
	}
	transcripttest.WriteFile(t, filepath.Join(home, ".local/share/crush/projects.json"), `{`)
	if crush.Format().Places(env) != nil || crush.Format().Places(transcript.Env{Home: t.TempDir(), Getenv: env.Getenv}) != nil {
		t.Error("there are places without a list of projects")
	}
}

func TestCrushSamples(t *testing.T) {
	t.Parallel()
	for _, path := range transcripttest.Samples(t, "crush/*.db") {
		got := transcripttest.Collect(t, crush.Format(), transcripttest.Open(t, path))
		messages, calls := transcripttest.Totals(got)
		// Six messages, the last of which is a summary, and the calls in m2.
		if len(got.Conversations) != 2 || messages < 5 || calls < 1 {
			t.Errorf("%d conversations, %d messages, %d calls", len(got.Conversations), messages, calls)
		}
	}
}

// FuzzCrushParts lets the fuzzer make the parts of a message.
func FuzzCrushParts(f *testing.F) {
	f.Add([]byte(`[{"type":"text","data":{"text":"hi"}},{"type":"tool_call","data":{"id":"c","name":"n","input":"{}"}}]`))
	f.Add([]byte(`[{"type":"tool_result","data":{"tool_call_id":"c","content":"x"}},{"type":"finish","data":{"reason":"error"}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := transcripttest.Database(t, ".crush/crush.db", append(slices.Clone(schema),
			`INSERT INTO sessions VALUES('s', NULL, '', 0, 0, 0, 0, 0, 0, NULL, NULL)`,
			fmt.Sprintf(`INSERT INTO messages VALUES('m', 's', 'assistant', CAST(x'%s' AS TEXT), NULL, 0, 0, NULL, NULL, 0)`, hex.EncodeToString(data)))...)
		c, err := transcript.Collect(t.Context(), crush.Format(), transcripttest.Open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		transcripttest.CheckTree(t, c)
	})
}
