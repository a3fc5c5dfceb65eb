package conversation_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

func TestNewMessage(t *testing.T) {
	t.Parallel()
	before := time.Now()
	m := must(conversation.NewMessage("user", "hello", conversation.CategoryDialog))(t)
	if m.ID == "" || m.Timestamp.Before(before) || m.Text() != "hello" || m.Tokens != nil {
		t.Errorf("%+v", m)
	}
	if other := must(conversation.NewMessage("user", "hello", 0))(t); other.ID == m.ID || other.Category != conversation.CategoryDialog {
		t.Errorf("%+v", other)
	}
	for name, f := range map[string]func() error{
		"no role":     func() error { _, err := conversation.NewMessage("", "x", 0); return err },
		"no category": func() error { _, err := conversation.NewMessage("user", "x", 9); return err },
		"no JSON":     func() error { _, err := conversation.NewMessage("user", math.NaN(), 0); return err },
		"negative": func() error {
			n := -1
			m.Tokens = &n
			return m.Validate()
		},
		"nothing": func() error { return conversation.Message{}.Validate() },
	} {
		t.Run(name, func(t *testing.T) { wantError(t, f(), session.ErrInvalid) })
	}
}

func TestCategories(t *testing.T) {
	t.Parallel()
	for want, c := range []conversation.Category{
		conversation.CategorySystem, conversation.CategoryContext, conversation.CategoryDialog, conversation.CategorySystemOutput,
	} {
		if int(c) != want+1 {
			t.Errorf("%v is %d, want %d", c, int(c), want+1)
		}
		if got := must(conversation.ParseCategory(c.String()))(t); got != c {
			t.Errorf("%v is read as %v", c, got)
		}
	}
	if got := must(conversation.ParseCategory("ACTIONS"))(t); got != conversation.CategorySystemOutput {
		t.Errorf("ACTIONS is %v", got)
	}
	_, err := conversation.ParseCategory("NONE")
	wantError(t, err, session.ErrInvalid)
}

func TestCategorise(t *testing.T) {
	t.Parallel()
	tests := []struct {
		role, text string
		want       conversation.Category
	}{
		{"system", "the prompt", conversation.CategorySystem},
		{"system", "Action executed: ls", conversation.CategorySystemOutput},
		{"system", "Result: 4", conversation.CategorySystemOutput},
		{"system", "a specification", conversation.CategorySystem},
		{"user", "the prompt", conversation.CategoryDialog},
		{"assistant", "result: 4", conversation.CategoryDialog},
		{"tool", "4", conversation.CategorySystemOutput},
		{"bashExecution", "ls", conversation.CategorySystemOutput},
		{"compactionSummary", "so far", conversation.CategoryContext},
		{"somebody", "x", conversation.CategoryDialog},
	}
	for _, tt := range tests {
		if got := conversation.Categorise(tt.role, []session.Content{session.Text(tt.text)}, "the prompt"); got != tt.want {
			t.Errorf("%s: %q is %v, want %v", tt.role, tt.text, got, tt.want)
		}
	}
	if got := conversation.Categorise("user", []session.Content{session.ToolResult("a", "x", false)}, ""); got != conversation.CategorySystemOutput {
		t.Errorf("a result that the user brings is %v", got)
	}
}

func TestParseContent(t *testing.T) {
	t.Parallel()
	image := session.Image("image/png", "aGk=")
	source := func(s session.Source) session.Content {
		return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: &s}}
	}
	tests := []struct {
		name string
		in   any
		want []session.Content
	}{
		{"nothing", nil, nil},
		{"text", "hello", []session.Content{session.Text("hello")}},
		{"a block", image, []session.Content{image}},
		{"blocks", []session.Content{image}, []session.Content{image}},
		{"raw JSON", json.RawMessage(`"hi"`), []session.Content{session.Text("hi")}},
		{"a list with text and null", []any{"a", nil, map[string]any{"type": "text", "text": "b"}}, []session.Content{session.Text("a"), session.Text("b")}},
		{"our own shape", []any{map[string]any{"type": "text", "text": map[string]any{"content": "b"}}}, []session.Content{session.Text("b")}},
		{
			"an image_url with data",
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,aGk="}},
			[]session.Content{image},
		},
		{"a bare image_url", json.RawMessage(`{"type":"image_url","image_url":"https://x/y.png"}`), []session.Content{source(session.Source{Type: "url", Data: "https://x/y.png"})}},
		{
			"an image with a source", json.RawMessage(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`),
			[]session.Content{image},
		},
		{"an image with an address", json.RawMessage(`{"type":"image","source":{"type":"url","url":"https://x"}}`), []session.Content{source(session.Source{Type: "url", Data: "https://x"})}},
		{
			"audio", json.RawMessage(`{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}`),
			[]session.Content{{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: &session.Source{Type: "base64", MediaType: "audio/wav", Data: "aGk="}}}},
		},
		{
			"a file", json.RawMessage(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,aGk="}}`),
			[]session.Content{{Type: session.ContentTypeFile, File: &session.FileContent{Name: "a.pdf", Source: &session.Source{Type: "base64", MediaType: "application/pdf", Data: "aGk="}}}},
		},
		{"a call", json.RawMessage(`{"type":"tool_use","id":"a","name":"ls","input":{"x":"y"}}`), []session.Content{session.ToolUse("a", "ls", map[string]any{"x": "y"})}},
		{"a result", json.RawMessage(`{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true}`), []session.Content{session.ToolResult("a", "x", true)}},
		{"an empty result", json.RawMessage(`{"type":"tool_result","tool_use_id":"a"}`), []session.Content{session.ToolResult("a", "", false)}},
		{
			"thinking", json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"s"}`),
			[]session.Content{{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "s"}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := must(conversation.ParseContent(tt.in))(t)
			for i := range got {
				got[i].Extra = nil // how it was written, for those who write it again
			}
			if diff := cmp.Diff(encoded(t, tt.want), encoded(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a result with parts", func(t *testing.T) {
		got := must(conversation.ParseContent(json.RawMessage(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://x"}}]}`)))(t)
		if r := got[0].ToolResult; r == nil || r.Content != "x" || len(r.Parts) != 2 || r.Parts[1].Image == nil {
			t.Errorf("%+v", got)
		}
	})
	// What is not known is kept.
	for _, raw := range []string{
		`{"type":"hologram","beam":[1,2]}`, `{"type":"image_url","image_url":{}}`, `{"type":"image_url"}`, `{"type":"thinking","thinking":5}`,
		`{"type":"tool_use"}`, `{"type":"input_audio"}`,
	} {
		got := must(conversation.ParseContent(json.RawMessage(raw)))(t)
		if e := encoded(t, got); len(e) != 1 || !sameJSON(t, e[0], raw) {
			t.Errorf("%s became %s", raw, e)
		}
	}
	extra := must(conversation.ParseContent(json.RawMessage(`{"type":"image_url","cache":true,"image_url":{"url":"https://x","detail":"high"}}`)))(t)
	again := must(conversation.Message{Role: "user", Content: extra}.APIFormat())(t)
	if !sameJSON(t, string(again[0]), `{"role":"user","content":[{"type":"image_url","cache":true,"image_url":{"url":"https://x","detail":"high"}}]}`) {
		t.Errorf("%s", again)
	}
	_, err := conversation.ParseContent(json.RawMessage(`{`))
	wantError(t, err, session.ErrInvalid)
}

// An integer that a float64 cannot hold is some chat's id, and must stay it.
func TestParseContentKeepsLargeIntegers(t *testing.T) {
	t.Parallel()
	const id = "123456789012345678"
	for _, raw := range []string{
		`{"type":"tool_use","id":"a","name":"send","input":{"chat_id":` + id + `}}`,
		`{"type":"tool_use","tool_use":{"id":"a","name":"send","input":{"chat_id":` + id + `}}}`,
	} {
		m := must(conversation.NewMessage("assistant", json.RawMessage(raw), 0))(t)
		st := memory.New(nil)
		where := say(t, newManagerOn(t, st, 100), "", m)
		loaded := must(newManagerOn(t, st, 100).LoadSession(where))(t)
		back := must(conversation.SessionFromDict(must(loaded.Dict())(t)))(t)
		for _, s := range []conversation.Session{loaded, back} {
			if got := string(must(json.Marshal(s))(t)); !strings.Contains(got, id) {
				t.Errorf("%s became %s", raw, got)
			}
		}
	}
}

func encoded(t testing.TB, blocks []session.Content) []string {
	t.Helper()
	var all []string
	for _, b := range blocks {
		all = append(all, string(must(json.Marshal(b))(t)))
	}
	return all
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var x, y any
	do(t, json.Unmarshal([]byte(a), &x))
	do(t, json.Unmarshal([]byte(b), &y))
	return cmp.Equal(x, y)
}

// everything has one block of each kind.
func everything() conversation.Message {
	tokens := 7
	return conversation.Message{
		ID: "m", Role: "assistant", Category: conversation.CategoryDialog, Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		Metadata: map[string]any{"mood": "good"}, Tokens: &tokens,
		Model: "m1", Provider: "p", StopReason: "end", ResponseID: "r", Usage: &session.Usage{Output: 3},
		Content: []session.Content{
			session.Text("hello"), session.Image("image/png", "aGk="), session.ToolUse("a", "ls", map[string]any{"x": "y"}), session.ToolResult("a", "out", true),
			{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: &session.Source{Type: "base64", MediaType: "audio/wav", Data: "aGk="}}},
			{Type: session.ContentTypeFile, File: &session.FileContent{Name: "f", Source: &session.Source{Type: "url", Data: "https://x"}}},
			{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}},
			{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram","beam":1}`)},
			{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{ToolUseID: "b", Content: "x", Parts: []session.Content{session.Text("x"), session.Image("image/png", "aGk=")}}},
		},
		Extra: session.Fields{{Name: "agent_id", Value: json.RawMessage(`"a"`)}},
	}
}

func TestMessageDict(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]conversation.Message{"everything": everything(), "text": user("hello").Clone(), "nothing": {Role: "assistant", Category: 3}} {
		if m.ID == "" {
			m.ID, m.Timestamp, m.Category = "x", everything().Timestamp, conversation.CategoryDialog
		}
		d := must(m.Dict())(t)
		back := must(conversation.MessageFromDict(d))(t)
		if a, b := must(json.Marshal(m))(t), must(json.Marshal(back))(t); !sameJSON(t, string(a), string(b)) {
			t.Errorf("%s:\n%s\n%s", name, a, b)
		}
	}
	for name, bad := range map[string]map[string]any{
		"no role":      {"content": "x"},
		"a bad time":   {"role": "user", "timestamp": "yesterday"},
		"an odd time":  {"role": "user", "timestamp": 5},
		"odd tokens":   {"role": "user", "tokens": "many"},
		"no JSON":      {"role": "user", "content": math.NaN()},
		"less tokens":  {"role": "user", "tokens": -1},
		"odd metadata": {"role": "user", "metadata": []any{}},
	} {
		if _, err := conversation.MessageFromDict(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	m := must(conversation.MessageFromDict(map[string]any{"role": "user", "content": nil, "category": "ERROR", "timestamp": "2026-01-02T03:04:05.678"}))(t)
	if m.Category != conversation.CategoryDialog || m.ID == "" || !m.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.Local)) {
		t.Errorf("%+v", m)
	}
}

// A member whose name only looks like one of ours is not ours.
func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	var m conversation.Message
	do(t, json.Unmarshal([]byte(`{"role":"user","Content":"x","Role":"y"}`), &m))
	if m.Role != "user" || len(m.Content) != 0 || len(m.Extra) != 2 {
		t.Errorf("%+v", m)
	}
}

// What a model API is sent fits that API, tools and images included.
func TestAPIFormat(t *testing.T) {
	t.Parallel()
	calls := conversation.Message{Role: "assistant", Content: []session.Content{
		session.Text("looking"), session.ToolUse("a", "ls", map[string]any{"x": "y"}), session.ToolUse("b", "ls", nil),
	}}
	results := conversation.Message{Role: "tool", Content: []session.Content{session.ToolResult("a", "out", true), session.ToolResult("b", "", false)}}
	picture := conversation.Message{Role: "user", Content: must(conversation.ParseContent(json.RawMessage(
		`[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==","detail":"low"}}]`)))(t)}
	s := conversation.Session{Messages: []conversation.Message{user("hi"), calls, results, picture}}
	for _, tt := range []struct {
		name, want string
		got        any
	}{
		{"text", `[{"role":"user","content":"hi"}]`, must(user("hi").APIFormat())(t)},
		{
			"everything", `[{"role":"user","content":"hi"},
			{"role":"assistant","content":"looking","tool_calls":[
				{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"x\":\"y\"}"}},
				{"id":"b","type":"function","function":{"name":"ls","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"a","content":"out"},{"role":"tool","tool_call_id":"b","content":""},
			{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==","detail":"low"}}]}]`,
			must(s.FormattedHistory())(t),
		},
	} {
		if got := string(must(json.Marshal(tt.got))(t)); !sameJSON(t, got, tt.want) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	if n := len(must(everything().APIFormat())(t)); n == 0 {
		t.Error("nothing is left of everything")
	}
}

// Each provider is sent its own shape.
func TestRequestEncode(t *testing.T) {
	t.Parallel()
	c := newSystem(t, newManager(t, "", 100))
	c.SetSystemPrompt("be brief")
	must(c.PrepareConversation("hello"))(t)
	must(c.Add(call("a")))(t)
	must(c.AddActionResult("a", "found", false))(t)
	r := must(c.Request())(t)
	for format, want := range map[conversation.Format]string{
		conversation.FormatOf("openai"):    `"tool_calls"`,
		conversation.FormatOf("some"):      `"tool_calls"`,
		conversation.FormatResponses:       `"function_call_output"`,
		conversation.FormatOf("anthropic"): `"tool_use_id"`,
		conversation.FormatOf("google"):    `"functionResponse"`,
		conversation.FormatOf("bedrock"):   `"tool_calls"`,
	} {
		request := string(must(r.Encode(format))(t).Request(nil))
		if !strings.Contains(request, want) || !strings.Contains(request, "be brief") {
			t.Errorf("%s: %s", format, request)
		}
	}
	_, err := r.Encode("telex")
	wantError(t, err, session.ErrInvalid)
}

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	short, long := user("12345678").EstimateTokens(), user(strings.Repeat("some more words ", 100)).EstimateTokens()
	if short < 2 || short > 20 || long < 200 || long > 800 {
		t.Errorf("%d and %d", short, long)
	}
	if got := everything().EstimateTokens(); got < 500 {
		t.Errorf("%d for images, audio and a file", got)
	}
	counted := user("12345678")
	n := 1000
	counted.Tokens = &n
	if got := counted.EstimateTokens(); got != short {
		t.Errorf("an estimate of %d that goes by the count", got)
	}
}

func TestMessageCloneSharesNothing(t *testing.T) {
	t.Parallel()
	m := everything()
	before := must(json.Marshal(m))(t)
	c := m.Clone()
	c.Content[0].Text.Content, c.Content[2].ToolUse.Input["x"], c.Metadata["mood"], *c.Tokens = "changed", "changed", "changed", 9
	c.Content[1].Image.Source.Data = "changed"
	c.Content = append(c.Content[:1], session.Text("changed"))
	if after := must(json.Marshal(m))(t); !slices.Equal(before, after) {
		t.Errorf("the copy changed the original:\n%s\n%s", before, after)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	s := conversation.NewSession()
	if s.ID == "" || s.CreatedAt.IsZero() || s.LastActive.IsZero() || s.Metadata == nil || s.MessageCount() != 0 || s.TotalTokens() != 0 {
		t.Errorf("%+v", s)
	}
	one := s.AddMessage(user("1"))
	two, other := one.AddMessage(assistant("2")), one.AddMessage(systemMessage("other"))
	if s.MessageCount() != 0 || one.MessageCount() != 1 || two.Messages[1].Text() != "2" || other.Messages[1].Text() != "other" {
		t.Error("adding a message changed the session it was added to")
	}
	if two.Messages[1].ID == "" || two.Messages[1].Category != conversation.CategoryDialog {
		t.Errorf("%+v", two.Messages[1])
	}
	if got := texts(other.MessagesByCategory(conversation.CategorySystem)); !slices.Equal(got, []string{"system: other"}) {
		t.Errorf("%v", got)
	}
	if got := string(must(json.Marshal(must(two.FormattedHistory())(t)))(t)); !sameJSON(t, got, `[{"role":"user","content":"1"},{"role":"assistant","content":"2"}]`) {
		t.Error(got)
	}
	n := 40
	two.Messages[0].Tokens = &n
	if got, want := two.TotalTokens(), 40+two.Messages[1].EstimateTokens(); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	back := must(conversation.SessionFromDict(must(two.Dict())(t)))(t)
	if a, b := must(json.Marshal(two))(t), must(json.Marshal(back))(t); !sameJSON(t, string(a), string(b)) {
		t.Errorf("\n%s\n%s", a, b)
	}
	clone := two.Clone()
	clone.Messages[0].Content[0].Text.Content = "changed"
	clone.Metadata["x"] = "y"
	if two.Messages[0].Text() != "1" || two.Metadata["x"] != nil {
		t.Error("the copy changed the original")
	}
}

func TestSessionValidate(t *testing.T) {
	t.Parallel()
	good := conversation.NewSession().AddMessage(user("1"))
	do(t, good.Validate())
	for name, f := range map[string]func(*conversation.Session){
		"no id":       func(s *conversation.Session) { s.ID = "" },
		"a path":      func(s *conversation.Session) { s.ID = "a/b" },
		"no time":     func(s *conversation.Session) { s.CreatedAt = time.Time{} },
		"no role":     func(s *conversation.Session) { s.Messages[0].Role = "" },
		"an id twice": func(s *conversation.Session) { s.Messages = append(s.Messages, s.Messages[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			s := good.Clone()
			f(&s)
			wantError(t, s.Validate(), session.ErrInvalid)
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &conversation.Session{}); err == nil {
				t.Errorf("%s is accepted", raw)
			}
		})
	}
	for _, raw := range []string{`[]`, `{"id":5}`, `{"id":"a"}`, `{"id":"a","created_at":"x","last_active":"x"}`} {
		if err := json.Unmarshal([]byte(raw), &conversation.Session{}); err == nil {
			t.Errorf("%s is accepted", raw)
		}
	}
}

func FuzzSessionJSON(f *testing.F) {
	f.Add([]byte(`{"id":"s","created_at":"2026-01-01T00:00:00Z","last_active":"2026-01-01T00:00:00","metadata":{"a":1},"x":2,
		"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},"x"],"category":"ACTIONS","id":"m","timestamp":"2026-01-01T00:00:00.5","tokens":0,"y":3}]}`))
	f.Add([]byte(`{"messages":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s conversation.Session
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		do(t, s.Validate())
		written, err := json.Marshal(s)
		do(t, err)
		var back conversation.Session
		do(t, json.Unmarshal(written, &back))
		again, err := json.Marshal(back)
		do(t, err)
		if string(written) != string(again) {
			t.Errorf("written, read and written again:\n%s\n%s", written, again)
		}
	})
}

func FuzzParseContent(f *testing.F) {
	for _, seed := range []string{
		`"x"`, `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]`, `{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`,
		`{"type":"thinking","thinking":"x"}`, `{"type":"image","source":{"type":"url","url":"x"}}`, `null`, `5`, `[[]]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		blocks, err := conversation.ParseContent(json.RawMessage(raw))
		if err != nil {
			wantError(t, err, session.ErrInvalid)
			return
		}
		m := conversation.Message{Role: "user", Content: blocks}
		_, _ = m.APIFormat()
		m.EstimateTokens()
		_ = m.Clone()
	})
}
