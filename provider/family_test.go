package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// TestFamiliesSayWhereTheyAreFrom: every line of the table has a date and a source.
func TestFamiliesSayWhereTheyAreFrom(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("models.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		lines++
		name, _, _ := strings.Cut(line, " ")
		for _, has := range []string{" date=2", " source=https://"} {
			if strings.Count(line, has) != 1 {
				t.Errorf("%s has no%s: %s", name, has, line)
			}
		}
		if f, ok := provider.FamilyOf(name); !ok || f.Name != name || f.Window == 0 {
			t.Errorf("%s is %+v", name, f)
		}
	}
	if lines < 50 {
		t.Errorf("there are %d lines", lines)
	}
}

func TestFamilyOf(t *testing.T) {
	t.Parallel()
	own, err := provider.ParseFamilies([]string{"# mine", "", "local like=gpt-5 window=5000 temperature=yes", "gpt-5.1 window=7", "acme/gpt-5 like=local"})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{
		"claude-opus-4-7": "claude-opus-4-7", "claude-opus-4-20250514": "claude-opus-4", "anthropic/claude-opus-4.6": "claude-opus-4-6",
		"claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "claude-sonnet-4@20250514": "claude-sonnet-4", "claude-opus-5-7": "claude-",
		"claude-opus-5-20260724": "claude-opus-5", "claude-quartz-1": "claude-", "gpt-5-mini-2025-08-07": "gpt-5", "gpt-5.1": "gpt-5.1", "gpt-5.9": "",
		"gpt-4o-mini": "gpt-4o", "gpt-4-0613": "gpt-4", "gpt-6": "", "o3-mini": "o3-mini", "o3-2025-04-16": "o3", "o30": "", "llama3.2": "", "": "",
		"gemini-2.5-flash-lite-preview": "gemini-2.5-flash-lite", "gemini-3-pro-preview-11-2025": "gemini-3-pro", "gemini-5-pro": "gemini-",
		"acme/gpt-5": "acme/gpt-5", "other/gpt-5": "gpt-5", "LOCAL": "local", "localhost": "",
	} {
		f, ok := provider.FamilyOf(model, own...)
		if f.Name != want || ok != (want != "") {
			t.Errorf("%s is of the family %q, want %q", model, f.Name, want)
		}
	}
	if f, _ := provider.FamilyOf("local", own...); f.Window != 5000 || !f.Temperature || !f.Encrypted || f.Thinking != provider.ThinkingEffort {
		t.Errorf("the own one is %+v", f)
	}
	if f, _ := provider.FamilyOf("gpt-5.1", own...); f.Window != 7 || f.Thinking != "" {
		t.Errorf("the own one does not count: %+v", f)
	}
	for _, wrong := range []string{"m like=nothing", "m temperature", "m temperature=perhaps", "m window=-1", "m thinking=hard", "m levels=low,loud", "m colour=red"} {
		if _, err := provider.ParseFamilies([]string{wrong}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// encodeFor writes a request as the client of a model does.
func encodeFor(t *testing.T, model string, r *provider.Request) string {
	t.Helper()
	var encoded *provider.Encoded
	var err error
	switch f, _ := provider.FamilyOf(model); {
	case strings.HasPrefix(model, "claude"):
		encoded, err = anthropic.EncodeRequest(r, model, f, 16384)
	case strings.HasPrefix(model, "gemini"):
		encoded, err = google.EncodeRequest(r, f)
	case strings.HasPrefix(model, "chat/"):
		encoded, err = openai.EncodeChatRequest(r, model[5:], f, nil)
	default:
		encoded, err = openai.EncodeResponsesRequest(r, model, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded.Body)
}

// TestWhatModelsAreSent: a level of thinking in the words of each family, or the nearest.
func TestWhatModelsAreSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ model, level, want string }{
		{"claude-sonnet-4-5", "high", `"thinking":{"type":"enabled","budget_tokens":8192}`},
		{"claude-opus-4-6", "xhigh", `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`},
		{"claude-opus-4-7", "xhigh", `"output_config":{"effort":"xhigh"}`},
		{"claude-opus-4-7", "minimal", `"output_config":{"effort":"low"}`},
		{"claude-opus-4-7", "off", ``},
		{"claude-sonnet-5", "off", `"thinking":{"type":"disabled"}`},
		{"claude-opus-5-5", "off", `"output_config":{"effort":"low"}`},
		{"claude-opus-9", "high", ``},
		{"gemini-2.5-pro", "off", `"thinkingConfig":{"thinkingBudget":128,`},
		{"gemini-2.5-flash", "off", `"thinkingConfig":{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "xhigh", `"thinkingBudget":24576,`},
		{"gemini-3-pro", "medium", `"thinkingConfig":{"thinkingLevel":"low","includeThoughts":true}`},
		{"gemini-3-flash-preview", "minimal", `"thinkingLevel":"minimal"`},
		{"gemini-9", "high", ``},
		{"o3", "off", `"reasoning":{"effort":"low","summary":"auto"}`},
		{"gpt-5", "off", `"reasoning":{"effort":"minimal","summary":"auto"}`},
		{"gpt-5", "xhigh", `"reasoning":{"effort":"high","summary":"auto"}`},
		{"gpt-5.2", "off", `"reasoning":{"effort":"none"}`},
		{"gpt-5.2", "minimal", `"reasoning":{"effort":"low","summary":"auto"}`},
		{"gpt-4o", "high", ``},
		{"gpt-7", "high", ``},
		{"chat/gpt-5.1", "low", `"reasoning_effort":"low"`},
		{"chat/gpt-5.6", "", `"reasoning_effort":"none"`},
		{"chat/claude-opus-4-6", "high", ``},
	} {
		warm := 0.5
		r := &provider.Request{Entries: []session.Entry{message("u", session.RoleUser, session.Text("go"))}, Thinking: c.level, Temperature: &warm, Tools: []provider.Tool{{Name: "look"}}}
		got := encodeFor(t, c.model, r)
		asks := strings.Contains(got, `"thinking`) || strings.Contains(got, `"reasoning":`) || strings.Contains(got, `"reasoning_effort`) || strings.Contains(got, "output_config")
		if !strings.Contains(got, c.want) || c.want == "" && asks {
			t.Errorf("%s, %s: want %s in %s", c.model, c.level, c.want, got)
		}
		if f, _ := provider.FamilyOf(c.model); strings.Contains(got, `"temperature":0.5`) && !f.Temperature {
			t.Errorf("%s gets a temperature: %s", c.model, got)
		}
	}
}

// TestUnknownModelsAreSentTheLeast: besides the conversation and the tools there is only what an
// API cannot do without.
func TestUnknownModelsAreSentTheLeast(t *testing.T) {
	t.Parallel()
	warm := 0.5
	r := &provider.Request{
		Entries:  []session.Entry{message("u", session.RoleUser, session.Text("go"))},
		Thinking: provider.ThinkingHigh, Temperature: &warm, Session: "s-1", Tools: []provider.Tool{{Name: "look"}},
	}
	for model, want := range map[string]string{
		"m": "model stream store tools input", "chat/m": "model stream stream_options tools messages", "gemini-99": "tools contents",
		"claude-": "model max_tokens stream tools messages",
	} {
		body := encodeFor(t, model, r)
		var names []string
		for _, f := range rawjson.MembersOf([]byte(body)) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s is sent %s, want %s", model, got, want)
		}
	}
	f := provider.Family{}
	encoded, err := anthropic.EncodeRequest(r, "m", f, 100)
	if err != nil || bytes.Contains(encoded.Body, []byte("cache_control")) || len(encoded.Notes) != 2 {
		t.Errorf("%s, %v, %v", encoded.Body, encoded.Notes, err)
	}
}

// TestCacheMarks: marks that a conversation came with do not count against ours.
func TestCacheMarks(t *testing.T) {
	t.Parallel()
	mark := `,"cache_control":{"type":"ephemeral"}`
	var list []string
	for range 6 {
		list = append(list, `{"role":"user","content":[{"type":"text","text":"q"`+mark+`}]},{"role":"assistant","content":[{"type":"text","text":"a"`+mark+`}]}`)
	}
	list = append(list, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"`+mark+`}]`+mark+`}]}`)
	b, err := anthropic.Decode(json.RawMessage(`{"system":[{"type":"text","text":"s"` + mark + `}],"messages":[` + strings.Join(list, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	body := encodeFor(t, "claude-sonnet-4-5", &provider.Request{Entries: b.Entries, Tools: []provider.Tool{{Name: "look"}}})
	if n := strings.Count(body, "cache_control"); n != 3 {
		t.Errorf("%d marks: %s", n, body)
	}
	whole, err := anthropic.EncodeVerbatim(b.Entries)
	if err != nil || bytes.Count(whole.Request(nil), []byte("cache_control")) != 15 {
		t.Errorf("a file loses marks: %s, %v", whole.Request(nil), err)
	}
}

// TestLongCacheKey: a key has at most 64 characters, and differs if the session does.
func TestLongCacheKey(t *testing.T) {
	t.Parallel()
	keys := make(map[string]bool)
	for _, id := range []string{strings.Repeat("s", 64), strings.Repeat("s", 65), strings.Repeat("s", 66)} {
		r := &provider.Request{Entries: []session.Entry{message("u", session.RoleUser, session.Text("go"))}, Session: id}
		for _, f := range rawjson.MembersOf([]byte(encodeFor(t, "gpt-5", r))) {
			var key string
			if f.Name == "prompt_cache_key" && json.Unmarshal(f.Value, &key) == nil {
				keys[key] = true
				if len(key) != 64 || len(id) == 64 && key != id {
					t.Errorf("the key of %s is %s", id, key)
				}
			}
		}
	}
	if len(keys) != 3 {
		t.Errorf("the keys are %v", keys)
	}
}

// TestReasoningWithoutContent: reasoning that cannot be sent back is left out, and what follows
// it no longer refers to what the provider has forgotten.
func TestReasoningWithoutContent(t *testing.T) {
	t.Parallel()
	const answer = `{"id":"r","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]},` +
		`{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"{}"}]}`
	b, err := openai.DecodeResponses([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	entries := append([]session.Entry{message("u", session.RoleUser, session.Text("go"))}, b.Entries...)
	body := encodeFor(t, "gpt-5", &provider.Request{Entries: append(entries, message("r", session.RoleTool, session.ToolResult("c1", "ok", false)))})
	if strings.Contains(body, "rs_1") || strings.Contains(body, "fc_1") || !strings.Contains(body, `"c1"`) || !strings.Contains(body, `"include":["reasoning.encrypted_content"]`) {
		t.Error(body)
	}
}
