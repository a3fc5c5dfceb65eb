package conversation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

func TestConversationSystem(t *testing.T) {
	t.Parallel()
	m := newManager(t, t.TempDir(), 100)
	c := newSystem(t, m)
	// Before the first message there is nothing, and nothing is made.
	if c.ID() != "" || len(must(c.View())(t).Entries) != 0 || len(must(c.Request())(t).Entries) != 0 || len(must(c.Conversation())(t).Messages) != 0 {
		t.Error("there is something in a new conversation")
	}
	if list := must(m.ListSessions(0, 0))(t); len(list) != 0 {
		t.Errorf("%v", list)
	}
	do(t, c.SetTitle("Gardening"))
	c.SetSystemPrompt("be brief")
	must(c.PrepareConversation("hello"))(t)
	if prompt, sent := c.SystemPrompt(); prompt != "be brief" || !sent {
		t.Errorf("%q, %v", prompt, sent)
	}
	must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("hi"), session.ToolUse("a", "ls", nil)}, Model: "m", Provider: "p", StopReason: "tool_use", Usage: &session.Usage{Output: 9}}))(t)
	must(c.AddActionResult("a", "a file", true))(t)
	must(c.AddContext("spec.md", "the specification"))(t)
	must(c.PrepareConversation("more"))(t)
	want := `[{"role":"system","content":"be brief"},{"role":"user","content":"hello"},
		{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"a file"},
		{"role":"system","content":"<context source=\"spec.md\">\nthe specification\n</context>"},{"role":"user","content":"more"}]`
	if got := string(must(json.Marshal(must(c.History())(t)))(t)); !sameJSON(t, got, want) {
		t.Error(got)
	}
	all := must(c.Conversation())(t)
	if all.Metadata["title"] != "Gardening" || all.ID != c.ID() {
		t.Errorf("%v", all.Metadata)
	}
	var categories []conversation.Category
	for _, msg := range all.Messages {
		categories = append(categories, msg.Category)
		if msg.Tokens != nil {
			t.Errorf("%q: an estimate of %d is stored as a count", msg.Text(), *msg.Tokens)
		}
	}
	if diff := cmp.Diff([]conversation.Category{1, 3, 3, 4, 2, 3}, categories); diff != "" {
		t.Error(diff)
	}
	if r := all.Messages[2]; r.Model != "m" || r.Provider != "p" || r.StopReason != "tool_use" || r.Usage.Output != 9 {
		t.Errorf("%+v", r)
	}
	request := must(c.Request())(t)
	if request.Conversation != c.ID() || request.Session != c.ID() || len(request.Messages()) != 6 || len(must(request.History())(t)) != 6 {
		t.Errorf("%+v", request)
	}
	do(t, c.Save())
	// Loaded again, the instructions are not sent again; changed, they are.
	other := newSystem(t, m)
	other.SetSystemPrompt("be brief")
	do(t, other.Load(c.ID()))
	must(other.PrepareConversation("again"))(t)
	other.SetSystemPrompt("be long")
	must(other.PrepareConversation("and again"))(t)
	said := texts(must(other.Conversation())(t).Messages)
	if n := strings.Count(strings.Join(said, "|"), "be brief"); n != 1 || !slices.Contains(said, "system: be long") {
		t.Errorf("%v", said)
	}
	// The first one sees what the other has said.
	if got := entryTexts(must(c.View())(t).Entries); got[len(got)-1] != "user: and again" {
		t.Errorf("%v", got)
	}
	do(t, c.SetTitle("Another"))
	if title := must(c.Conversation())(t).Metadata["title"]; title != "Another" {
		t.Errorf("%v", title)
	}
	id := c.ID()
	c.Reset()
	must(c.PrepareConversation("new"))(t)
	if c.ID() == id || len(must(c.Conversation())(t).Messages) != 2 {
		t.Errorf("%v", texts(must(c.Conversation())(t).Messages))
	}
}

func TestConversationSystemRefuses(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	c := newSystem(t, m)
	for name, f := range map[string]func() error{
		"no role":        func() error { _, err := c.AddMessage("", "x", 0, nil); return err },
		"bad content":    func() error { _, err := c.AddMessage("user", func() {}, 0, nil); return err },
		"no call":        func() error { _, err := c.AddActionResult("", "x", false); return err },
		"a bad category": func() error { _, err := c.AddMessage("user", "x", 12, nil); return err },
	} {
		t.Run(name, func(t *testing.T) { wantError(t, f(), session.ErrInvalid) })
	}
	wantError(t, c.Load("missing"), session.ErrNotExist)
	_, err := c.PrepareConversation("x", filepath.Join(t.TempDir(), "missing.png"))
	wantError(t, err, os.ErrNotExist)
	_, err = c.RecallImage("image:x#0123456789abcdef")
	wantError(t, err, session.ErrNotExist)
	must(c.AddUserMessage("x"))(t)
	_, err = c.RecallImage("image:x#0123456789abcdef")
	wantError(t, err, session.ErrNotExist)
	if list := must(m.ListSessions(0, 0))(t); len(list) != 1 {
		t.Errorf("what was refused made sessions: %d", len(list))
	}
}

func TestImagesOfAPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		do(t, os.WriteFile(p, data, 0o600))
		return p
	}
	c := newSystem(t, newManager(t, "", 100))
	m := must(c.PrepareConversation("", path("b.png", pixel(1)), path("c.png", pixel(2))))(t)
	if len(m.Content) != 2 || m.Content[0].Image == nil {
		t.Errorf("%+v", m.Content)
	}
}

// The budgets are 10, 35, 50 and 5 %, and what comes first is trimmed first.
func TestContextWindowManager(t *testing.T) {
	t.Parallel()
	w := conversation.NewWindow(nil)
	if o := w.Options(); o.Budget.Tokens != window.DefaultWindow || o.Budget.Strict || window.DefaultShares != (window.Shares{System: 10, Context: 35, Dialog: 50, SystemOutput: 5}) {
		t.Errorf("%+v", o.Budget)
	}
	do(t, w.SetBudget(window.Budget{Tokens: 1000, Strict: true}))
	s := conversation.NewSession().AddMessage(systemMessage("be brief")).AddMessage(contextMessage("the specification"))
	for i := range 40 {
		s = s.AddMessage(user(fmt.Sprintf("question %d %s", i, strings.Repeat("and more ", 10)))).AddMessage(call(fmt.Sprint(i))).
			AddMessage(result(fmt.Sprint(i), strings.Repeat("output ", 20))).AddMessage(assistant(fmt.Sprint("answer ", i)))
	}
	trimmed, report, err := w.Trim(s)
	do(t, err)
	got := texts(trimmed.Messages)
	if got[0] != "system: be brief" || got[1] != "system: the specification" || got[len(got)-1] != "assistant: answer 39" {
		t.Errorf("%v", got)
	}
	if report.Tokens > 1000 || trimmed.ID != s.ID || s.MessageCount() != 162 {
		t.Errorf("%d tokens, %d messages", report.Tokens, s.MessageCount())
	}
	usage := must(w.Usage(s))(t)
	if diff := cmp.Diff(report, usage); diff != "" {
		t.Error(diff)
	}
	wantError(t, w.SetBudget(window.Budget{Tokens: -1}), session.ErrInvalid)
	if w.Options().Budget.Tokens != 1000 {
		t.Error("a bad budget is in force")
	}
	do(t, w.SetImages(window.AllImages))
	if w.Options().Images != window.AllImages {
		t.Error("the number of images is not in force")
	}
}

// words counts words.
type words struct{}

func (words) Name() string              { return "words" }
func (words) CountText(text string) int { return len(strings.Fields(text)) }

// The model's capabilities reach the window, also when the model is changed in
// the middle of a conversation.
func TestChangeOfModel(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := conversation.NewWindow(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	do(t, w.SetModel(conversation.Capabilities{Provider: "anthropic", Model: "claude", ContextWindow: 1_000_000, MaxReply: 1000}))
	c := conversation.NewChat(newManager(t, "", 10), w)
	for i := range 30 {
		must(c.AddUserMessage(fmt.Sprint("question ", i, strings.Repeat(" word", 50))))(t)
		must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("answer")}}))(t)
	}
	whole := must(c.View())(t)
	if len(whole.Entries) != 60 || whole.Report.Room != 999_000 {
		t.Errorf("%d entries, %+v", len(whole.Entries), whole.Report)
	}
	do(t, w.SetModel(conversation.Capabilities{Provider: "openai", Model: "gpt", ContextWindow: 1000, MaxRequestBytes: 1 << 20, Counter: words{}}))
	v := must(c.View())(t)
	if len(v.Entries) >= 60 || v.Report.Tokens > 1000 || v.Report.Counter != "words" || v.Report.ByteRoom != 1<<20 {
		t.Errorf("%d entries, %+v", len(v.Entries), v.Report)
	}
	if n := w.CountTokens(user("one two three")); n < 3 || n > 10 {
		t.Errorf("%d tokens", n)
	}
	do(t, w.SetModel(conversation.Capabilities{}))
	if w.Options().Budget.Tokens != window.DefaultWindow {
		t.Errorf("%+v", w.Options().Budget)
	}
	for _, want := range []string{"token counter chosen", "estimate", "counter=words", "provider=anthropic", "provider=openai"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
	if len(must(c.Conversation())(t).Messages) != 60 {
		t.Error("something was lost")
	}
}

// Of a long chain only the end is read to build a request.
func TestViewReadsWhatItNeeds(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := newManagerOn(t, st, 10)
	id := say(t, m, "", systemMessage("be brief"))
	for i := range 100 {
		say(t, m, id, user(fmt.Sprint("question ", i, strings.Repeat(" word", 100))), assistant("answer"))
	}
	fresh := newManagerOn(t, st, 10)
	c := conversation.NewChat(fresh, small(t, 2000))
	do(t, c.Load(id))
	v := must(c.View())(t)
	got := entryTexts(v.Entries)
	if got[0] != "system: be brief" || got[len(got)-1] != "assistant: answer" || v.Report.Tokens > 2000 || len(got) < 6 {
		t.Errorf("%d tokens: %v", v.Report.Tokens, got)
	}
	if n, all := len(inMemory(fresh)), len(must(m.Conversation(id))(t).Links); n > all/4 {
		t.Errorf("%d of %d sessions were read", n, all)
	}
}

// A call that was never answered is given a result that says so; one that comes
// late takes its place.
func TestInterruptedCall(t *testing.T) {
	t.Parallel()
	c := newSystem(t, newManager(t, "", 100))
	must(c.AddUserMessage("1"))(t)
	must(c.Add(call("a")))(t)
	must(c.View())(t)
	must(c.AddUserMessage("2"))(t)
	got := entryTexts(must(c.View())(t).Entries)
	if diff := cmp.Diff([]string{"user: 1", "assistant: call a", "tool: result a", "user: 2"}, got); diff != "" {
		t.Error(diff)
	}
	must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("3")}}))(t)
	must(c.AddActionResult("a", "late", false))(t)
	v := must(c.View())(t)
	if r := v.Entries[2].Message.Content[0].ToolResult; r == nil || r.Content != "late" {
		t.Errorf("%v", entryTexts(v.Entries))
	}
	if len(v.Entries) != 5 {
		t.Errorf("%v", entryTexts(v.Entries))
	}
}
