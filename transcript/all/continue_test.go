package all_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/format/opencode"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestGoOnElsewhere: what a program adds to an exported conversation comes back to
// the session, behind what was exported, and again only once.
func TestGoOnElsewhere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format *transcript.Format
		more   string // what the program appends
	}{
		{codex.Format(), `{"timestamp":"2026-03-01T00:30:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}}`},
		{geminicli.Format(), `{"id":"m1","timestamp":"2026-03-01T00:30:00.000Z","type":"user","content":[{"text":"more"}]}`},
		{claudecode.Format(), `{"parentUuid":"LEAF","isSidechain":false,"sessionId":"SESSION","cwd":"/p","version":"2.1.42","type":"user","message":{"role":"user","content":"more"},"uuid":"11111111-2222-4333-8444-555555555555","timestamp":"2026-03-01T00:30:00.000Z"}`},
		{pi.Format(), `{"type":"message","id":"deadbeef","parentId":"LEAF","timestamp":"2026-03-01T00:30:00.000Z","message":{"role":"user","content":[{"type":"text","text":"more"}],"timestamp":1772325000000}}`},
	} {
		t.Run(test.format.Name, func(t *testing.T) {
			goOn(t, test.format, func(path, leaf, native string) string {
				appendLine(t, path, test.more, leaf, native)
				return path
			})
		})
	}
	t.Run("opencode", func(t *testing.T) {
		goOn(t, opencode.Format(), func(path, _, native string) string { return takeIn(t, path, native) })
	})
}

// takeIn makes of an exported file what opencode has after it has imported the file
// and gone on: a database, in a place of its own.
func takeIn(t *testing.T, path, native string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Messages []struct {
			Info  map[string]any
			Parts []map[string]any
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(raw), "'", "''")
	}
	statements := []string{
		"CREATE TABLE session (id TEXT, title TEXT, directory TEXT, time_created INTEGER)",
		"CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
		"CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)",
		"INSERT INTO session VALUES('" + native + "', 'x', '/p', 1)",
		`INSERT INTO message VALUES('msg_more', '` + native + `', 9999999999999, '{"role":"user","time":{"created":9999999999999}}')`,
		`INSERT INTO part VALUES('prt_more', 'msg_more', '` + native + `', '{"type":"text","text":"more"}')`,
	}
	for _, m := range file.Messages {
		id := m.Info["id"].(string)
		created := text(m.Info["time"].(map[string]any)["created"])
		statements = append(statements, "INSERT INTO message VALUES('"+id+"', '"+native+"', "+created+", '"+text(m.Info)+"')")
		for _, p := range m.Parts {
			statements = append(statements, "INSERT INTO part VALUES('"+p["id"].(string)+"', '"+id+"', '"+native+"', '"+text(p)+"')")
		}
	}
	return transcripttest.Database(t, "opencode.db", statements...)
}

// goOn exports a session, has a program go on with it, and imports what the program
// has then, from where it has it.
func goOn(t *testing.T, format *transcript.Format, more func(path, leaf, native string) string) {
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{CWD: "/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, e := range []session.Entry{
		session.Message(session.RoleUser, session.Text("do both, do both")),
		session.Message(session.RoleAssistant, session.Text("yes"), session.ToolUse("c1", "run", map[string]any{"cmd": "a"})),
		session.Message(session.RoleAssistant, session.ToolUse("c2", "run", map[string]any{"cmd": "b"})),
		session.Message(session.RoleTool, session.ToolResult("c1", "A", false)),
		session.Message(session.RoleTool, session.ToolResult("c2", "B", false)),
		session.Message(session.RoleAssistant, session.Text("yes")),
	} {
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	leaf := s.LeafID()
	ledger := transcript.LedgerOf(st)
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
	out, err := (&transcript.Exporter{Env: env, Ledger: ledger}).Export(t.Context(), s, format, transcript.Destination{})
	if err != nil {
		t.Fatal(err)
	}
	grownPath := more(out.Paths[0], leaf, out.Native)
	im := &transcript.Importer{Store: st, Ledger: ledger}
	for round, want := range []int{1, 0} {
		im.Again = round > 0
		f, err := transcript.OpenFile(grownPath)
		if err != nil {
			t.Fatal(err)
		}
		report, err := im.Import(t.Context(), format, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Sessions) != 1 || report.Sessions[0].ID != s.Header().ID || report.New() != want {
			t.Fatalf("round %d: %+v, want %d new in %s", round, report.Sessions, want, s.Header().ID)
		}
	}
	grown, err := session.Open(t.Context(), st, s.Header().ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer grown.Close()
	c, err := grown.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := c.Entries[len(c.Entries)-1]
	if len(c.Entries) != 7 || last.Message.Content[0].Text == nil || last.Message.Content[0].Text.Content != "more" || len(c.Problems) > 0 {
		t.Errorf("%d messages, the last is %+v, problems %v", len(c.Entries), last.Message, c.Problems)
	}
}

// TestCopyOfAnExport: a program may copy its files, as Gemini CLI does when it renames
// a project's folder; the copy is the same conversation.
func TestCopyOfAnExport(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{CWD: "/p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(session.Message(session.RoleUser, session.Text("hello"))); err != nil {
		t.Fatal(err)
	}
	ledger := transcript.LedgerOf(st)
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
	for _, format := range []*transcript.Format{codex.Format(), geminicli.Format()} {
		out, err := (&transcript.Exporter{Env: env, Ledger: ledger}).Export(t.Context(), s, format, transcript.Destination{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out.Paths[0])
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(t.TempDir(), filepath.Base(out.Paths[0]))
		if err := os.WriteFile(elsewhere, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := transcript.OpenFile(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		report, err := (&transcript.Importer{Store: st, Ledger: ledger}).Import(t.Context(), format, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Sessions) != 1 || report.Sessions[0].ID != s.Header().ID || report.New() != 0 {
			t.Errorf("%s: the copy is %+v, want nothing new in %s", format.Name, report.Sessions, s.Header().ID)
		}
	}
}

// appendLine appends what a program says next.
func appendLine(t *testing.T, path, line, leaf, native string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(fill(line, leaf, native) + "\n"); err != nil {
		t.Fatal(err)
	}
}

func fill(line, leaf, native string) string {
	return strings.NewReplacer("LEAF", leaf, "SESSION", native).Replace(line)
}
