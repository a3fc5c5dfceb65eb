package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/opencode"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// exported is a file as `opencode import` reads it.
type exported struct {
	Info     map[string]any
	Messages []struct {
		Info  map[string]any
		Parts []map[string]any
	}
}

func opencodeWrite(t *testing.T, s *transcript.Script, env transcript.Env) (*exported, *transcript.Output) {
	t.Helper()
	out, err := opencode.Format().Write(t.Context(), s, env)
	if err != nil {
		t.Fatal(err)
	}
	var e exported
	if err := json.Unmarshal(out.Files[0].Data, &e); err != nil {
		t.Fatal(err)
	}
	opencodeCheckRules(t, &e)
	return &e, out
}

func opencodeHome(dir string) transcript.Env {
	return transcript.Env{Home: dir, Getenv: func(string) string { return "" }}
}

// opencodeCheckRules holds a file to what opencode insists on: the members that its schema
// wants, ids of its form, and times and ids that ascend.
func opencodeCheckRules(t *testing.T, e *exported) {
	t.Helper()
	wants := func(what string, o map[string]any, names ...string) {
		for _, name := range names {
			if _, ok := o[name]; !ok {
				t.Errorf("%s has no %s: %v", what, name, o)
			}
		}
	}
	wants("the session", e.Info, "id", "slug", "projectID", "directory", "title", "version", "time")
	before, last := "", 0.0
	for _, m := range e.Messages {
		id := m.Info["id"].(string)
		wants(id, m.Info, "sessionID", "role", "time", "agent")
		if m.Info["role"] == "user" {
			wants(id, m.Info, "model")
		} else {
			wants(id, m.Info, "parentID", "modelID", "providerID", "mode", "path", "cost", "tokens")
		}
		created := m.Info["time"].(map[string]any)["created"].(float64)
		if !strings.HasPrefix(id, "msg_") || id <= before || created <= last {
			t.Errorf("the message %s of %v follows %s of %v", id, created, before, last)
		}
		before, last = id, created
		part := ""
		for _, p := range m.Parts {
			wants(id, p, "id", "sessionID", "messageID", "type")
			if own := p["id"].(string); !strings.HasPrefix(own, "prt_") || own <= part || p["messageID"] != id {
				t.Errorf("the part %s of %s follows %s", own, p["messageID"], part)
			}
			part = p["id"].(string)
			state, _ := p["state"].(map[string]any)
			switch state["status"] {
			case "completed":
				wants(part, state, "input", "output", "title", "metadata", "time")
			case "error":
				wants(part, state, "input", "error", "time")
			case "running":
				wants(part, state, "input", "time")
			}
		}
	}
}

// shapes returns the messages as role and parts.
func shapes(e *exported) []string {
	var list []string
	for _, m := range e.Messages {
		line := m.Info["role"].(string)
		for _, p := range m.Parts {
			line += " " + p["type"].(string)
			for _, member := range []string{"text", "callID", "mime"} {
				if text, ok := p[member].(string); ok {
					line += "(" + text + ")"
				}
			}
			if state, ok := p["state"].(map[string]any); ok {
				line += state["status"].(string)
			}
		}
		list = append(list, line)
	}
	return list
}

func conversation(t *testing.T) *transcript.Script {
	t.Helper()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	previous := ""
	var entries []session.Entry
	put := func(e session.Entry) {
		e.Timestamp = at // all at once: the order is the file's
		if previous != "" {
			parent := previous
			e.ParentID = &parent
		}
		previous = e.ID
		entries = append(entries, e)
	}
	say := func(id string, role session.MessageRole, blocks ...session.Content) {
		put(session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: blocks}})
	}
	picture := session.Content{Type: "image", Image: &session.ImageContent{Source: &session.Source{Type: "base64", MediaType: "image/png", Data: "AA=="}}}
	thinking := session.Content{Type: "thinking", Thinking: &session.ThinkingContent{Content: "hm", Signature: "sig"}}
	failed := session.ToolResult("c2", "no", true)
	say("u0", "user", session.Text("long ago"))
	say("a0", "assistant", session.Text("old"))
	say("u1", "user", session.Text("look"), picture)
	put(session.Entry{Type: "compaction", ID: "k", Compaction: &session.CompactionEntry{Summary: "SUM", FirstKeptEntryID: "u1"}})
	say("a1", "assistant", thinking, session.Text("both"), session.ToolUse("c1", "read", map[string]any{"a": 1}), session.ToolUse("c2", "read", nil), session.Text("after"))
	say("t1", "tool", session.ToolResult("c1", "ok", false))
	say("t2", "tool", failed)
	say("a2", "assistant", session.Text("done"))
	say("a3", "assistant", session.ToolUse("c3", "never", nil))
	entries[4].Message.Provider, entries[4].Message.Model = "anthropic", "claude-x"
	entries[4].Message.Usage = &session.Usage{Input: 1, Output: 5, Reasoning: 3, CacheRead: 2, CostMicroUSD: 1500}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/p"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpenCodeWrite(t *testing.T) {
	t.Parallel()
	e, out := opencodeWrite(t, conversation(t), opencodeHome(t.TempDir()))
	want := []string{
		"user text(long ago)",
		"assistant step-start text(old) step-finish",
		"user text(look) file(image/png)",
		"user compaction",
		"assistant text(SUM)",
		"assistant step-start reasoning(hm) text(both) tool(c1)completed tool(c2)error text(after) step-finish",
		"assistant step-start text(done) step-finish",
		"assistant step-start tool(c3)error step-finish",
	}
	if diff := cmp.Diff(want, shapes(e)); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	asked, summary, answer := e.Messages[3], e.Messages[4], e.Messages[5]
	if asked.Parts[0]["tail_start_id"] != e.Messages[2].Info["id"] || summary.Info["parentID"] != asked.Info["id"] || summary.Info["summary"] != true || summary.Info["finish"] == nil {
		t.Errorf("the compaction is %v, the summary %v", asked, summary.Info)
	}
	tokens, _ := json.Marshal(answer.Info["tokens"])
	if string(tokens) != `{"cache":{"read":2,"write":0},"input":1,"output":2,"reasoning":3}` || answer.Info["cost"] != 0.0015 || answer.Info["modelID"] != "claude-x" {
		t.Errorf("the answer is %v, its tokens %s", answer.Info, tokens)
	}
	if e.Info["title"] != "long ago" || !strings.Contains(out.Resume, "opencode import ") || !strings.HasSuffix(out.Resume, "opencode --session "+e.Info["id"].(string)) {
		t.Errorf("the session is %v, resumed by %s", e.Info, out.Resume)
	}
}

// TestOpenCodeWriteReasons: a block that no reader understood is not called a picture.
func TestOpenCodeWriteReasons(t *testing.T) {
	t.Parallel()
	picture := session.Content{Type: "image", Image: &session.ImageContent{Source: &session.Source{Type: "base64", MediaType: "image/png", Data: "AA=="}}}
	odd := session.Content{Type: "web_search_call", Raw: json.RawMessage(`{"type":"web_search_call"}`)}
	said := session.Entry{Type: session.TypeMessage, ID: "a", Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("x"), picture, odd}}}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/p"}, []session.Entry{said})
	if err != nil {
		t.Fatal(err)
	}
	_, out := opencodeWrite(t, s, opencodeHome(t.TempDir()))
	if len(out.Losses) != 2 || !strings.Contains(out.Losses[0].Why, "pictures") || out.Losses[1].What != "web_search_call" || strings.Contains(out.Losses[1].Why, "pictures") {
		t.Errorf("the losses are %v", out.Losses)
	}
}

// TestOpenCodeWriteReadsBack: what is written is read as what it was made of.
func TestOpenCodeWriteReadsBack(t *testing.T) {
	t.Parallel()
	_, out := opencodeWrite(t, conversation(t), opencodeHome(t.TempDir()))
	c := transcripttest.Collect(t, opencode.Format(), transcript.FileOf("x.json", out.Files[0].Data))
	var got []string
	for _, r := range c.Conversations[0].Records {
		line := string(r.Entry.Type)
		if m := r.Entry.Message; m != nil {
			line = string(m.Role)
			for _, b := range m.Content {
				line += " " + string(b.Type)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"user text", "assistant text", "user text image", "compaction",
		"assistant thinking text tool_use tool_use text", "tool tool_result tool_result", "assistant text", "assistant tool_use", "tool tool_result",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the records differ (-want +got):\n%s", diff)
	}
}

// TestOpenCodeWriteAgain: the same session has the same ids each time, so that opencode adds
// what is new and nothing twice. What came from opencode has the ids that it has there.
func TestOpenCodeWriteAgain(t *testing.T) {
	t.Parallel()
	first, _ := opencodeWrite(t, conversation(t), opencodeHome(t.TempDir()))
	second, _ := opencodeWrite(t, conversation(t), opencodeHome(t.TempDir()))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("it is written in another way:\n%s", diff)
	}
	parent := "msg_1"
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1}, []session.Entry{
		{Type: session.TypeMessage, ID: "msg_1", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("Add a /health route")}}},
		{Type: session.TypeMessage, ID: "new", ParentID: &parent, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("more")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.NativeID = "ses_a"
	dir := t.TempDir()
	db, err := os.ReadFile(opencodeDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	transcripttest.WriteFile(t, filepath.Join(dir, ".local/share/opencode/opencode.db"), string(db))
	out, err := opencode.Format().Write(t.Context(), s, opencodeHome(dir))
	if err != nil {
		t.Fatal(err)
	}
	var e exported
	if err := json.Unmarshal(out.Files[0].Data, &e); err != nil {
		t.Fatal(err)
	}
	if e.Info["id"] != "ses_a" || e.Messages[0].Info["id"] != "msg_1" || e.Messages[0].Parts[0]["id"] != "prt_01" {
		t.Errorf("the session is %v, its first message %v", e.Info, e.Messages[0])
	}
}

// TestOpenCodeWriteFailedCommand: a command that came back and failed is written as that, and
// read as the same result: another one would be a branch.
func TestOpenCodeWriteFailedCommand(t *testing.T) {
	t.Parallel()
	parent := "a"
	failed := session.ToolResult("c1", "no such file", true)
	failed.ToolResult.Extra = session.Fields{{Name: "title", Value: json.RawMessage(`"List it"`)}}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/p"}, []session.Entry{
		{Type: session.TypeMessage, ID: "a", Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUse("c1", "bash", nil)}}},
		{Type: session.TypeMessage, ID: "r", ParentID: &parent, Message: &session.MessageEntry{Role: "tool", Content: []session.Content{failed}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, out := opencodeWrite(t, s, opencodeHome(t.TempDir()))
	c := transcripttest.Collect(t, opencode.Format(), transcript.FileOf("x.json", out.Files[0].Data))
	records := c.Conversations[0].Records
	if diff := cmp.Diff(failed, records[len(records)-1].Entry.Message.Content[0]); diff != "" {
		t.Errorf("the result differs (-was +is):\n%s", diff)
	}
}
