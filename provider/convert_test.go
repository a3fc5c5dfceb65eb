package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// formats are the names under which the formats keep what has no place.
var formats = map[string]string{
	"chat": wire.Chat, "responses": wire.Responses, "anthropic": wire.Anthropic, "google": wire.Google,
}

// codecs are all the wire formats.
var codecs = map[string]struct {
	decode   func([]byte) (*provider.Body, error)
	encode   func([]session.Entry) (*provider.Messages, error)
	response func(...session.Entry) (json.RawMessage, []provider.Note, error)
}{
	"chat": {openai.DecodeChat, func(e []session.Entry) (*provider.Messages, error) {
		return openai.EncodeChat(e, &openai.ChatOptions{Reasoning: "reasoning_content"})
	}, response("openai-chat")},
	"responses": {openai.DecodeResponses, openai.EncodeResponses, response("openai")},
	"anthropic": {anthropic.Decode, anthropic.Encode, response("anthropic")},
	"google":    {google.Decode, google.Encode, response("google")},
}

// response returns what writes a response in a dialect.
func response(dialect string) func(...session.Entry) (json.RawMessage, []provider.Note, error) {
	return func(answers ...session.Entry) (json.RawMessage, []provider.Note, error) {
		return providertest.Response(dialect, answers...)
	}
}

func message(id string, role session.MessageRole, blocks ...session.Content) session.Entry {
	return session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: blocks}}
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// withoutNamed leaves out the lines that name what is not shown.
func withoutNamed(results []string) []string {
	for i := range results {
		results[i], _, _ = strings.Cut(results[i], "\n[")
	}
	return results
}

func source(kind session.ContentType, s *session.Source) session.Content {
	switch kind {
	case session.ContentTypeImage:
		return session.Content{Type: kind, Image: &session.ImageContent{Source: s}}
	case session.ContentTypeAudio:
		return session.Content{Type: kind, Audio: &session.AudioContent{Source: s}}
	}
	return session.Content{Type: kind, File: &session.FileContent{Name: "f", Source: s}}
}

// everything is a context with all that a context can have, from nowhere in
// particular.
func everything() []session.Entry {
	withParts := session.ToolResult("c2", "text", false)
	withParts.ToolResult.Parts = []session.Content{session.Text("text"), session.Image("image/png", pixel)}
	return []session.Entry{
		message("sys", session.RoleSystem, session.Text("be brief")),
		{Type: session.TypeCompaction, ID: "comp", Compaction: &session.CompactionEntry{Summary: "they met"}},
		{Type: session.TypeBranchSummary, ID: "branch", BranchSummary: &session.BranchSummaryEntry{Summary: "a dead end"}},
		{Type: session.TypeMerge, ID: "merge", Merge: &session.MergeEntry{Summary: "found it"}},
		{Type: session.TypeMerge, ID: "picked", Merge: &session.MergeEntry{EntryIDs: []string{"x"}}},
		message("u1", session.RoleUser, session.Text("look"), session.Image("image/png", pixel),
			source(session.ContentTypeImage, &session.Source{Type: "url", MediaType: "image/png", Data: "https://x/y.png"}),
			source(session.ContentTypeImage, &session.Source{Type: "file", Data: "f1"}),
			source(session.ContentTypeAudio, &session.Source{Type: "base64", MediaType: "audio/wav", Data: "BBBB"}),
			source(session.ContentTypeFile, &session.Source{Type: "base64", MediaType: "application/pdf", Data: "CCCC"}),
			source(session.ContentTypeFile, &session.Source{Type: "text", MediaType: "text/plain", Data: "words"}),
			source(session.ContentTypeFile, &session.Source{Type: "odd"}),
			session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{}},
			session.Content{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram"}`)}, session.Text("")),
		message("a1", session.RoleAssistant,
			session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}},
			session.Text("I look"), session.ToolUse("c1", "look", map[string]any{"x": 1.0}), session.ToolUse("c2", "look", nil), session.Text("so")),
		message("t1", session.RoleTool, session.ToolResult("c1", "a cat", false)),
		message("t2", session.RoleTool, withParts),
		message("s2", session.RoleSystem, session.Text("now in German")),
		message("b1", session.RoleBashExecution, session.Text("$ ls")),
		message("mix", session.RoleUser, session.Text("before"), session.ToolResult("c9", "", true), session.Text("after")),
	}
}

// TestFromElsewhere: every encoder makes a request of any context that its own
// decoder reads with the same calls and results, and says what it left out.
func TestFromElsewhere(t *testing.T) {
	t.Parallel()
	said := map[string][]string{
		"chat":      {"u1: an image is left out", "u1: a file is left out", "a1: what was said after a call comes before it", "t2: image (image/png, 70 bytes) is not shown: a tool cannot show it to this model", "mix: the result does not say that the tool failed"},
		"responses": {"u1: a file is left out", "a1: thinking of another provider is left out", "mix: the result does not say that the tool failed"},
		"anthropic": {"u1: audio (audio/wav, 3 bytes) is not shown: this model cannot listen to it", "u1: file f (application/pdf, 3 bytes) is not shown: it is no PDF", "a1: thinking of another provider is left out", "s2: a system message amid the conversation is sent as the user's"},
		"google":    {"u1: an image is left out", "a1: thinking of another provider is left out", "t2: image (image/png, 70 bytes) is not shown: a tool cannot show it to this model", "mix: the result c9 answers no call, so its function has no name", "s2: a system message amid the conversation is sent as the user's"},
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			m, err := codec.encode(everything())
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, n := range m.Notes {
				notes = append(notes, n.String())
			}
			for _, want := range append(said[name], "u1: a block of type hologram is left out") {
				if !slices.Contains(notes, want) {
					t.Errorf("nothing says %q, only %q", want, notes)
				}
			}
			request := m.Request(nil)
			body, err := codec.decode(request)
			if err != nil {
				t.Fatalf("%s: %v", request, err)
			}
			if diff := cmp.Diff([]string{"call c1", "call c2", "result c1 a cat", "result c2 text", "result c9 "}, withoutNamed(tools(body.Entries))); diff != "" {
				t.Errorf("calls and results (-want +got):\n%s", diff)
			}
			for _, words := range []string{"be brief", "they met", "a dead end", "found it", "I look", "so", "now in German", "$ ls", "before", "after"} {
				if !bytes.Contains(request, []byte(words)) {
					t.Errorf("%q is not in %s", words, request)
				}
			}
			if bytes.Contains(request, []byte("hologram")) {
				t.Error("a foreign block was sent")
			}
		})
	}
}

func tools(entries []session.Entry) []string {
	var list []string
	for _, e := range entries {
		for _, c := range e.Message.Content {
			if c.ToolUse != nil {
				list = append(list, "call "+c.ToolUse.ID)
			}
			if c.ToolResult != nil {
				list = append(list, fmt.Sprintf("result %s %s", c.ToolResult.ToolUseID, c.ToolResult.Content))
			}
		}
	}
	return list
}

// TestResponseFromElsewhere: an answer of one provider can be given as one of
// another.
func TestResponseFromElsewhere(t *testing.T) {
	t.Parallel()
	answer := message("a1", session.RoleAssistant, session.Text("hi"), session.ToolUse("c1", "f", map[string]any{}))
	answer.Message.Model, answer.Message.ResponseID, answer.Message.StopReason = "m", "r1", provider.StopMaxTokens
	answer.Message.Usage = &session.Usage{Input: 100, CacheRead: 20, Output: 50, Reasoning: 10}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			raw, notes, err := codec.response(answer)
			if err != nil || len(notes) > 0 {
				t.Fatalf("%v, notes %v", err, notes)
			}
			body, err := codec.decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			m := body.Entries[0].Message
			if body.Kind != provider.KindResponse || m.StopReason != provider.StopMaxTokens || m.Usage == nil || m.Usage.Context() != 170 {
				t.Errorf("%s became %+v with usage %+v", raw, m, m.Usage)
			}
			if m.ResponseID != "r1" || m.Model != "m" {
				t.Errorf("the response is %s of %s", m.ResponseID, m.Model)
			}
			if name != "responses" { // which are items, of whoever
				if _, _, err := codec.response(message("u1", session.RoleUser)); err == nil {
					t.Error("a user's message is a response")
				}
			}
			foreign := message("a2", session.RoleAssistant, session.Content{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram"}`)})
			raw, notes, err = codec.response(foreign)
			if err != nil || len(notes) != 1 {
				t.Errorf("%s, %v, notes %v", raw, err, notes)
			}
		})
	}
}

// TestStopReasons: the reasons to stop mean the same afterwards.
func TestStopReasons(t *testing.T) {
	t.Parallel()
	tests := []struct{ codec, body, want string }{
		{"chat", `{"choices":[{"message":{"role":"assistant"},"finish_reason":"tool_calls"}]}`, provider.StopToolUse},
		{"chat", `{"choices":[{"message":{"role":"assistant"},"finish_reason":"content_filter"}]}`, provider.StopRefusal},
		{"chat", `{"choices":[{"message":{"role":"assistant"},"finish_reason":"eos"}]}`, "eos"},
		{"responses", `{"id":"r","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"status":"completed"}`, provider.StopToolUse},
		{"responses", `{"id":"r","output":[],"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`, provider.StopRefusal},
		{"responses", `{"id":"r","output":[],"status":"cancelled"}`, "cancelled"},
		{"anthropic", `{"type":"message","role":"assistant","content":[],"stop_reason":"pause_turn"}`, provider.StopPause},
		{"google", `{"candidates":[{"finishReason":"RECITATION"}]}`, provider.StopRefusal},
	}
	for _, tt := range tests {
		body, err := codecs[tt.codec].decode([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := body.Entries[0].Message.StopReason; got != tt.want {
			t.Errorf("%s: the reason is %s, want %s", tt.body, got, tt.want)
		}
	}
}

// TestBadArguments: arguments that are not JSON reach a provider that must have
// an object.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	body, err := openai.DecodeChat([]byte(`[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": tru"}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"anthropic", "google"} {
		m, err := codecs[name].encode(body.Entries)
		if err != nil {
			t.Fatal(err)
		}
		if request := string(m.Request(nil)); !strings.Contains(request, `{"arguments":"{\"a\": tru"}`) || len(m.Notes) != 1 {
			t.Errorf("%s: %s, notes %v", name, request, m.Notes)
		}
	}
}

// TestUnsafeNames: ids and names that a provider would refuse are changed, calls
// and results alike.
func TestUnsafeNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	entries := []session.Entry{
		message("u1", session.RoleUser, session.Text("go")),
		message("a1", session.RoleAssistant, session.ToolUse("call|1", "fs.read", nil), session.ToolUse("call/1", long+long, nil), session.ToolUse(long, "f", nil)),
		message("t1", session.RoleTool, session.ToolResult("call|1", "1", false), session.ToolResult("call/1", "2", false), session.ToolResult(long, "3", false)),
	}
	for _, name := range []string{"chat", "responses", "anthropic"} {
		m, err := codecs[name].encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		b, err := codecs[name].decode(m.Request(nil))
		if err != nil {
			t.Fatal(err)
		}
		var calls, results []string
		for _, e := range b.Entries {
			for _, c := range e.Message.Content {
				if c.ToolUse != nil {
					calls = append(calls, c.ToolUse.ID)
					for _, s := range []string{c.ToolUse.ID, c.ToolUse.Name} {
						if s == "" || len(s) > 128 || strings.ContainsAny(s, "|/.") {
							t.Errorf("%s: %q is sent", name, s)
						}
					}
				}
				if c.ToolResult != nil {
					results = append(results, c.ToolResult.ToolUseID)
				}
			}
		}
		slices.Sort(calls)
		slices.Sort(results)
		if !slices.Equal(calls, results) || len(slices.Compact(calls)) != 3 {
			t.Errorf("%s: calls %q, results %q", name, calls, results)
		}
		if len(m.Notes) != 2 {
			t.Errorf("%s: notes %v", name, m.Notes)
		}
	}
}

// TestEdited: what was changed after it was read is sent as it is now, however
// odd it was.
func TestEdited(t *testing.T) {
	t.Parallel()
	tests := []struct{ codec, body string }{
		{"chat", `[{"role":"user","content":null}]`},
		{"chat", `[{"role":"assistant"}]`},
		{"chat", `[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}]`},
		{"chat", `[{"role":"tool","tool_call_id":"c"}]`},
		{"responses", `[{"role":"user","content":7}]`},
		{"responses", `[{"type":"function_call_output","call_id":"c","output":{"a":1}}]`},
		{"responses", `[{"type":"function_call_output","call_id":"c"}]`},
		{"anthropic", `[{"role":"user"}]`},
		{"anthropic", `[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":"x"}]}]`},
		{"anthropic", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]`},
		{"google", `[{"role":"user"}]`},
		{"google", `[{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]`},
		{"google", `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":"x"}}]}]`},
		{"google", `[{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}]`},
	}
	for _, tt := range tests {
		b, err := codecs[tt.codec].decode([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		m := b.Entries[0].Message
		switch {
		case len(m.Content) == 0:
			m.Content = []session.Content{session.Text("edited")}
		case m.Content[0].ToolUse != nil:
			m.Content[0].ToolUse.Input = map[string]any{"now": "edited"}
		default:
			m.Content[0].ToolResult.Content = "edited"
		}
		messages, err := codecs[tt.codec].encode(b.Entries)
		if err != nil || !strings.Contains(string(messages.Request(nil)), "edited") {
			t.Errorf("%s: %s became %s, %v", tt.codec, tt.body, messages.Request(nil), err)
		}
	}
}

// TestClearedResult: the answer to a call that is no function's stays one, even
// if nothing of it is left.
func TestClearedResult(t *testing.T) {
	t.Parallel()
	b, err := openai.DecodeResponses([]byte(`[{"type":"custom_tool_call","call_id":"c","name":"sh","input":"ls"},{"type":"custom_tool_call_output","call_id":"c","output":"a lot"}]`))
	if err != nil {
		t.Fatal(err)
	}
	b.Entries[1].Message.Content = []session.Content{session.ToolResult("c", "[cleared]", false)}
	m, err := openai.EncodeResponses(b.Entries)
	if err != nil || !strings.Contains(string(m.Request(nil)), `{"type":"custom_tool_call_output","call_id":"c","output":"[cleared]"}`) {
		t.Errorf("%s, %v", m.Request(nil), err)
	}
}

// TestOnlyThinking: an answer that only thinks, or ends with thinking, is sent without it:
// it is refused. What a model thought before it said something stays, even if the log has
// it as a message of its own.
func TestOnlyThinking(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs {
		thought := session.Thinking("hm", "S")
		(&wire.Residue{}).Mark(&thought.Extra, formats[name])
		entries := []session.Entry{
			message("u1", session.RoleUser, session.Text("go")),
			message("a1", session.RoleAssistant, thought),
			message("u2", session.RoleUser, session.Text("and?")),
			message("a2", session.RoleAssistant, thought),
			message("a3", session.RoleAssistant, session.Text("FIRST"), thought, session.Text(" ")),
			message("u3", session.RoleUser, session.Text("more")),
			message("a4", session.RoleAssistant, thought),
		}
		m, err := codec.encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		request := m.Request(nil)
		if faults := checks[name](request); len(faults) > 0 {
			t.Errorf("%s: %v in %s", name, faults, request)
		}
		if !bytes.Contains(request, []byte("FIRST")) || name == "anthropic" && bytes.Count(request, []byte(`"hm"`)) != 1 {
			t.Errorf("%s: %s", name, request)
		}
	}
}

// TestThinkingOffInATurn: with thinking switched off between a call and its result, the
// thinking before the call is not sent. That of earlier turns stays, for the cache.
func TestThinkingOffInATurn(t *testing.T) {
	t.Parallel()
	thought := session.Thinking("hm", "S")
	entries := []session.Entry{
		message("u1", session.RoleUser, session.Text("go")),
		message("a1", session.RoleAssistant, thought, session.Text("done")),
		message("u2", session.RoleUser, session.Text("again")),
		message("a2", session.RoleAssistant, thought, session.ToolUse("c1", "run", nil)),
		message("r2", session.RoleTool, session.ToolResult("c1", "ran", false)),
		message("a3", session.RoleAssistant, session.Thinking("", "")),
		message("a4", session.RoleAssistant, thought, session.ToolUse("c2", "run", nil)),
		message("r4", session.RoleTool, session.ToolResult("c2", "ran", false)),
	}
	for level, want := range map[string]int{provider.ThinkingLow: 3, provider.ThinkingOff: 1, "": 1} {
		f, _ := provider.FamilyOf("claude-sonnet-4-5")
		encoded, err := anthropic.EncodeRequest(&provider.Request{Entries: entries, Thinking: level}, "m", f, 9000)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(encoded.Body, []byte(`"hm"`)); got != want {
			t.Errorf("thinking %q: %d thoughts are sent, want %d: %s", level, got, want, encoded.Body)
		}
		for _, fault := range anthropic.Check(encoded.Body) {
			t.Errorf("thinking %q: %v in %s", level, fault, encoded.Body)
		}
	}
}

// TestHalfArguments: the arguments of a call that was cut off are sent as an object that
// holds them, because servers parse them.
func TestHalfArguments(t *testing.T) {
	t.Parallel()
	for half, want := range map[string]string{"": `{}`, `{"path":"/`: `{"arguments":"{\"path\":\"/"}`, `[1]`: `{"arguments":"[1]"}`, `{"a": 1}`: `{"a": 1}`} {
		for name, body := range map[string]string{
			"chat":      `[{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":ARGS}}]}]`,
			"responses": `[{"type":"function_call","call_id":"c1","name":"f","arguments":ARGS}]`,
		} {
			b, err := codecs[name].decode([]byte(strings.ReplaceAll(body, "ARGS", string(wire.Quote(half)))))
			if err != nil {
				t.Fatal(err)
			}
			m, err := codecs[name].encode(b.Entries)
			if err != nil || !strings.Contains(string(m.Request(nil)), `"arguments":`+string(wire.Quote(want))) {
				t.Errorf("%s: the arguments %q are sent as %s, %v", name, half, m.Request(nil), err)
			}
		}
	}
}

// TestRoleThatWasLeftOut: servers leave the role of an answer out, or empty. It is sent all
// the same.
func TestRoleThatWasLeftOut(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"chat":      `{"id":"r","choices":[{"index":0,"finish_reason":"stop","message":{"content":"x"ROLE}}]}`,
		"google":    `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"x"}]ROLE}}]}`,
		"anthropic": `{"type":"message","content":[{"type":"text","text":"x"}],"role":"assistant"}`,
	} {
		for _, role := range []string{``, `,"role":""`, `,"role":null`} {
			b, err := codecs[name].decode([]byte(strings.ReplaceAll(body, "ROLE", role)))
			if err != nil {
				t.Fatal(err)
			}
			m, err := codecs[name].encode(append([]session.Entry{message("u", session.RoleUser, session.Text("go"))}, b.Entries...))
			if err != nil {
				t.Fatal(err)
			}
			if request := string(m.Request(nil)); !strings.Contains(request, `"role":"assistant"`) && !strings.Contains(request, `"role":"model"`) {
				t.Errorf("%s with %q: %s", name, role, request)
			}
		}
	}
}

// TestNothingSaid: a message of nothing is not sent, because it is refused.
func TestNothingSaid(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs {
		m, err := codec.encode([]session.Entry{message("a", session.RoleAssistant), message("u", session.RoleUser)})
		if err != nil || !strings.HasSuffix(string(m.Request(nil)), `:[]}`) {
			t.Errorf("%s: %s, %v", name, m.Request(nil), err)
		}
	}
}

// TestLocalFiles: where a file lies on the user's machine is told to nobody.
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	at := &session.Source{Type: provider.SourceURL, MediaType: "image/png", Data: "file:///home/ann/secret.png"}
	image := session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: at}}
	file := session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "secret.png", Source: at}}
	result := session.ToolResult("c", "seen", false)
	result.ToolResult.Parts = []session.Content{session.Text("seen"), image}
	for name, codec := range codecs {
		entries := []session.Entry{
			message("u", session.RoleUser, session.Text("look"), image, file),
			message("a", session.RoleAssistant, session.ToolUse("c", "f", nil)),
			message("r", session.RoleTool, result),
		}
		m, err := codec.encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		if request := string(m.Request(nil)); strings.Contains(request, "/home/ann") || !strings.Contains(request, "seen") {
			t.Errorf("%s: %s", name, request)
		}
		if len(m.Notes) != 2 || m.Notes[0].Entry != "u" || m.Notes[1].Entry != "r" {
			t.Errorf("%s: notes %v", name, m.Notes)
		}
		if len(entries[0].Message.Content) != 3 {
			t.Errorf("%s changed what it was given", name)
		}
	}
}

// TestUnencodable: an input that no JSON can hold is an error that names the
// entry.
func TestUnencodable(t *testing.T) {
	t.Parallel()
	entries := []session.Entry{message("a1", session.RoleAssistant, session.ToolUse("c", "f", map[string]any{"x": func() {}}))}
	for name, codec := range codecs {
		if _, err := codec.encode(entries); err == nil || !strings.Contains(err.Error(), "a1") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if _, _, err := codec.response(entries...); err == nil {
			t.Errorf("%s: a response was made", name)
		}
	}
}

// TestNoBody: what is no body is refused.
func TestNoBody(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs {
		for _, text := range []string{``, `{`, `7`, `"x"`, `{}`, `{"a":1}`, `{"error":{"message":"no"}}`} {
			if b, err := codec.decode([]byte(text)); err == nil {
				t.Errorf("%s: %q is %+v", name, text, b)
			}
		}
		if name != "responses" {
			if _, err := codec.decode([]byte(`[7]`)); err == nil {
				t.Errorf("%s: a number is a message", name)
			}
		}
	}
	for _, text := range []string{`{"choices":[]}`, `{"choices":[7]}`, `{"choices":[{}]}`, `{"messages":[7]}`} {
		if _, err := openai.DecodeChat([]byte(text)); err == nil {
			t.Errorf("chat: %s was read", text)
		}
	}
	for _, text := range []string{`{"input":7}`, `{"object":"response"}`} {
		if _, err := openai.DecodeResponses([]byte(text)); err == nil {
			t.Errorf("responses: %s was read", text)
		}
	}
	for _, text := range []string{`{"candidates":[]}`, `{"candidates":[7]}`, `{"contents":[7]}`} {
		if _, err := google.Decode([]byte(text)); err == nil {
			t.Errorf("google: %s was read", text)
		}
	}
	if _, err := anthropic.Decode([]byte(`{"messages":[7]}`)); err == nil {
		t.Error("anthropic: a number is a message")
	}
}

// TestStable: the same entries give the same bytes, and more entries give bytes
// that begin with those of fewer, so that prompt caches hit.
func TestStable(t *testing.T) {
	t.Parallel()
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			soak.Check(t, func(t *rapid.T) {
				entries := turns(t)
				whole, err := codec.encode(entries)
				if err != nil {
					t.Fatal(err)
				}
				again, err := codec.encode(entries)
				if err != nil || !bytes.Equal(whole.Request(nil), again.Request(nil)) {
					t.Fatalf("the bytes differ, %v", err)
				}
				for n := range entries {
					if n == 0 || entries[n].Message.Role != session.RoleUser {
						continue // results are written into one message
					}
					part, err := codec.encode(entries[:n])
					if err != nil {
						t.Fatal(err)
					}
					prefix := bytes.TrimRight(part.Request(nil), "]}")
					if !bytes.HasPrefix(whole.Request(nil), prefix) {
						t.Fatalf("the request of %d entries does not begin as that of %d:\n%s\n%s", len(entries), n, whole.Request(nil), prefix)
					}
				}
			})
		})
	}
}

// turns draws a conversation.
func turns(t *rapid.T) []session.Entry {
	entries := []session.Entry{message("s", session.RoleSystem, session.Text("s"))}
	for i := range rapid.IntRange(1, 6).Draw(t, "turns") {
		id := fmt.Sprint("m", i)
		entries = append(entries, message("u"+id, session.RoleUser, session.Text(rapid.StringN(1, 8, -1).Draw(t, "said"))))
		a := message("a"+id, session.RoleAssistant, session.Text("ok"))
		var results []session.Content
		for j := range rapid.IntRange(0, 3).Draw(t, "calls") {
			call := fmt.Sprint(id, "c", j)
			input := rapid.MapOfN(rapid.StringN(1, 4, -1), rapid.Just(any("v")), 0, 3).Draw(t, "input")
			a.Message.Content = append(a.Message.Content, session.ToolUse(call, "f", input))
			results = append(results, session.ToolResult(call, "r", j == 1))
		}
		entries = append(entries, a)
		for _, r := range results {
			entries = append(entries, message("t"+r.ToolResult.ToolUseID, session.RoleTool, r))
		}
	}
	return entries
}
