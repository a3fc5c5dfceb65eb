package format_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func writeEnv() transcript.Env {
	return transcript.Env{Home: "/home/u", Getenv: func(string) string { return "" }}
}

// uuids replaces the short names of lines by ids as the program has them.
func uuids(s string) string {
	var pairs []string
	for _, name := range []string{"u1", "u2", "a1", "a2", "a3", "r1", "r2", "b1", "s1"} {
		pairs = append(pairs, `"`+name+`"`, `"`+transcript.HashID(name)+`"`)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// TestClaudeCodeRoundTrip: what is written reads as what it was.
func TestClaudeCodeRoundTrip(t *testing.T) {
	t.Parallel()
	s := new(script).user("u1", "", "go").
		reply("a1", "u1", "1", `{"type":"thinking","thinking":"hm","signature":"sig"}`, 2).
		reply("a2", "a1", "1", call("t1", "Bash"), 5).
		tree("user", "r1", "a2", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}]}`).
		tree("system", "b1", "", `"logicalParentUuid":"r1","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":155000}`).
		tree("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"so far"}`).
		tree("user", "u2", "s1", `"message":{"role":"user","content":[{"type":"text","text":"look","citations":[1]},{"type":"document","title":"d","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"}}]}`).
		reply("a3", "u2", "2", `{"type":"redacted_thinking","data":"zzz"},{"type":"server_tool_use","id":"s","name":"web_search","input":{"a":1}},`+text("done"), 4).
		line(`{"type":"custom-title","customTitle":"A talk","sessionId":"s"}`)
	first := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), uuids(s.b.String()))))
	sc, err := transcripttest.Script(context.Background(), first.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	sc.NativeID, sc.Name, sc.Header.CWD = sessionID, "A talk", "/p"
	out, err := claudecode.Format().Write(context.Background(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Files[0].Path; got != "-p/"+sessionID+".jsonl" || filepath.ToSlash(out.Base) != "/home/u/.claude/projects" {
		t.Errorf("it is put at %s below %s", got, out.Base)
	}
	if want := "claude --resume " + sessionID; out.Resume != want || out.Dir != "/p" || len(out.Losses) != 0 {
		t.Errorf("resume with %q; losses %v", out.Resume, out.Losses)
	}
	second := transcripttest.Collect(t, claudecode.Format(), transcript.FileOf("/x/"+sessionID+".jsonl", out.Files[0].Data))
	if diff := cmp.Diff(content(first), content(second)); diff != "" {
		t.Error(diff)
	}
	checkLines(t, out.Files[0].Data)
}

// content is the outline of the records without aliases, which are another
// program's own affair.
func content(c *transcript.Collected) string {
	for _, conv := range c.Conversations {
		for i := range conv.Records {
			conv.Records[i].Aliases = nil
		}
	}
	return short(transcripttest.Outline(c))
}

// checkLines holds a file against the rules of the program: each line has its
// own uuid and hangs on the line before it, each call is answered before the
// next prompt, no text is empty.
func checkLines(t *testing.T, data []byte) {
	t.Helper()
	seen := make(map[string]bool)
	last := ""
	for text := range strings.Lines(string(data)) {
		var l struct {
			Type, UUID, SessionID, Cwd, Version, Timestamp string
			ParentUUID, LogicalParentUUID                  *string
			Message                                        json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if l.UUID == "" {
			continue
		}
		parent := l.ParentUUID
		if parent == nil {
			parent = l.LogicalParentUUID
		}
		switch {
		case seen[l.UUID] || len(l.UUID) != 36:
			t.Errorf("the id %s is not good", l.UUID)
		case (parent == nil) != (last == "") || parent != nil && *parent != last:
			t.Errorf("%s hangs on %v, not on %s", l.UUID, parent, last)
		case l.SessionID == "" || l.Cwd == "" || l.Version == "":
			t.Errorf("incomplete: %s", text)
		}
		if _, err := time.Parse(time.RFC3339, l.Timestamp); err != nil {
			t.Error(err)
		}
		seen[l.UUID], last = true, l.UUID
	}
}

// TestClaudeCodeWriteOthers: a session that comes from elsewhere, with what the program
// cannot hold.
func TestClaudeCodeWriteOthers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message := func(id, role string, m session.MessageEntry) session.Entry {
		m.Role = role
		return session.Entry{Type: session.TypeMessage, ID: id, Timestamp: at, Message: &m}
	}
	list := []session.Entry{
		message("sys", "system", session.MessageEntry{Content: []session.Content{session.Text("be kind")}}),
		message("u", "user", session.MessageEntry{Content: []session.Content{session.Text("hi"), {Type: session.ContentTypeAudio, Audio: &session.AudioContent{}}}}),
		message("a", "assistant", session.MessageEntry{Provider: "openai", Model: "gpt", Content: []session.Content{
			{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "theirs"}},
			session.Text(""), session.Text("hello"), session.ToolUse("c", "run", map[string]any{"a": 1.0}),
			{Type: "odd", Raw: json.RawMessage(`{"type":"odd"}`)},
		}}),
		message("t", "tool", session.MessageEntry{Content: []session.Content{session.ToolResult("c", "ok", false)}}),
		message("b", "bashExecution", session.MessageEntry{Content: []session.Content{session.Text("$ ls")}}),
		{Type: session.TypeCompaction, ID: "k", Timestamp: at, Compaction: &session.CompactionEntry{Summary: "sum", FirstKeptEntryID: "a"}},
		{Type: session.TypeContextEdit, ID: "e", Timestamp: at, ContextEdit: &session.ContextEditEntry{TargetID: "t"}},
		{Type: session.TypeBranchSummary, ID: "bs", Timestamp: at, BranchSummary: &session.BranchSummaryEntry{Summary: "left", FromID: "a"}},
		{Type: session.TypeRevert, ID: "rv", Timestamp: at, Revert: &session.RevertEntry{TargetID: "k"}},
		{Type: session.TypeMerge, ID: "mg", Timestamp: at, Merge: &session.MergeEntry{FromID: "a", Summary: "merged"}},
	}
	for i := range list[1:] {
		list[i+1].ParentID = &list[i].ID
	}
	sc, err := transcripttest.ScriptOf(context.Background(), session.Header{Type: session.TypeSession, ID: "own", Version: 1, CreatedAt: at}, list)
	if err != nil {
		t.Fatal(err)
	}
	out, err := claudecode.Format().Write(context.Background(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	checkLines(t, out.Files[0].Data)
	var losses []string
	for _, l := range out.Losses {
		losses = append(losses, l.EntryID+" "+l.What)
	}
	want := []string{
		" directory", "sys system message", "u audio", "a thinking", "a odd", "b role bashExecution",
		"e context edit", "rv undo",
	}
	if diff := cmp.Diff(want, losses); diff != "" {
		t.Error(diff)
	}
	read := transcripttest.Collect(t, claudecode.Format(), transcript.FileOf("x.jsonl", out.Files[0].Data))
	all := transcripttest.Outline(read)
	for _, want := range []string{`user: "hi"`, `"hello" [call c run {"a":1}]`, `[result c "ok"]`, `"$ ls" metadata={"injected":"meta"}`, `"left"`, `"merged"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing in %s", want, all)
		}
	}
	if slices.ContainsFunc(read.Conversations[0].Records, func(r transcript.Record) bool { return len(r.ID) < 36 }) {
		t.Error("a line has an id that is no UUID")
	}
}

// TestClaudeCodeWriteEdits: an edit is a loss only if what it took out comes back.
func TestClaudeCodeWriteEdits(t *testing.T) {
	t.Parallel()
	message := func(id, role string, c session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: []session.Content{c}}}
	}
	edit := func(id, of string) session.Entry {
		return session.Entry{Type: session.TypeContextEdit, ID: id, ContextEdit: &session.ContextEditEntry{TargetID: of}}
	}
	list := []session.Entry{
		message("u1", "user", session.Text("one")), message("a1", "assistant", session.ToolUse("c1", "run", nil)),
		message("t1", "tool", session.ToolResult("c1", "long", false)), edit("e1", "t1"),
		{Type: session.TypeCompaction, ID: "k", Compaction: &session.CompactionEntry{Summary: "so far"}},
		message("s", "system", session.Text("be kind")), edit("e2", "s"),
		message("u2", "user", session.Text("two")), message("a2", "assistant", session.ToolUse("c2", "run", nil)),
		message("t2", "tool", session.ToolResult("c2", "long", false)), edit("e3", "t2"),
	}
	for i := range list[1:] {
		list[i+1].ParentID = &list[i].ID
	}
	sc, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: sessionID, Version: 1, CWD: "/p"}, list)
	if err != nil {
		t.Fatal(err)
	}
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	var edits []string
	for _, l := range out.Losses {
		if l.What == "context edit" {
			edits = append(edits, l.EntryID)
		}
	}
	if !slices.Equal(edits, []string{"e3"}) {
		t.Errorf("the edits %q are announced, want e3: %v", edits, out.Losses)
	}
}

func TestClaudeCodeWriteQuotesTheDirectory(t *testing.T) {
	t.Parallel()
	hello := session.Entry{Type: session.TypeMessage, ID: "u", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("hi")}}}
	header := session.Header{Type: session.TypeSession, ID: sessionID, Version: 1, CWD: "/my dir/it's"}
	sc, err := transcripttest.ScriptOf(context.Background(), header, []session.Entry{hello})
	if err != nil {
		t.Fatal(err)
	}
	out, err := claudecode.Format().Write(context.Background(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	if want := "/my dir/it's"; out.Dir != want {
		t.Errorf("resume in %s, want %s", out.Dir, want)
	}
	if out.Files[0].Path != "-my-dir-it-s/"+sessionID+".jsonl" {
		t.Errorf("the path is %s", out.Files[0].Path)
	}
}

// TestClaudeCodeWriteNothing: what the program can hold nothing of is no file, even if there is
// another branch that it could hold: it would go on from that.
func TestClaudeCodeWriteNothing(t *testing.T) {
	t.Parallel()
	root := "s"
	message := func(id, role string) session.Entry {
		e := session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: []session.Content{session.Text("x")}}}
		if id != root {
			e.ParentID = &root
		}
		return e
	}
	for name, entries := range map[string][]session.Entry{
		"a system prompt": {message(root, "system")},
		"another branch":  {message(root, "system"), message("u", "user"), message("t", "system")},
	} {
		sc, err := transcripttest.ScriptOf(context.Background(), session.Header{Type: session.TypeSession, ID: sessionID, Version: 1}, entries)
		if err != nil {
			t.Fatal(err)
		}
		out, err := claudecode.Format().Write(context.Background(), sc, writeEnv())
		if err != nil || len(out.Files) != 0 || len(out.Losses) == 0 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// tornReply is a reply whose calls another program kept by themselves.
func tornReply(t *testing.T) *transcript.Script {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message := func(id, role, response string, u *session.Usage, blocks ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: transcript.HashID(id), Timestamp: at, Message: &session.MessageEntry{
			Role: role, ResponseID: response, Usage: u, Content: blocks, Provider: "openai",
		}}
	}
	list := []session.Entry{
		message("u", "user", "", nil, session.Text("both")),
		message("a1", "assistant", "r", nil, session.ToolUse("c1", "run", map[string]any{"cmd": "a"})),
		message("a2", "assistant", "r", &session.Usage{Input: 7, Output: 2}, session.ToolUse("c2", "run", map[string]any{"cmd": "b"})),
		message("t1", "tool", "", nil, session.ToolResult("c1", "A", false)),
		message("t2", "tool", "", nil, session.ToolResult("c2", "B", false)),
		message("a3", "assistant", "s", &session.Usage{Input: 9, Output: 1}, session.Text("done")),
	}
	for i := range list[1:] {
		list[i+1].ParentID = &list[i].ID
	}
	sc, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: sessionID, Version: 1, CWD: "/p"}, list)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// TestClaudeCodeWriteTornReply: the lines of a reply share their ids and its usage, so that
// the program makes one message of them, and programs that count tokens count it
// once.
func TestClaudeCodeWriteTornReply(t *testing.T) {
	t.Parallel()
	out, err := claudecode.Format().Write(t.Context(), tornReply(t), writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for text := range strings.Lines(string(out.Files[0].Data)) {
		var l struct {
			Type, RequestID string
			Message         struct {
				ID    string
				Usage struct {
					Input int `json:"input_tokens"`
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Type != "assistant" {
			continue
		}
		if !strings.HasPrefix(l.RequestID, "req_") || !strings.HasPrefix(l.Message.ID, "msg_") {
			t.Errorf("ids %q and %q", l.RequestID, l.Message.ID)
		}
		ids = append(ids, l.Message.ID+l.RequestID)
		if want := map[int]int{1: 7, 2: 7, 3: 9}[len(ids)]; l.Message.Usage.Input != want {
			t.Errorf("line %d of the model's: %d tokens, want %d", len(ids), l.Message.Usage.Input, want)
		}
	}
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] == ids[2] {
		t.Errorf("ids %q", ids)
	}
}

// TestClaudeCodeWriteBranch: the branch of git that the source names is not lost.
func TestClaudeCodeWriteBranch(t *testing.T) {
	t.Parallel()
	sc := tornReply(t)
	sc.Facts = map[string]any{"git_branch": "feature/x"}
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	if lines, named := strings.Count(string(out.Files[0].Data), "\n"), strings.Count(string(out.Files[0].Data), `"gitBranch":"feature/x"`); named != lines {
		t.Errorf("%d of %d lines name it", named, lines)
	}
}

// foreign is a session of another program, as the writer is given it.
func foreign(t *testing.T, list ...session.MessageEntry) *transcript.Script {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var entries []session.Entry
	for i := range list {
		e := session.Entry{Type: session.TypeMessage, ID: transcript.HashID(fmt.Sprint(i)), Timestamp: at, Message: &list[i]}
		if i > 0 {
			e.ParentID = &entries[i-1].ID
		}
		entries = append(entries, e)
	}
	sc, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: sessionID, Version: 1, CWD: "/p"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// TestClaudeCodeWriteToolIDs: the provider takes only some characters in ids, and no id
// twice. What is read has the ids that it had.
func TestClaudeCodeWriteToolIDs(t *testing.T) {
	t.Parallel()
	use := func(id string) session.MessageEntry {
		return session.MessageEntry{Role: "assistant", Provider: "openai", Content: []session.Content{session.ToolUse(id, "a.tool", map[string]any{})}}
	}
	result := func(id string) session.MessageEntry {
		return session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult(id, "ok", false)}}
	}
	sc := foreign(t, session.MessageEntry{Role: "user", Content: []session.Content{session.Text("go")}},
		use("call:1|x"), result("call:1|x"), use("call_2"), result("call_2"), use("call_2"), result("call_2"))
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	var calls, results []string
	for _, m := range regexp.MustCompile(`"(id|tool_use_id)":"([^"]*)"`).FindAllStringSubmatch(string(out.Files[0].Data), -1) {
		switch {
		case m[1] == "tool_use_id":
			results = append(results, m[2])
		case !strings.HasPrefix(m[2], "msg_"):
			calls = append(calls, m[2])
		}
	}
	if diff := cmp.Diff(calls, results); diff != "" || len(calls) != 3 || calls[1] == calls[2] {
		t.Errorf("calls %q, results %q", calls, results)
	}
	if bad := slices.IndexFunc(calls, func(id string) bool { return !regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString(id) }); bad >= 0 {
		t.Errorf("the id %q", calls[bad])
	}
	read := transcripttest.Outline(transcripttest.Collect(t, claudecode.Format(), transcript.FileOf("x.jsonl", out.Files[0].Data)))
	for _, want := range []string{"[call call:1|x a_tool", `[result call:1|x "ok"]`, "[call call_2 a_tool", `[result call_2 "ok"]`} {
		if !strings.Contains(read, want) {
			t.Errorf("%s is missing in %s", want, read)
		}
	}
}

// TestClaudeCodeWriteForeign: what only another provider knows is not sent to this one, and a
// call without a result has one, or the program would leave the call out.
func TestClaudeCodeWriteForeign(t *testing.T) {
	t.Parallel()
	prompt := session.Text("go")
	prompt.Text.Extra = session.Fields{{Name: "detail", Value: json.RawMessage(`"auto"`)}}
	sc := foreign(t, session.MessageEntry{Role: "user", Content: []session.Content{prompt, {Type: "input_image", Raw: json.RawMessage(`{"type":"input_image"}`)}}},
		session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUse("c1", "run", map[string]any{})}},
		session.MessageEntry{Role: "user", Content: []session.Content{session.Text("never mind")}})
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	data := string(out.Files[0].Data)
	if strings.Contains(data, "input_image") || strings.Contains(data, "detail") {
		t.Errorf("another provider's: %s", data)
	}
	if len(out.Losses) != 1 || out.Losses[0].What != "input_image" {
		t.Errorf("losses %v", out.Losses)
	}
	if !strings.Contains(data, `"tool_result","tool_use_id":"c1"`) {
		t.Errorf("no result: %s", data)
	}
}

// TestClaudeCodeWriteResultsAsTheyWere: a result that was a list is one again, with its unknown
// members, and without what the program said about a file of the output.
func TestClaudeCodeWriteResultsAsTheyWere(t *testing.T) {
	t.Parallel()
	result := session.ToolResult("c1", "done", false)
	result.ToolResult.Extra = session.Fields{
		{Name: "blocks", Value: json.RawMessage("true")},
		{Name: "persisted", Value: json.RawMessage(`"elsewhere"`)},
		{Name: "cache_control", Value: json.RawMessage(`{"type":"ephemeral"}`)},
	}
	sc := foreign(t, session.MessageEntry{Role: "user", Content: []session.Content{session.Text("go")}},
		session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUse("c1", "run", map[string]any{})}},
		session.MessageEntry{Role: "tool", Content: []session.Content{result}})
	sc.NativeID = sessionID
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	data := string(out.Files[0].Data)
	if !strings.Contains(data, `"tool_use_id":"c1","content":[{"type":"text","text":"done"}],"cache_control":{"type":"ephemeral"}`) || strings.Contains(data, "persisted") {
		t.Errorf("the result is not what it was: %s", data)
	}
}

// TestClaudeCodeWriteRemarks: what the program says about a session comes back.
func TestClaudeCodeWriteRemarks(t *testing.T) {
	t.Parallel()
	const other = "0b3c1f7e-4d57-4a54-9be1-3f6b1b2f6f11"
	s := new(script).
		tree("user", "u1", "", `"forkedFrom":{"sessionId":"`+other+`","messageUuid":"x1"},"isMeta":true,"message":{"role":"user","content":"<local-command-caveat>y</local-command-caveat>"}`).
		tree("user", "u2", "u1", `"isMeta":true,"message":{"role":"user","content":"<command-name>/x</command-name>"}`).
		reply("a1", "u2", "1", text("one"), 1).user("r1", "a1", "two").
		tree("system", "b1", "", `"logicalParentUuid":"r1","subtype":"compact_boundary","compactMetadata":{"preservedMessages":{"anchorUuid":"s1","uuids":["a1","r1"]}}`).
		tree("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"so far"}`)
	first := transcripttest.Collect(t, claudecode.Format(), transcript.FileOf("/x/"+sessionID+".jsonl", []byte(uuids(s.b.String()))))
	sc, err := transcripttest.Script(t.Context(), first.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	sc.All = append(sc.All, session.Entry{Type: session.TypeCustom, ID: "tags", Custom: &session.CustomEntry{CustomType: session.CustomTags, Data: map[string]any{"tags": []any{"mine"}}}})
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil || len(out.Losses) > 0 {
		t.Fatal(err, out.Losses)
	}
	data := string(out.Files[0].Data)
	if n := strings.Count(data, `"isMeta":true`); n != 2 {
		t.Errorf("%d lines are the program's own", n)
	}
	if !strings.Contains(data, `"forkedFrom":{"sessionId":"`+other+`","messageUuid":"x1"}`) {
		t.Error("it is no fork any more")
	}
	second := transcripttest.Collect(t, claudecode.Format(), transcript.FileOf("/x/"+sessionID+".jsonl", out.Files[0].Data))
	if tags := second.Conversations[0].Tags; len(tags) != 1 || tags[0] != "mine" {
		t.Errorf("tags %q", tags)
	}
	if diff := cmp.Diff(content(first), strings.Replace(content(second), " tags: mine\n", "", 1)); diff != "" {
		t.Error(diff)
	}
}

// TestClaudeCodeWriteAITitle: a title that the program made up comes back as that, and does not
// stand in the way of a better one. A name that was given here is the user's.
func TestClaudeCodeWriteAITitle(t *testing.T) {
	t.Parallel()
	s := new(script).user("u1", "", "go").reply("a1", "u1", "1", text("done"), 1).line(`{"type":"ai-title","aiTitle":"Made up","sessionId":"s"}`)
	h := newHome(t)
	open := h.open(h.bring(saveAs(t, filepath.Join(t.TempDir(), sessionID+".jsonl"), uuids(s.b.String()))).Sessions[0].ID)
	for name, want := range map[string]string{"Made up": `"type":"ai-title","aiTitle":"Made up"`, "Mine": `"type":"custom-title","customTitle":"Mine"`} {
		sc, err := transcript.NewScript(open, claudecode.Name, "", transcripttest.Now())
		if err != nil {
			t.Fatal(err)
		}
		if sc.Name != "Made up" {
			t.Errorf("the session is named %q", sc.Name)
		}
		sc.Name = name
		out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
		if err != nil {
			t.Fatal(err)
		}
		if data := string(out.Files[0].Data); !strings.Contains(data, want) || strings.Count(data, "-title") != 1 {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}
}

// TestClaudeCodeWriteAgentMeta: what the program noted of a subagent is written beside it again.
func TestClaudeCodeWriteAgentMeta(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), sessionID, "subagents")
	lines := strings.ReplaceAll(uuids(new(script).user("u1", "", "go").b.String()), `"isSidechain":false`, `"isSidechain":true,"agentId":"ab12"`)
	transcripttest.WriteFile(t, filepath.Join(dir, "agent-ab12.meta.json"), `{"agentType":"Explore","spawnDepth":1}`)
	c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, filepath.Join(dir, "agent-ab12.jsonl"), lines)))
	agent, err := transcripttest.Script(t.Context(), c.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	sc := tornReply(t)
	sc.Subagents = func() ([]*transcript.Script, error) { return []*transcript.Script{agent}, nil }
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	last := out.Files[len(out.Files)-1]
	if !strings.HasSuffix(last.Path, "/subagents/agent-ab12.meta.json") {
		t.Fatalf("the last of %d files is %s", len(out.Files), last.Path)
	}
	for old, want := range map[string]string{"": `{"agentType":"Explore","spawnDepth":1}`, `{"mine":1}`: `{"mine":1}`} {
		if got, err := last.Merge([]byte(old)); string(got) != want || err != nil {
			t.Errorf("instead of %q there is %s, %v", old, got, err)
		}
	}
}
