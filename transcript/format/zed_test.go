package format_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/zed"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// thread is a thread of the present form, and old one of the first.
const (
	thread = `{"title":"Trees","version":"0.3.0","messages":[
		{"User":{"id":"u1","content":[{"Text":"list the trees"},{"Mention":{"uri":{},"content":"map.md"}},{"Image":{"source":"AAAA"}},{"Hologram":{}}]}},
		{"Agent":{"content":[{"Thinking":{"text":"I look.","signature":"sig"}},{"RedactedThinking":"opaque"},{"Text":"Looking."},
			{"ToolUse":{"id":"c1","name":"terminal","input":{"command":"ls"}}},{"ToolUse":{"id":"c2","name":"read","input":{}}},{"ToolUse":{"id":"c3","name":"shot","input":{}}}],
			"tool_results":{"c1":{"tool_use_id":"c1","is_error":false,"content":{"Text":"oak"}},"c2":{"tool_use_id":"c2","is_error":true,"content":[{"Text":"no"},{"Text":"file"}]},
			"c3":{"tool_use_id":"c3","content":{"Image":{"source":"BBBB"}}}}}},
		{"Agent":{"content":[{"Text":"An oak."}],"tool_results":{}}},
		"Resume",
		{"User":{"id":"u2","content":[{"Text":"thanks"}]}}],
		"model":{"provider":"anthropic","model":"claude-sonnet-4-5"},
		"cumulative_token_usage":{"input_tokens":30,"output_tokens":7},
		"request_token_usage":{"u1":{"input_tokens":20,"output_tokens":5,"cache_creation_input_tokens":1,"cache_read_input_tokens":2}},
		"initial_project_snapshot":{"worktree_snapshots":[{"worktree_path":"/home/ada/garden"}]}}`
	old = `{"version":"0.1.0","messages":[
		{"id":0,"role":"user","segments":[{"type":"text","text":"hi"}]},
		{"id":1,"role":"assistant","segments":[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"hello"}],"tool_uses":[{"id":"c1","name":"ls","input":{}}],"tool_results":[]},
		{"id":2,"role":"user","segments":[],"tool_uses":[],"tool_results":[{"tool_use_id":"c1","is_error":false,"content":"x"}]},
		{"id":3,"role":"assistant","text":"bye"}],
		"subagent_context":{"parent_thread_id":"t1"}}`
)

func zedDatabase(t testing.TB) string {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll([]byte(thread), nil)
	insert := func(id, kind string, data []byte, parent string) string {
		return fmt.Sprintf(`INSERT INTO threads VALUES('%s', 'summary of %s', '2026-05-01T10:00:0%s+00:00', '%s', x'%s', %s)`, id, id, id[1:], kind, hex.EncodeToString(data), parent)
	}
	return transcripttest.Database(t, "threads.db",
		`CREATE TABLE threads(id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB, parent_id TEXT)`,
		insert("t1", "zstd", packed, "NULL"),
		insert("t2", "json", []byte(old), "NULL"),
		insert("t3", "json", []byte(`{"messages":[]}`), "'t1'"),
		insert("t4", "zstd", []byte("not packed"), "NULL"),
		insert("t5", "json", []byte("{"), "NULL"),
	)
}

func TestZedRead(t *testing.T) {
	c := transcripttest.Collect(t, zed.Format(), transcripttest.Open(t, zedDatabase(t)))
	transcripttest.CheckTree(t, c)
	transcripttest.Golden(t, "testdata/zed/threads.golden", transcripttest.Outline(c))
}

func TestZedStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: zed.Format(), Made: func(t testing.TB) []string { return []string{zedDatabase(t)} }, Sessions: 3,
		Detected: map[string]bool{strings.Repeat("x", 100): false},
	})
}

// FuzzZedThread lets the fuzzer make documents of threads.
func FuzzZedThread(f *testing.F) {
	f.Add([]byte(thread))
	f.Add([]byte(old))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := transcripttest.Database(t, "threads.db", `CREATE TABLE threads(id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)`,
			fmt.Sprintf(`INSERT INTO threads VALUES('t', '', '', 'json', x'%s')`, hex.EncodeToString(data)))
		c, err := transcript.Collect(t.Context(), zed.Format(), transcripttest.Open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		transcripttest.CheckTree(t, c)
	})
}

func TestZedPlaces(t *testing.T) {
	home := t.TempDir()
	for goos, want := range map[string]string{"linux": ".local/share/zed", "darwin": "Library/Application Support/Zed", "windows": "AppData/Local/Zed"} {
		places := zed.Format().Places(transcript.Env{Home: home, GOOS: goos, Getenv: func(string) string { return "" }})
		if dir := filepath.Join(home, want, "threads", "threads.db"); places[0].Dir != dir {
			t.Errorf("on %s the place is %s, want %s", goos, places[0].Dir, dir)
		}
	}
}
