package conversation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

// A change deep inside of the metadata is stored, and what is handed out changes
// nothing that is kept.
func TestNestedMetadataIsNobodyElses(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := newManagerOn(t, st, 100)
	names := []string{"rose"}
	s := must(m.CreateSession(""))(t)
	s.Metadata["project"] = map[string]any{"name": "old", "beds": []any{map[string]any{"n": "1"}}, "plants": names}
	s = s.AddMessage(conversation.Message{Role: "user", Content: []session.Content{session.Text("hi")}, Metadata: map[string]any{"plants": names}})
	must(m.SaveSession(s))(t)

	project := func(s conversation.Session) map[string]any { return s.Metadata["project"].(map[string]any) }
	loaded := must(m.LoadSession(s.ID))(t)
	project(loaded)["name"] = "new"
	project(loaded)["beds"].([]any)[0].(map[string]any)["n"] = "2"
	names[0] = "thistle"
	if got := project(must(m.LoadSession(s.ID))(t)); got["name"] != "old" || got["beds"].([]any)[0].(map[string]any)["n"] != "1" {
		t.Errorf("a handed-out session changed what is kept: %v", got)
	}
	if saved := must(m.SaveSession(loaded))(t); !saved {
		t.Error("nothing was saved")
	}
	for name, m := range map[string]*conversation.Sessions{"in memory": m, "reopened": newManagerOn(t, st, 100)} {
		got := must(m.LoadSession(s.ID))(t)
		if p := project(got); p["name"] != "new" || p["beds"].([]any)[0].(map[string]any)["n"] != "2" || fmt.Sprint(p["plants"]) != "[rose]" {
			t.Errorf("%s: %v", name, p)
		}
		if plants := got.Messages[0].Metadata["plants"]; fmt.Sprint(plants) != "[rose]" {
			t.Errorf("%s: the message has %v", name, plants)
		}
	}
	clone := loaded.Clone()
	project(clone)["name"] = "mine"
	if project(loaded)["name"] != "new" {
		t.Error("a clone shares its metadata")
	}
}

// A changed prompt takes the place of the old one, in this program and the next,
// and across boundaries.
func TestChangedPromptReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{100, 2} {
		st := memory.New(nil)
		id := ""
		for i, prompt := range []string{"be brief", "be brief", "be kind", "be both"} {
			m := newManagerOn(t, st, limit)
			c := newSystem(t, m)
			c.SetSystemPrompt(prompt)
			if id != "" {
				do(t, c.Load(id))
			}
			must(c.PrepareConversation(fmt.Sprint("question ", i)))(t)
			id = c.ID()
			if _, sent := c.SystemPrompt(); !sent {
				t.Errorf("%q was not sent", prompt)
			}
			var prompts []string
			for _, e := range must(c.View())(t).Entries {
				if e.Message.Role == session.RoleSystem {
					prompts = append(prompts, session.TextOf(e.Message.Content))
				}
			}
			if !slices.Equal(prompts, []string{prompt}) {
				t.Errorf("limit %d, turn %d: the model is sent %q", limit, i, prompts)
			}
			must(c.AddAssistantMessage(reply("answer")))(t)
		}
	}
}

// A system message without a category is never trimmed, whoever reads it.
func TestSystemMessageIsSystem(t *testing.T) {
	t.Parallel()
	c := conversation.NewChat(newManager(t, "", 100), small(t, 400))
	must(c.AddMessage("system", "the rules of the house", 0, nil))(t)
	for range 50 {
		must(c.AddUserMessage("a question of some length, to be answered"))(t)
	}
	v := must(c.View())(t)
	if got := entryTexts(v.Entries); got[0] != "system: the rules of the house" || len(got) == 51 {
		t.Errorf("%v", got)
	}
}

// Numbers that the documents' own programs write are understood.
func TestMessageOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]conversation.Category{
		`{"role":"user","content":"x","category":2,"tokens":0}`:         conversation.CategoryContext,
		`{"role":"user","content":"x","category":"ACTIONS","tokens":0}`: conversation.CategorySystemOutput,
		`{"role":"user","content":"x","category":9}`:                    conversation.CategoryDialog,
	} {
		var m conversation.Message
		do(t, json.Unmarshal([]byte(raw), &m))
		if m.Category != want || m.Tokens != nil {
			t.Errorf("%s: %v, tokens %v", raw, m.Category, m.Tokens)
		}
	}
}

// A change of model recounts everything: estimates are never stored as counts.
func TestChangeOfModelCountsAgain(t *testing.T) {
	t.Parallel()
	w := conversation.NewWindow(nil)
	do(t, w.SetModel(conversation.Capabilities{Model: "a", Counter: words{}}))
	m := newManager(t, "", 3)
	c := conversation.NewChat(m, w)
	for range 5 {
		must(c.AddUserMessage("onelongwordwithoutanyspaceinit"))(t)
		must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("anotherone")}}))(t)
	}
	few := must(c.View())(t).Report.Tokens
	do(t, w.SetModel(conversation.Capabilities{Model: "b"}))
	if many := must(c.View())(t).Report.Tokens; many <= few {
		t.Errorf("%d tokens, then %d", few, many)
	}
	if totals := must(m.Totals(c.ID()))(t); totals.Estimated != totals.Tokens || totals.Tokens == 0 {
		t.Errorf("%+v", totals)
	}
	counted := user("x")
	n := 7
	counted.Tokens = &n
	before := must(m.Totals(c.ID()))(t)
	must(c.Add(counted))(t)
	if totals := must(m.Totals(c.ID()))(t); totals.Tokens != before.Tokens+7 || totals.Estimated != before.Estimated {
		t.Errorf("%+v, then %+v", before, totals)
	}
}

// What providers report teaches the counter once, however often a conversation is
// loaded.
func TestLearningOnceFromEachReport(t *testing.T) {
	t.Parallel()
	const ratio = 1.3
	st := memory.New(nil)
	m := newManagerOn(t, st, 1000)
	c := newSystem(t, m)
	text := strings.Repeat("some words of a message ", 40)
	base := window.Estimate("p", "m")
	prompt := 1000
	for i := range 40 {
		must(c.AddUserMessage(text))(t)
		prompt += int(ratio * float64(base.CountText(text)+4))
		answer := conversation.Reply{Content: []session.Content{session.Text(text)}, Provider: "p", Model: "m", ResponseID: fmt.Sprint("r", i)}
		output := int(ratio * float64(base.CountText(text)+4))
		answer.Usage = &session.Usage{Input: prompt, Output: output}
		must(c.AddAssistantMessage(answer))(t)
		prompt += output
	}
	w := conversation.NewWindow(nil)
	do(t, w.SetModel(conversation.Capabilities{Provider: "p", Model: "m", ContextWindow: 10_000_000}))
	for range 200 {
		fresh := conversation.NewChat(m, w)
		do(t, fresh.Load(c.ID()))
		must(fresh.View())(t)
	}
	learned := w.Options().Counter.(interface{ Ratio() float64 }).Ratio()
	if learned < ratio*0.95 || learned > ratio*1.05 {
		t.Errorf("the ratio is %.3f after 200 loads, want %.2f", learned, ratio)
	}
}

// A bad context file is reported, and the user is heard.
func TestBadContextFileDoesNotStopATurn(t *testing.T) {
	t.Parallel()
	dir, _ := contextDir(t, map[string]string{"context_config.yml": "core_files: [spec.md, rules.md]", "spec.md": "one", "rules.md": "two"})
	var told []error
	m := newConversations(t, "", conversation.ManagerOptions{
		Sessions: *quiet(100), Model: echo(), ContextDir: dir,
		OnContextError: func(_ string, err error) { told = append(told, err) },
	})
	must(m.LoadContext())(t)
	do(t, os.WriteFile(filepath.Join(dir, "spec.md"), []byte("\x00\xff not text"), 0o600))
	change(t, filepath.Join(dir, "rules.md"), "the new rules", time.Hour)
	if got := must(m.ProcessMessage(t.Context(), "hello", ""))(t); got != "echo hello" {
		t.Errorf("%q", got)
	}
	if len(told) != 1 || !errors.Is(told[0], session.ErrInvalid) {
		t.Errorf("told %v", told)
	}
	got := strings.Join(entryTexts(must(m.Current().View())(t).Entries), "|")
	if !strings.Contains(got, "the new rules") || !strings.Contains(got, "one") || !strings.Contains(got, "user: hello") {
		t.Errorf("%s", got)
	}
}

// OnTransition may call back into the package.
func TestOnTransitionMayAsk(t *testing.T) {
	t.Parallel()
	var c *conversation.Chat
	var m *conversation.Sessions
	asked := 0
	o := quiet(2)
	o.OnTransition = func(tr conversation.Transition) {
		asked++
		if c.ID() != tr.Conversation {
			t.Errorf("%s is not %s", c.ID(), tr.Conversation)
		}
		must(c.View())(t)
		must(c.Conversation())(t)
		must(c.AddContext("note", "moved"))(t)
		must(m.Totals(tr.To))(t)
		c.SetSystemPrompt("be brief")
	}
	m = must(conversation.OpenSessions("", o))(t)
	defer m.Close()
	c = newSystem(t, m)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4 {
			must(c.PrepareConversation(fmt.Sprint(i)))(t)
			must(c.AddAssistantMessage(reply("yes")))(t)
		}
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for itself")
	}
	if asked == 0 {
		t.Error("there was no transition")
	}
}

// An id that any session of the conversation has is taken.
func TestIDsAreTakenInTheWholeConversation(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 2)
	first := user("1")
	first.ID = "mine"
	id := say(t, m, "", first, assistant("2"), user("3"), assistant("4"), user("5"))
	_, err := m.AddMessage(id, first)
	wantError(t, err, session.ErrExist)
	c := newSystem(t, m)
	do(t, c.Load(id))
	_, err = c.Add(first)
	wantError(t, err, session.ErrExist)
	if n := must(m.Totals(id))(t).Messages; n != 5 {
		t.Errorf("%d messages", n)
	}
}

// What a caller writes into the metadata of a message hides nothing.
func TestCallersMetadataHidesNothing(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{100, 2} {
		m := newManager(t, "", limit)
		want := []string{}
		id := ""
		for i := range 6 {
			msg := user(fmt.Sprint(i))
			msg.Metadata = map[string]any{"carried_from": "the garden", "type": "session_transition", "previous_session": "winter"}
			id = say(t, m, id, msg, assistant("yes"))
			want = append(want, fmt.Sprint("user: ", i), "assistant: yes")
		}
		c := must(m.Conversation(id))(t)
		if diff := cmp.Diff(want, texts(c.Messages)); diff != "" {
			t.Errorf("limit %d: %s", limit, diff)
		}
		chat := newSystem(t, m)
		do(t, chat.Load(id))
		if diff := cmp.Diff(want, entryTexts(must(chat.View())(t).Entries)); diff != "" {
			t.Errorf("limit %d, sent: %s", limit, diff)
		}
		if got := c.Messages[2].Metadata["carried_from"]; got != "the garden" {
			t.Errorf("the caller's metadata is %v", got)
		}
	}
}

// What makes no sense is refused, and changes nothing.
func TestWindowRefusesNonsense(t *testing.T) {
	t.Parallel()
	w := conversation.NewWindow(nil)
	do(t, w.SetModel(conversation.Capabilities{Model: "m", ContextWindow: 1000, MaxReply: 100}))
	wantError(t, w.SetModel(conversation.Capabilities{Model: "n", ContextWindow: 1000, MaxReply: 1000}), session.ErrInvalid)
	c := conversation.NewChat(newManager(t, "", 100), w)
	must(c.AddUserMessage("hello"))(t)
	wantError(t, c.Configure(conversation.Config{Window: 10, MaxReply: 10}), session.ErrInvalid)
	wantError(t, c.Configure(conversation.Config{MaxMessages: -1}), session.ErrInvalid)
	if v := must(c.View())(t); v.Report.Room != 900 || w.Options().Model != "m" {
		t.Errorf("%+v", v.Report)
	}
}

// The session that was made in the place of one that cannot be read is found
// again by every program that comes later.
func TestRecoverySurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const id = "broken"
	do(t, os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte("garbage\n"), 0o600))
	reader := newManager(t, dir, 100)
	_, err := reader.Conversation(id)
	wantError(t, err, session.ErrCorrupt)
	for i := range 3 {
		m := must(conversation.OpenSessions(dir, quiet(100)))(t)
		must(m.AddMessage(id, user(fmt.Sprint(i))))(t)
		do(t, m.Close())
	}
	files := must(filepath.Glob(filepath.Join(dir, "*.jsonl")))(t)
	if len(files) != 2 {
		t.Fatalf("%d files", len(files))
	}
	got := texts(must(reader.Conversation(id))(t).Messages)
	if len(got) != 4 || !slices.Equal(got[1:], []string{"user: 0", "user: 1", "user: 2"}) {
		t.Errorf("%v", got)
	}
}

// Sessions have as many messages as they may, no more; only a call and its result
// stay together.
func TestBoundaryIsExact(t *testing.T) {
	t.Parallel()
	const limit = 100
	m := newManager(t, "", limit)
	messages := []conversation.Message{systemMessage("s"), user("do it all")}
	for i := range 300 {
		messages = append(messages, call(fmt.Sprint(i)), result(fmt.Sprint(i), "done"))
	}
	id := say(t, m, "", messages...)
	c := must(m.Conversation(id))(t)
	for i, l := range c.Links {
		if n := must(m.LoadSession(l.ID))(t).MessageCount(); n > limit+1 || i < len(c.Links)-1 && n < limit {
			t.Errorf("session %d has %d messages", i, n)
		}
	}
	if len(c.Messages) != len(messages) {
		t.Errorf("%d of %d messages", len(c.Messages), len(messages))
	}
}

// The model's own tokenizer counts where there is one.
func TestExactTokenizerIsAsked(t *testing.T) {
	t.Parallel()
	m := newConversations(t, "", conversation.ManagerOptions{
		Sessions: *quiet(100), Model: tongue{"known", 1000}.model(),
		Exact: []func(string, string) window.Counter{func(provider, model string) window.Counter {
			if model == "known" {
				return words{}
			}
			return nil
		}},
	})
	must(m.ProcessMessage(t.Context(), "hello", ""))(t)
	if got := must(m.TokenUsage())(t).Counter; got != "words" {
		t.Errorf("%s counts", got)
	}
	do(t, m.SetModel(tongue{"unknown", 1000}.model()))
	if got := must(m.TokenUsage())(t).Counter; !strings.HasPrefix(got, "estimate") {
		t.Errorf("%s counts", got)
	}
}

// A conversation is written with four roles; what others wrote is read.
func TestUnknownRolesAreRefused(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := newManagerOn(t, st, 100)
	id := say(t, m, "", user("1"))
	odd := user("2")
	odd.Role = "robot"
	_, err := m.AddMessage(id, odd)
	wantError(t, err, session.ErrInvalid)
	_, err = newSystem(t, m).Add(odd)
	wantError(t, err, session.ErrInvalid)
	_, err = m.SaveSession(must(m.LoadSession(id))(t).AddMessage(odd))
	wantError(t, err, session.ErrInvalid)
	s := must(session.Open(t.Context(), st, id, nil))(t)
	must(s.AppendMessage(session.RoleBashExecution, []session.Content{session.Text("ls")}))(t)
	do(t, s.Close())
	loaded := must(m.LoadSession(id))(t)
	if must(m.SaveSession(loaded.AddMessage(assistant("3"))))(t); len(must(m.LoadSession(id))(t).Messages) != 3 {
		t.Error("what another program wrote is in the way")
	}
}
