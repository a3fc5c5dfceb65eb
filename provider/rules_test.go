package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

var checks = map[string]func([]byte) []provider.Fault{
	"chat": openai.CheckChat, "responses": openai.CheckResponses, "anthropic": anthropic.Check,
	"google": google.Check,
}

// refused are requests that the providers refuse, each for one reason.
var refused = map[string][]refusal{
	"anthropic": {
		{provider.RuleEmpty, `{"messages":[]}`},
		{provider.RuleRole, `[{"role":"system","content":"x"}]`},
		{provider.RuleEmpty, `[{"role":"user","content":""},{"role":"user","content":"x"}]`},
		{provider.RuleEmpty, `[{"role":"user","content":[{"type":"text","text":" \n"}]}]`},
		{provider.RuleEmpty, `{"system":[{"type":"text","text":""}],"messages":[{"role":"user","content":"x"}]}`},
		{provider.RuleRole, `[{"role":"user","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]`},
		{provider.RuleUnanswered, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]`},
		{provider.RuleOrphan, `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]`},
		{provider.RuleUnsigned, `[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]},{"role":"user","content":"x"}]`},
		{provider.RuleRole, `[{"role":"user","content":[{"type":"thinking","thinking":"hm","signature":"S"}]}]`},
		{provider.RuleOrder, `[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"}]},{"role":"user","content":"x"}]`},
		{provider.RuleOrder, `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"redacted_thinking","data":"S"}]}]`},
		{provider.RuleOrder, `{"model":"claude-sonnet-4-5","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`},
		{provider.RuleRole, `[{"role":"assistant","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"user","content":"x"}]`},
		{provider.RuleMedia, `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]`},
		{provider.RuleMedia, `[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"YSxi"}}]}]`},
		{provider.RuleMedia, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + pixel + `"}}]}]}]`},
		{provider.RuleShape, `[{"role":"user","content":[{"type":"image","source":{"type":"url","media_type":"image/png","url":"https://x/y.png"}}]}]`},
		{provider.RuleOrder, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"w"},{"type":"tool_result","tool_use_id":"a"}]}]`},
		{provider.RuleRepeated, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}]`},
		{provider.RuleName, `[{"role":"assistant","content":[{"type":"tool_use","id":"a|b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a|b"}]}]`},
		{provider.RuleShape, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{}"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`},
		{provider.RuleRepeated, `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`},
	},
	"google": {
		{provider.RuleMedia, `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/gif","data":"R0lGODlhAQABAAAAACw="}}]}]`},
		{provider.RuleEmpty, `{"contents":[]}`},
		{provider.RuleEmpty, `[{"role":"user","parts":[]}]`},
		{provider.RuleEmpty, `[{"role":"user","parts":[{"text":""}]}]`},
		{provider.RuleRole, `[{"role":"assistant","parts":[{"text":"x"}]}]`},
		{provider.RuleUnanswered, `[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]`},
		{provider.RuleOrphan, `[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]`},
		{provider.RuleOrder, `[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"y"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]`},
		{provider.RuleUnanswered, `[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]`},
		{provider.RuleName, `[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f g","response":{}}}]}]`},
	},
	"chat": {
		{provider.RuleMedia, `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]`},
		{provider.RuleMedia, `[{"role":"user","content":[{"type":"file","file":{"filename":"a.md","file_data":"data:text/markdown;base64,YSxi"}}]}]`},
		{provider.RuleEmpty, `[]`},
		{provider.RuleRole, `[{"role":"robot","content":"x"}]`},
		{provider.RuleEmpty, `[{"role":"assistant","content":null}]`},
		{provider.RuleEmpty, `[{"role":"user","content":[]}]`},
		{provider.RuleRole, `[{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}}]}]`},
		{provider.RuleOrphan, `[{"role":"tool","tool_call_id":"a","content":"r"}]`},
		{provider.RuleUnanswered, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]`},
		{provider.RuleShape, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"a","content":"r"}]`},
		{provider.RuleName, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f.g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"}]`},
		{provider.RuleRepeated, `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"r"},{"role":"tool","tool_call_id":"a","content":"r"}]`},
	},
	"responses": {
		{provider.RuleMedia, `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]`},
		{provider.RuleMedia, `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`},
		{provider.RuleEmpty, `{"input":[]}`},
		{provider.RuleRole, `[{"type":"message","role":"robot","content":"x"}]`},
		{provider.RuleUnanswered, `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]`},
		{provider.RuleOrphan, `[{"type":"function_call_output","call_id":"a","output":"r"}]`},
		{provider.RuleOrder, `[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[]}]`},
		{provider.RuleShape, `[{"type":"function_call","call_id":"a","name":"f","arguments":{}},{"type":"function_call_output","call_id":"a","output":"r"}]`},
		{provider.RuleRepeated, `[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"r"},{"type":"function_call_output","call_id":"a","output":"r"}]`},
	},
}

type refusal struct {
	rule    provider.Rule
	request string
}

// TestChecksRefuse: what a provider refuses has a fault, of its rule and at a
// place.
func TestChecksRefuse(t *testing.T) {
	t.Parallel()
	for name, requests := range refused {
		for _, r := range requests {
			faults := checks[name]([]byte(r.request))
			if len(faults) == 0 || faults[0].Rule != r.rule || faults[0].At == "" || faults[0].What == "" {
				t.Errorf("%s: %s: %v, want one of the rule %q", name, r.request, faults, r.rule)
			}
		}
		if faults := checks[name]([]byte(`{`)); len(faults) != 1 || faults[0].Rule != provider.RuleShape {
			t.Errorf("%s: half an object: %v", name, faults)
		}
	}
}

// accepted are requests that the providers take, odd as they look.
var accepted = map[string][]string{
	"anthropic": {
		`[{"role":"assistant","content":"Hello."},{"role":"assistant","content":"Again."},{"role":"user","content":"x"}]`,
		`[{"role":"user","content":"x"},{"role":"assistant","content":""}]`,
		`[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"}]},{"role":"assistant","content":"Again."},{"role":"user","content":"x"}]`,
		`{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"y"}]},{"role":"user","content":"x"}]}`,
		`{"model":"m","thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"and"}]}]`,
	},
	"google": {
		`[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]},{"role":"function","parts":[{"function_response":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}}]}]`,
	},
	"chat": {
		`[{"role":"developer","content":""},{"role":"assistant","content":"x"},{"role":"assistant","refusal":"no"}]`,
		`[{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]},{"role":"tool","tool_call_id":"a","content":"r"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"r"}]}]`,
	},
	"responses": {
		`{"input":"hi"}`,
		`{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"a","output":"r"}]}`,
		`[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"role":"user","content":"wait"},{"type":"function_call_output","call_id":"a","output":"r"}]`,
	},
}

func TestChecksAccept(t *testing.T) {
	t.Parallel()
	for name, requests := range accepted {
		for _, request := range requests {
			if faults := checks[name]([]byte(request)); len(faults) > 0 {
				t.Errorf("%s: %s: %v", name, request, faults)
			}
		}
	}
}

// TestTornCalls: a program that keeps each call of a reply by itself does not make
// the others refuse the conversation, and no call, result or text is missing.
func TestTornCalls(t *testing.T) {
	t.Parallel()
	entries := []session.Entry{
		message("u1", session.RoleUser, session.Text("do both")),
		message("a1", session.RoleAssistant, session.Text("first")),
		message("a2", session.RoleAssistant, session.ToolUse("a", "run", map[string]any{"cmd": "CALL-A"})),
		message("a3", session.RoleAssistant, session.ToolUse("b", "run", map[string]any{"cmd": "CALL-B"})),
		message("a4", session.RoleAssistant, session.Text("second")),
		message("t1", session.RoleTool, session.ToolResult("a", "RESULT-A", false)),
		message("t2", session.RoleTool, session.ToolResult("b", "RESULT-B", false)),
		message("a5", session.RoleAssistant, session.Text("done")),
	}
	for name, codec := range codecs {
		m, err := codec.encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		request := m.Request(nil)
		for _, fault := range checks[name](request) {
			t.Errorf("%s: %v in %s", name, fault, request)
		}
		for _, text := range []string{"do both", "first", "CALL-A", "CALL-B", "second", "RESULT-A", "RESULT-B", "done"} {
			if strings.Count(string(request), text) != 1 {
				t.Errorf("%s: %q is not there once: %s", name, text, request)
			}
		}
	}
}

// TestEveryContextIsAccepted: whatever programs wrote into a log, what is made of
// it keeps the rules.
func TestEveryContextIsAccepted(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			if err := s.Append(drawMessage(t, i)); err != nil {
				t.Fatal(err)
			}
		}
		c, err := s.Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for name, codec := range codecs {
			m, err := codec.encode(c.Entries)
			if err != nil {
				t.Fatal(err)
			}
			request := m.Request(nil)
			faults := slices.DeleteFunc(checks[name](request), func(f provider.Fault) bool {
				return f.Rule == provider.RuleEmpty && !strings.Contains(f.At, "[") // nothing was said at all
			})
			if len(faults) > 0 {
				t.Fatalf("%s: %v in %s", name, faults, request)
			}
		}
	})
}

// drawMessage draws a message with everything that goes wrong in logs: ids that
// are used again, results that come late, twice or not at all, texts without words,
// blocks that came from a provider.
func drawMessage(t *rapid.T, i int) session.Entry {
	id := rapid.SampledFrom([]string{"a", "b", "call|1", "", strings.Repeat("x", 90)})
	word := rapid.SampledFrom([]string{"words", "", " \n"})
	block := rapid.Custom(func(t *rapid.T) session.Content {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]session.Content{
				session.Image("image/png", "AAAA"), session.Image("image/png", pixel), session.Image("image/jpeg", pixel),
				source(session.ContentTypeFile, &session.Source{Type: "base64", MediaType: "text/csv", Data: "YSxi"}),
				source(session.ContentTypeFile, &session.Source{Type: "base64", MediaType: "application/zip", Data: "AAAA"}),
				source(session.ContentTypeAudio, &session.Source{Type: "base64", MediaType: "audio/wav", Data: "AAAA"}),
			}).Draw(t, "media")
		case 1:
			return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: word.Draw(t, "signature")}}
		case 2:
			return session.Content{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram"}`)}
		}
		return session.Text(word.Draw(t, "text"))
	})
	call := rapid.Custom(func(t *rapid.T) session.Content {
		return session.ToolUse(id.Draw(t, "id"), rapid.SampledFrom([]string{"f", "fs.read", "9 lives"}).Draw(t, "name"), map[string]any{"n": float64(i)})
	})
	result := rapid.Custom(func(t *rapid.T) session.Content {
		r := session.ToolResult(id.Draw(t, "id"), word.Draw(t, "result"), rapid.Bool().Draw(t, "error"))
		if rapid.Bool().Draw(t, "parts") {
			r.ToolResult.Parts = []session.Content{block.Draw(t, "part")}
		}
		return r
	})
	role := rapid.SampledFrom([]session.MessageRole{session.RoleUser, session.RoleAssistant, session.RoleAssistant, session.RoleTool, session.RoleTool, session.RoleSystem}).Draw(t, "role")
	e := message("", role)
	add := func(g *rapid.Generator[session.Content], most int, what string) {
		e.Message.Content = append(e.Message.Content, rapid.SliceOfN(g, 0, most).Draw(t, what)...)
	}
	switch role {
	case session.RoleTool:
		add(result, 2, "results")
	case session.RoleAssistant:
		add(block, 2, "blocks")
		add(call, 2, "calls")
		add(block, 1, "more")
	case session.RoleUser:
		add(block, 1, "before")
		add(result, 1, "results")
		add(block, 2, "blocks")
	default:
		e.Message.Content = []session.Content{session.Text(fmt.Sprint("rule ", i))}
	}
	return e
}

// TestOddCallsOfAnAnswerAreAnswered: a server may give a call an id that is long, odd,
// used before or missing, and a model may call a tool by a name that none can have.
// The results that a program adds find their calls, and the request is accepted.
func TestOddCallsOfAnAnswerAreAnswered(t *testing.T) {
	t.Parallel()
	long := "chatcmpl-tool-0123456789abcdef0123456789abcdef" + strings.Repeat("0", 60)
	for name, body := range map[string]string{
		"chat": `{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[
			{"id":"functions.read:0","type":"function","function":{"name":"f.g","arguments":"{}"}},{"id":"LONG","type":"function","function":{"name":"","arguments":"{}"}},
			{"type":"function","function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g","arguments":"{}"}},{"id":"functions.read:0","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`,
		"responses": `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"i","call_id":"functions.read:0","name":"f.g","arguments":"{}"},
			{"type":"function_call","id":"j","call_id":"LONG","name":"","arguments":"{}"},{"type":"function_call","id":"k","call_id":"functions.read:0","name":"f","arguments":"{}"}]}`,
		"anthropic": `{"id":"r","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","content":[{"type":"tool_use","id":"functions.read:0","name":"f.g","input":{}},
			{"type":"tool_use","id":"LONG","name":"","input":{}},{"type":"tool_use","id":"functions.read:0","name":"f","input":{}}]}`,
		"google": `{"responseId":"r","modelVersion":"m","candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"id":"functions.read:0","name":"f g","args":{}}},
			{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"","name":"g"}},{"functionCall":{"id":"LONG","name":"f"}}]}}]}`,
	} {
		b, err := codecs[name].decode([]byte(strings.ReplaceAll(body, "LONG", long)))
		if err != nil {
			t.Fatal(err)
		}
		entries := append([]session.Entry{message("u", session.RoleUser, session.Text("go"))}, b.Entries...)
		calls := 0
		for _, c := range slices.Backward(b.Entries[0].Message.Content) {
			if c.ToolUse != nil {
				calls++
				entries = append(entries, message("r", session.RoleTool, session.ToolResult(c.ToolUse.ID, fmt.Sprint("result ", calls), false)))
			}
		}
		if calls < 2 {
			t.Fatalf("%s: %d calls", name, calls)
		}
		for to, codec := range codecs {
			m, err := codec.encode(entries)
			if err != nil {
				t.Fatal(err)
			}
			if faults := checks[to](m.Request(nil)); len(faults) > 0 {
				t.Errorf("%s as %s: %v in %s", name, to, faults, m.Request(nil))
			}
			if kept := strings.Contains(string(m.Request(nil)), `"functions.read:0"`); name == "chat" && to == "chat" && !kept {
				t.Errorf("the server does not get its id back: %s", m.Request(nil))
			}
		}
	}
}

// TestOddCallsAreKept: arguments and results that are not written as the provider
// asks are calls and results all the same, and are sent as it asks.
func TestOddCallsAreKept(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"chat":      `[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]`,
		"anthropic": `[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":{"said":"ok"}}]}]`,
	} {
		b, err := codecs[name].decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Entries) != 3 || b.Entries[1].Message.Content[0].ToolUse == nil || !strings.Contains(b.Entries[2].Message.Content[0].ToolResult.Content, "ok") {
			t.Errorf("%s: entries %+v", name, b.Entries)
			continue
		}
		for to, codec := range codecs {
			m, err := codec.encode(b.Entries)
			if err != nil {
				t.Fatal(err)
			}
			if request := m.Request(nil); len(checks[to](request)) > 0 || !strings.Contains(string(request), "ok") {
				t.Errorf("%s as %s: %v in %s", name, to, checks[to](request), request)
			}
		}
	}
}
