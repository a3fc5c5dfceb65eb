package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// evil acts on whatever takes it for more than text: a terminal (the title of the
// window, the clipboard, a link, the cursor, colours, C1 as runes and as a byte,
// the direction of text, a second line), a shell, a browser, a page of Markdown.
const evil = "\x1b]0;pwned\x07\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://evil\x07link\x1b]8;;\x07\x1b[2J\x1b[31m\u009b2J\u009d0;c1\u009c" +
	"\u202eRLO\u2066\u200b\u2028\r\b\x7f" + evilByte + evilShell + evilPage

const (
	evilByte  = "!byte!" // stands for a byte that is not UTF-8
	evilShell = `;touch PWNED;$(touch PWNED)` + "`touch PWNED`" + `'"&touch PWNED #`
	evilPage  = "</title></script></details>--><script>pwned()</script><img src=x onerror=pwned()>\n\n# head\n[x](javascript:pwned())\n"
)

// Names of sessions and of entries that a shell would like to run.
var (
	evilSessions = []string{"evil;touch PWNED;#$(touch PWNED)'x", "-rf"}
	evilEntries  = []string{"id" + evil, "x;touch${IFS}PWNED;#", "--force"}
)

// hostileStore writes a store in which every field and every file is hostile.
func hostileStore(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sessions")
	for _, sub := range []string{"tmp", "trash", "quarantine"} {
		if err := os.MkdirAll(filepath.Join(dir, ".coppice", sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range evilSessions {
		writeLines(t, filepath.Join(dir, name+".jsonl"), hostileLines(name))
	}
	stale := filepath.Join(dir, ".coppice", "tmp", "x\x1b]0;pwned\x07")
	for _, path := range []string{filepath.Join(dir, "bad\x1b]0;pwned\x07.jsonl"), filepath.Join(dir, "bad\u009b2J.jsonl"), stale} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Skipf("this system has no such file names: %v", err)
		}
	}
	if err := os.Chtimes(stale, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return dir
}

type fields = map[string]any

// hostileLines is a session with branches, all kinds of entries, and damage.
func hostileLines(name string) []fields {
	n := 0
	entry := func(id, typ string, parent any, payload any) fields {
		n++
		return fields{
			"type": typ, "id": id, "parent_id": parent, typ: payload,
			"timestamp": time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format(time.RFC3339),
		}
	}
	text := func(s string) []fields { return []fields{{"type": "text", "text": fields{"content": s}}} }
	source := fields{"type": "url", "media_type": "t" + evil, "data": "http://" + evil}
	return []fields{
		{
			"type": "session", "id": name, "version": 1, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/x" + evil, "key": "k:" + evil,
			"parent_session": "p" + evil, "relation": "fork" + evil, "origin": fields{"format": "f" + evil, "id": "i" + evil, "path": "/p" + evil},
		},
		entry("a1", "session_info", nil, fields{"name": "title" + evil}),
		entry("a2", "custom", "a1", fields{"custom_type": "coppice.tags", "data": fields{"tags": []string{"tag" + evil}}}),
		entry("a3", "message", "a2", fields{"role": "user" + evil, "content": text("hello needle " + evil), "model": "m" + evil, "provider": "p" + evil, "category": "c" + evil}),
		entry("a4", "message", "a3", fields{"role": "assistant", "model": "mm" + evil, "usage": fields{"input": 5, "output": 4}, "content": []fields{
			{"type": "tool_use", "tool_use": fields{"id": "c1" + evil, "name": "bash" + evil, "input": fields{"command": "ls" + evil, "k" + evil: "v" + evil}}},
			{"type": "thinking", "thinking": fields{"content": "think" + evil}},
		}}),
		entry("a5", "message", "a4", fields{"role": "tool", "content": []fields{
			{"type": "tool_result", "tool_result": fields{"tool_use_id": "c1" + evil, "content": "out needle" + evil + "\n" + evil, "is_error": true}},
		}}),
		entry("a6", "label", "a5", fields{"target_id": "a5", "label": "lab" + evil}),
		entry("a7", "weird"+evil, "a6", fields{}),
		entry("a8", "compaction", "a7", fields{"summary": "sum" + evil, "first_kept_entry_id": "a3", "tokens_before": 5}),
		entry(evilEntries[0], "message", "a8", fields{"role": "user", "content": []fields{
			{"type": "file", "file": fields{"name": "f" + evil, "source": source}}, {"type": "image", "image": fields{"source": source}},
		}}),
		entry(evilEntries[1], "message", "a3", fields{"role": "user", "content": text("a branch needle" + evil)}),
		entry(evilEntries[2], "message", "a3", fields{"role": "user", "content": text("another needle")}),
		{"type": "message", "id": "dup" + evil, "parent_id": "nowhere" + evil, "timestamp": "bad" + evil, "message": fields{"role": "user", "content": "x"}},
		entry("b2", "thinking_level", "dup"+evil, fields{"thinking_level": "high" + evil}),
		entry("b3", "model_change", "b2", fields{"provider": "p" + evil, "model_id": "m" + evil}),
		entry("b4", "custom", "b3", fields{"custom_type": "x" + evil, "data": fields{"a" + evil: "b" + evil}}),
		entry("b5", "message", "a3", fields{"role": "user", "content": text("the last needle")}),
	}
}

// writeLines writes lines as a stranger would: with no more escapes than it takes
// to be JSON, and with bytes that are not UTF-8.
func writeLines(t testing.TB, path string, lines []fields) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, line := range lines {
		if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	b.WriteString("{\"broken" + strings.ReplaceAll(evil, "\n", "") + "\n")
	data := bytes.ReplaceAll(b.Bytes(), []byte(evilByte), []byte("\x9b"))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// hostileFiles writes transcripts of another program with hostile names, ids and
// titles.
func hostileFiles(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "import")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	said := func(id string, parent any, text string) fields {
		return fields{
			"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s" + evil, "cwd": "/x" + evil, "version": "1" + evil,
			"timestamp": "2026-01-01T00:00:00Z", "message": fields{"role": "user", "content": text},
		}
	}
	writeLines(t, filepath.Join(dir, "n\x1b]0;pwned\x07.jsonl"), []fields{said("u"+evil, nil, "import needle"+evil), said(evilEntries[1], "u"+evil, "second"+evil)})
	if err := os.WriteFile(filepath.Join(dir, "z\x1b]0;pwned\x07.json"), []byte("\x1b]0;pwned\x07{"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// normalised writes lines of JSON the one way that encoding/json does.
func normalised(t *testing.T, lines string) string {
	t.Helper()
	var b strings.Builder
	for dec := json.NewDecoder(strings.NewReader(lines)); dec.More(); {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}
