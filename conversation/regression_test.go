package conversation_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// small returns a window of so many tokens.
func small(t testing.TB, tokens int) *conversation.Window {
	t.Helper()
	w := conversation.NewWindow(nil)
	do(t, w.SetBudget(window.Budget{Tokens: tokens, Strict: true}))
	return w
}

// Penguin saved the trimmed session: 30 messages were sent, 13 were kept.
func TestRegressionTrimmingIsNotSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	w := small(t, 300)
	c := conversation.NewChat(m, w)
	for i := range 30 {
		must(c.AddUserMessage(fmt.Sprintf("message %d, %s", i, strings.Repeat("with words ", 10))))(t)
		must(c.View())(t)
	}
	s := must(m.LoadSession(c.ID()))(t)
	trimmed, report, err := w.Trim(s)
	do(t, err)
	if trimmed.MessageCount() >= 30 || report.LeftOutTokens == 0 {
		t.Fatalf("nothing was trimmed: %d messages, %+v", trimmed.MessageCount(), report)
	}
	if s.MessageCount() != 30 {
		t.Errorf("trimming changed the session: %d messages", s.MessageCount())
	}
	if saved, err := m.SaveSession(trimmed); !saved || err != nil {
		t.Fatal(saved, err)
	}
	if got := must(newManager(t, dir, 100).LoadSession(s.ID))(t).MessageCount(); got != 30 {
		t.Errorf("%d messages are stored, want 30", got)
	}
}

// After a trim, Penguin's cache held an older object, and auto-save wrote it over
// the file.
func TestRegressionStaleSessionIsSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newManager(t, dir, 100), newManager(t, dir, 100)
	id := say(t, a, "", user("1"))
	stale := must(a.LoadSession(id))(t)
	say(t, b, id, assistant("2")) // a has not seen it
	stale = stale.AddMessage(user("3"))
	must(a.SaveSession(stale))(t)
	do(t, a.SaveAll())
	must(b.SaveSession(stale))(t) // saving it again adds nothing
	for _, m := range []*conversation.Sessions{a, b, newManager(t, dir, 100)} {
		if diff := cmp.Diff([]string{"user: 1", "assistant: 2", "user: 3"}, texts(must(m.LoadSession(id))(t).Messages)); diff != "" {
			t.Error(diff)
		}
	}
}

// One newest message larger than its category's budget emptied the category,
// itself included.
func TestRegressionOneLargeMessage(t *testing.T) {
	t.Parallel()
	s := conversation.NewSession()
	for i := range 5 {
		s = s.AddMessage(user(fmt.Sprint("question ", i))).AddMessage(assistant("answer"))
	}
	s = s.AddMessage(user("BEGIN " + strings.Repeat("a large document ", 400) + " END"))
	trimmed, report, err := small(t, 1000).Trim(s)
	do(t, err)
	last := trimmed.Messages[len(trimmed.Messages)-1].Text()
	if !strings.HasPrefix(last, "BEGIN") || !strings.HasSuffix(last, "END") {
		t.Errorf("the newest message is gone: %v", texts(trimmed.Messages))
	}
	if report.Tokens > 1000 {
		t.Errorf("%d tokens of 1000", report.Tokens)
	}
}

// Results of tools were trimmed while the assistant's message kept its calls.
func TestRegressionTrimmedToolResults(t *testing.T) {
	t.Parallel()
	s := conversation.NewSession()
	for i := range 20 {
		id := fmt.Sprint(i)
		s = s.AddMessage(user("look at " + id)).AddMessage(call(id)).AddMessage(result(id, strings.Repeat("output ", 50))).AddMessage(assistant("seen"))
	}
	trimmed, report, err := small(t, 1000).Trim(s)
	do(t, err)
	if report.LeftOutTokens == 0 {
		t.Fatal("nothing was trimmed")
	}
	calls, results := map[string]int{}, map[string]int{}
	for _, m := range trimmed.Messages {
		for _, c := range m.Content {
			if c.ToolUse != nil {
				calls[c.ToolUse.ID]++
			}
			if c.ToolResult != nil {
				results[c.ToolResult.ToolUseID]++
			}
		}
	}
	if diff := cmp.Diff(calls, results); diff != "" {
		t.Errorf("calls and results do not match:\n%s", diff)
	}
}

// A SYSTEM message over the budget left the total over, with nothing trimmed and
// nothing said.
func TestRegressionSystemOverBudget(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	c := conversation.NewChat(m, small(t, 200))
	c.SetSystemPrompt(strings.Repeat("a long instruction ", 200))
	must(c.PrepareConversation("hello"))(t)
	_, err := c.Request()
	var over *window.OverflowError
	if !errors.As(err, &over) || over.Category != conversation.CategorySystem || over.Over() <= 0 {
		t.Fatalf("%v, want an OverflowError of SYSTEM", err)
	}
	wantError(t, err, session.ErrTooLarge)
	// Over its own share, but with room in the window, it is kept and the rest fits.
	w := small(t, 2000)
	s := conversation.NewSession().AddMessage(systemMessage(strings.Repeat("a long instruction ", 200)))
	for range 100 {
		s = s.AddMessage(user(strings.Repeat("words ", 20)))
	}
	trimmed, report, err := w.Trim(s)
	do(t, err)
	if report.Tokens > 2000 || len(trimmed.MessagesByCategory(conversation.CategorySystem)) != 1 || trimmed.MessageCount() < 2 {
		t.Errorf("%d tokens, %d messages", report.Tokens, trimmed.MessageCount())
	}
}

// One unknown JSON key sent the whole file to recovery.
func TestRegressionUnknownKey(t *testing.T) {
	t.Parallel()
	const stored = `{"id":"session_1a2b3c4d","created_at":"2025-09-01T10:00:00.5","last_active":"2025-09-01T10:00:01","metadata":{},
		"llm_request_lifecycles":[{"x":1}],
		"messages":[{"role":"user","content":"hi","category":"ACTIONS","id":"msg_1a2b3c4d","timestamp":"2025-09-01T10:00:00","metadata":{},"tokens":3,"agent_id":"default"}]}`
	var s conversation.Session
	do(t, json.Unmarshal([]byte(stored), &s))
	if s.Messages[0].Category != conversation.CategorySystemOutput || *s.Messages[0].Tokens != 3 {
		t.Errorf("%+v", s.Messages[0])
	}
	written := must(json.Marshal(s))(t)
	for _, kept := range []string{`"llm_request_lifecycles":[{"x":1}]`, `"agent_id":"default"`} {
		if !bytes.Contains(written, []byte(kept)) {
			t.Errorf("%s is lost in %s", kept, written)
		}
	}
	// Also through a store.
	m := newManager(t, t.TempDir(), 100)
	must(m.SaveSession(s))(t)
	m.ReleaseMemory(0)
	if raw := must(json.Marshal(must(m.LoadSession(s.ID))(t)))(t); !bytes.Contains(raw, []byte(`"agent_id":"default"`)) {
		t.Errorf("agent_id is lost in %s", raw)
	}
	// And an entry of a log with members of a later version.
	line := `{"type":"message","id":"later","parent_id":"msg_1a2b3c4d","timestamp":"2026-01-01T00:00:00Z","mood":"good","message":{"role":"user","content":"hello","color":"red"}}` + "\n"
	path := filepath.Join(t.TempDir(), "s.jsonl")
	do(t, os.WriteFile(path, []byte(`{"type":"session","id":"s","version":1,"timestamp":"2026-01-01T00:00:00Z","weather":"fine"}`+"\n"+line), 0o600))
	later := must(newManager(t, filepath.Dir(path), 100).LoadSession("s"))(t)
	if diff := cmp.Diff([]string{"user: hello"}, texts(later.Messages)); diff != "" {
		t.Error(diff)
	}
}

// Two recoveries within a second had the same id.
func TestRegressionRecoveryIDs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ids := map[string]bool{}
	m := newManager(t, dir, 100)
	for i := range 10 {
		name := fmt.Sprint("broken", i)
		do(t, os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte("this is no session\n"), 0o600))
		s := must(m.LoadSession(name))(t)
		ids[s.ID] = true
		if s.Metadata[conversation.MetaRecoveredFrom] != name || !strings.Contains(s.Messages[0].Text(), name) {
			t.Errorf("%+v", s)
		}
		if again := must(m.LoadSession(name))(t); again.ID != s.ID {
			t.Errorf("recovered twice: %s and %s", s.ID, again.ID)
		}
	}
	if len(ids) != 10 {
		t.Errorf("%d ids for 10 sessions", len(ids))
	}
}

// continuation_index was 1 for every link, and original_created_at that of the
// link before.
func TestRegressionContinuationIndex(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 1)
	var messages []conversation.Message
	for i := range 5 {
		messages = append(messages, user(fmt.Sprint(i)), assistant("yes"))
	}
	id := say(t, m, "", messages...)
	c := must(m.Conversation(id))(t)
	if len(c.Links) != 5 {
		t.Fatalf("%d links", len(c.Links))
	}
	first := must(m.LoadSession(id))(t)
	for i, l := range c.Links {
		s := must(m.LoadSession(l.ID))(t)
		if s.Metadata[conversation.MetaContinuationIndex] != i {
			t.Errorf("link %d has the index %v", i, s.Metadata[conversation.MetaContinuationIndex])
		}
		if i == 0 {
			continue
		}
		mark := s.Messages[0].Metadata
		if mark["original_session"] != id || mark["previous_session"] != c.Links[i-1].ID ||
			mark["original_created_at"] != first.CreatedAt.UTC().Format("2006-01-02T15:04:05.999999999Z07:00") {
			t.Errorf("marker of link %d: %v", i, mark)
		}
	}
}

// The markers of earlier links were SYSTEM messages, and carried on for ever.
func TestRegressionMarkersPileUp(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 2)
	var messages []conversation.Message
	for i := range 10 {
		messages = append(messages, user(fmt.Sprint(i)), assistant("yes"))
	}
	id := say(t, m, "", messages...)
	for i, l := range links(t, m, id) {
		n := 0
		for _, text := range l {
			if strings.Contains(text, "Continuing from") {
				n++
			}
		}
		if n != min(i, 1) {
			t.Errorf("link %d has %d markers: %v", i, n, l)
		}
	}
}

// The user's last message was left behind at a boundary.
func TestRegressionTurnInFlight(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 3)
	c := newSystem(t, m)
	must(c.AddUserMessage("1"))(t)
	must(c.Add(call("a")))(t)
	must(c.AddActionResult("a", "x", false))(t) // the limit is reached here
	must(c.Add(call("b")))(t)
	must(c.AddActionResult("b", "x", false))(t)
	got := entryTexts(must(c.Request())(t).Entries)
	if diff := cmp.Diff([]string{"user: 1", "assistant: call a", "tool: result a", "assistant: call b", "tool: result b"}, got); diff != "" {
		t.Errorf("what is sent:\n%s", diff)
	}
}

// The chain's total began at the current session and followed no link.
func TestRegressionChainTotal(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 2)
	id := say(t, m, "", systemMessage("s"), user("1"), assistant("2"), user("3"), assistant("4"), user("5"))
	c := must(m.Conversation(id))(t)
	sum := 0
	for _, msg := range []conversation.Message{systemMessage("s"), user("1"), assistant("2"), user("3"), assistant("4"), user("5")} {
		sum += msg.EstimateTokens()
	}
	totals := must(m.Totals(id))(t)
	if totals.Tokens != sum || c.TotalTokens() != sum || c.Metadata[conversation.MetaTokenCount] != sum || totals.Sessions < 2 {
		t.Errorf("totals %+v, conversation %d, want %d", totals, c.TotalTokens(), sum)
	}
}

// Every load made the session current, and messages of concurrent requests ended
// up in each other's sessions.
func TestRegressionCrossSessionBleed(t *testing.T) {
	t.Parallel()
	m := must(conversation.Open(t.TempDir(), &conversation.ManagerOptions{Sessions: *quiet(5), Model: echo()}))(t)
	defer m.Close()
	ids := make([]string, 4)
	for i := range ids {
		ids[i] = must(m.CreateConversation(fmt.Sprint(i)))(t)
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			for n := range 10 {
				answer, err := m.ProcessMessage(context.Background(), fmt.Sprintf("%d/%d", i, n), id)
				if err != nil || answer != fmt.Sprintf("echo %d/%d", i, n) {
					t.Errorf("%q, %v", answer, err)
				}
			}
		})
	}
	wg.Wait()
	for i, id := range ids {
		c := must(m.Sessions.Conversation(id))(t)
		if len(c.Messages) != 20 {
			t.Errorf("conversation %d has %d messages", i, len(c.Messages))
		}
		for _, msg := range c.Messages {
			if !strings.Contains(msg.Text(), fmt.Sprint(i, "/")) {
				t.Errorf("conversation %d has %q", i, msg.Text())
			}
		}
	}
}

// echo repeats what the user says.
func echo() provider.Func {
	return provider.Func{Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		last := session.TextOf(r.Entries[len(r.Entries)-1].Message.Content)
		return &session.MessageEntry{Content: []session.Content{session.Text("echo " + last)}}, nil
	}}
}

// Ids were not checked: load("../x") left the directory.
func TestRegressionPathInID(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	do(t, os.WriteFile(filepath.Join(parent, "secret.jsonl"), []byte(`{"type":"session","id":"secret","version":1,"timestamp":"2026-01-01T00:00:00Z"}`+"\n"), 0o600))
	m := newManager(t, filepath.Join(parent, "sessions"), 100)
	for _, id := range []string{"../secret", `..\secret`, "a/b", "", ".", "..", "x\x00y", strings.Repeat("x", 300)} {
		for name, f := range map[string]func() error{
			"load":         func() error { _, err := m.LoadSession(id); return err },
			"delete":       func() error { _, err := m.DeleteSession(id); return err },
			"add":          func() error { _, err := m.AddMessage(id, user("x")); return err },
			"save":         func() error { return m.Save(id) },
			"conversation": func() error { _, err := m.Conversation(id); return err },
		} {
			if err := f(); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s %q: %v, want ErrInvalid", name, id, err)
			}
		}
		if id != "" {
			s := conversation.NewSession()
			s.ID = id
			_, err := m.SaveSession(s)
			wantError(t, err, session.ErrInvalid)
		}
	}
	for _, e := range must(os.ReadDir(parent))(t) {
		if e.Name() != "secret.jsonl" && e.Name() != "sessions" {
			t.Errorf("%s in the directory above", e.Name())
		}
	}
}

// Ids of sessions that were not saved yet collided within a second.
func TestRegressionSessionIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for range 1000 {
		ids[conversation.NewSession().ID] = true
	}
	if len(ids) != 1000 {
		t.Errorf("%d ids for 1000 sessions", len(ids))
	}
}

// Making a session did not close others: the limit held only on load.
func TestRegressionCreateEvicts(t *testing.T) {
	t.Parallel()
	o := quiet(100)
	o.Settings.MaxSessionsInMemory = 3
	m := must(conversation.OpenSessions("", o))(t)
	for range 10 {
		must(m.CreateSession(""))(t)
	}
	if ids, _ := m.SessionsInMemory(); len(ids) > 3 {
		t.Errorf("%d sessions in memory", len(ids))
	}
	do(t, m.Close())
}

// Images were replaced only when something else was trimmed.
func TestRegressionImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newSystem(t, newManager(t, dir, 2))
	path := filepath.Join(t.TempDir(), "dot.png")
	pictures := make([]string, 3)
	for i := range pictures {
		picture := append(pixel(byte(i)), make([]byte, i*200_000)...) // the larger ones are kept apart from the log
		pictures[i] = base64.StdEncoding.EncodeToString(picture)
		do(t, os.WriteFile(path, picture, 0o600))
		must(c.PrepareConversation(fmt.Sprint("image ", i), path))(t)
		must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text("seen")}}))(t)
	}
	v := must(c.View())(t)
	images := 0
	for _, e := range v.Entries {
		for _, b := range e.Message.Content {
			if b.Image != nil {
				images++
			}
		}
	}
	if images != 1 || len(v.Report.Omissions) != 2 {
		t.Fatalf("%d images, left out %+v", images, v.Report.Omissions)
	}
	// All can be looked at again, across boundaries, also after a restart.
	again := newSystem(t, newManager(t, dir, 2))
	do(t, again.Load(c.ID()))
	for i, o := range v.Report.Omissions {
		for _, c := range []*conversation.Chat{c, again} {
			if image := must(c.RecallImage(o.Reference))(t); image.Image == nil || image.Image.Source.Data != pictures[i] {
				t.Errorf("%s is not picture %d", o.Reference, i)
			}
		}
	}
	kept := 0
	for _, m := range must(c.Conversation())(t).Messages {
		for _, b := range m.Content {
			if b.Image != nil {
				kept++
			}
		}
	}
	if kept != 3 {
		t.Errorf("%d of 3 images are stored", kept)
	}
}

// Summaries never reached the model, because the runner sent only messages;
// labels did.
func TestRegressionSummariesReachTheModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	c := newSystem(t, m)
	c.SetSystemPrompt("be brief")
	must(c.PrepareConversation("1"))(t)
	for i := range 4 {
		must(c.AddAssistantMessage(conversation.Reply{Content: []session.Content{session.Text(fmt.Sprint("answer ", i))}}))(t)
		must(c.AddUserMessage(fmt.Sprint("question ", i)))(t)
	}
	must(c.View())(t)
	s := must(session.Load(filepath.Join(dir, c.ID()+".jsonl")))(t)
	defer s.Close()
	plan := must(s.PlanCompaction(session.PlanOptions{KeepTokens: 1, Count: func(session.Entry) int { return 1 }}))(t)
	must(s.AppendCompaction("what was said so far", plan.FirstKept, 9))(t)
	must(s.SetLabel(plan.FirstKept, "a label"))(t)
	want := []string{"system: be brief", "summary: what was said so far", "user: question 3"}
	if diff := cmp.Diff(want, entryTexts(must(c.View())(t).Entries)); diff != "" {
		t.Error(diff)
	}
	history := must(c.History())(t)
	if !slices.ContainsFunc(history, func(h conversation.APIMessage) bool { return strings.Contains(string(h), "what was said so far") }) {
		t.Errorf("history %v", history)
	}
	if n := must(m.Totals(c.ID()))(t).Messages; n != 10 {
		t.Errorf("%d messages, want 10: compaction destroys nothing", n)
	}
}

// A summary in a continuation stands for what the sessions before it hold, too.
func TestSummaryInAContinuation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 2)
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"))
	tail := must(m.Totals(id))(t).Tail
	if tail == id {
		t.Fatal("there is no continuation")
	}
	s := must(session.Load(filepath.Join(dir, tail+".jsonl")))(t)
	defer s.Close()
	must(s.AppendCompaction("one to three", s.LeafID(), 9))(t)
	c := newSystem(t, m)
	do(t, c.Load(id))
	if diff := cmp.Diff([]string{"summary: one to three", "user: 3", "assistant: 4"}, entryTexts(must(c.View())(t).Entries)); diff != "" {
		t.Error(diff)
	}
}
