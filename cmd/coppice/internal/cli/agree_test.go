package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/window"
)

// author writes a session at random: all that a session can hold, in every order
// in which a program may write it. Every text has a number of its own, by which it
// is known again however it is worded.
type author struct {
	t       *rapid.T
	s       *session.Session
	n       int
	waiting []string // calls without a result
	said    []string // entries, of all branches
}

// text is a text that there is only once.
func (a *author) text() string {
	a.n++
	return fmt.Sprintf("text <%d>", a.n)
}

func (a *author) message(role session.MessageRole, content ...session.Content) {
	id, err := a.s.AppendMessage(role, content)
	if err != nil {
		a.t.Fatal(err)
	}
	a.said = append(a.said, id)
}

func (a *author) say(role session.MessageRole) { a.message(role, session.Text(a.text())) }

// call calls tools, with or without thinking before.
func (a *author) call() {
	var content []session.Content
	if rapid.Bool().Draw(a.t, "thinks") {
		content = append(content, session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: a.text()}})
	}
	for range rapid.IntRange(1, 3).Draw(a.t, "calls") {
		a.n++
		id := fmt.Sprintf("call<%d>", a.n)
		content = append(content, session.ToolUse(id, "dig", map[string]any{"deep": true}))
		a.waiting = append(a.waiting, id)
	}
	a.message(session.RoleAssistant, content...)
}

// answer answers one of the calls that wait, not always the first.
func (a *author) answer() {
	if len(a.waiting) == 0 {
		return
	}
	at := rapid.IntRange(0, len(a.waiting)-1).Draw(a.t, "which call")
	id := a.waiting[at]
	a.waiting = slices.Delete(a.waiting, at, at+1)
	a.message(session.RoleTool, session.ToolResult(id, a.text(), false))
}

// some returns one of the entries that were said.
func (a *author) some() string { return rapid.SampledFrom(a.said).Draw(a.t, "entry") }

// step does one thing. What the session refuses is as good as not done.
func (a *author) step() {
	if len(a.said) == 0 {
		a.say(session.RoleUser)
	}
	switch rapid.IntRange(0, 19).Draw(a.t, "step") {
	case 0, 1, 2:
		a.say(session.RoleUser)
	case 3, 4:
		a.say(session.RoleAssistant)
	case 5, 6, 7:
		a.call()
	case 8, 9, 10, 11:
		a.answer()
	case 12:
		a.say(session.RoleSystem)
	case 13:
		_, _ = a.s.AppendCompaction(a.text(), a.some(), 0)
	case 14:
		a.compact()
	case 15:
		_, _ = a.s.AppendEntry(session.ContextEdit(a.some()))
	case 16:
		_, _ = a.s.AppendEntry(session.ContextEdit(a.some(), session.Text(a.text())))
	case 17:
		a.branch()
	case 18:
		_, _ = a.s.AppendEntry(session.Merge(a.some(), a.text(), a.some()))
	case 19:
		_, _ = a.s.Undo()
	}
}

// compact compacts where the planner says.
func (a *author) compact() {
	keep := rapid.IntRange(0, 12).Draw(a.t, "keep")
	plan, err := a.s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: func(session.Entry) int { return 1 }})
	if err == nil {
		_, _ = a.s.AppendCompaction(a.text(), plan.FirstKept, 0)
	}
}

// branch goes on from an earlier entry. Calls that waited there wait no more.
func (a *author) branch() {
	a.waiting = nil
	if rapid.Bool().Draw(a.t, "with summary") {
		_, _ = a.s.BranchWithSummary(a.some(), a.text())
		return
	}
	if err := a.s.Branch(a.some()); err != nil {
		a.t.Fatal(err)
	}
}

// number finds the numbers of texts and calls.
var number = regexp.MustCompile(`<\d+>`)

// atoms are what a model gets of entries: whose words, calls and results, in order.
func atoms(entries []session.Entry) []string {
	var list []string
	for i := range entries {
		e := &entries[i]
		if e.Message == nil {
			list = append(list, spoken(session.RoleSystem, e.Summary())...)
			continue
		}
		var texts, calls []string
		for _, b := range e.Message.Content {
			switch {
			case b.ToolUse != nil:
				calls = append(calls, "call "+number.FindString(b.ToolUse.ID))
			case b.ToolResult != nil:
				list = append(list, result(b.ToolResult.ToolUseID, b.ToolResult.Content))
			case b.Thinking != nil:
				list = append(list, spoken("thinking", b.Thinking.Content)...)
			case b.Text != nil:
				texts = append(texts, b.Text.Content)
			}
		}
		list = append(list, spoken(e.Message.Role, strings.Join(texts, "\n"))...)
		list = append(list, calls...)
	}
	return list
}

// keyedAtoms are the same of the messages of package keyed.
func keyedAtoms(messages []keyed.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, spoken("thinking", m.ReasoningContent)...)
		if m.ToolCallID != "" {
			list = append(list, result(m.ToolCallID, m.Content))
			continue
		}
		list = append(list, spoken(m.Role, m.Content)...)
		for _, c := range m.ToolCalls {
			list = append(list, "call "+number.FindString(c.ID))
		}
	}
	return list
}

func spoken(role, text string) []string {
	var list []string
	for _, n := range number.FindAllString(text, -1) {
		list = append(list, role+" "+n)
	}
	return list
}

// result is a tool's answer. One that never came has no number.
func result(call, text string) string {
	return "result of " + number.FindString(call) + ": " + number.FindString(text)
}

// The session, a window that holds it all, a conversation, a keyed chat and the
// command all agree on what goes to the model.
func TestAllAgreeOnTheContext(t *testing.T) {
	root := t.TempDir()
	runs := 0
	soak.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, strconv.Itoa(runs))
		id := writeKeyed(t, dir, "chat:1", rapid.IntRange(1, 40).Draw(t, "steps"))
		c := contextOf(t, dir, id)
		want := atoms(c.Entries)
		same := func(who string, got []string) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("session.Context and %s differ (-session +other):\n%s", who, diff)
			}
		}
		for name, plan := range map[string]func(*session.Context, window.Options) (*window.View, error){"window.Trim": window.Trim, "window.Fill": window.Fill} {
			v, err := plan(c, window.Options{Images: window.AllImages})
			if err != nil {
				t.Fatal(err)
			}
			same(name, atoms(v.Entries))
		}
		same("conversation", conversationAtoms(t, dir, id))
		same("keyed", builtContext(t, dir, "chat:1"))
		same("coppice context", printedContext(t, dir, "context", id, "--json"))
		same("coppice context --window", printedContext(t, dir, "context", id, "--json", "--window", "1000000"))
	})
}

// writeKeyed writes a session at random, and returns its id.
func writeKeyed(t *rapid.T, dir, key string, steps int) string {
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Create(t.Context(), st, session.Header{ID: id, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := &author{t: t, s: s}
	for range steps {
		a.step()
	}
	return id
}

func contextOf(t *rapid.T, dir, id string) *session.Context {
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Open(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// conversationAtoms are what a chat would send.
func conversationAtoms(t *rapid.T, dir, id string) []string {
	m, err := conversation.OpenSessions(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w := conversation.NewWindow(nil)
	chat := conversation.NewChat(m, w)
	if err := chat.Load(id); err != nil {
		t.Fatal(err)
	}
	v, err := chat.View()
	if err != nil {
		t.Fatal(err)
	}
	return atoms(v.Entries)
}

// builtContext are what a keyed chat would send, without the prompt and the message
// that it is given.
func builtContext(t *rapid.T, dir, key string) []string {
	sm := keyed.New(&keyed.Options{Dir: dir})
	defer sm.Close()
	messages, err := sm.BuildContext(key, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return keyedAtoms(messages)
}

// printedContext are what the command prints.
func printedContext(t *rapid.T, dir string, args ...string) []string {
	var out, errs bytes.Buffer
	a := &app{talk: newTalk(&out, &errs, os.Getenv), stdin: os.Stdin, getenv: os.Getenv}
	if code := a.run(t.Context(), append([]string{"--dir", dir}, args...)); code != 0 {
		t.Fatalf("coppice %v: exit %d: %s", args, code, &errs)
	}
	var printed home.ContextResult
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return atoms(printed.Entries)
}

// A conversation that goes on from session to session is one: what the chat sends
// is what its sessions, opened as one, have, and what the command prints.
func TestAllAgreeOnAChain(t *testing.T) {
	root := t.TempDir()
	runs := 0
	soak.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, strconv.Itoa(runs))
		a, id := &author{t: t}, ""
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			id = chatOn(a, dir, id, rapid.IntRange(1, 25).Draw(t, "messages"))
			changeLast(a, dir, id, rapid.IntRange(0, 4).Draw(t, "changes"))
			if rapid.Bool().Draw(t, "compacts") {
				compactChain(a, dir, id)
			}
		}
		want := conversationAtoms(t, dir, id)
		if diff := cmp.Diff(want, chainAtoms(t, dir, id)); diff != "" {
			t.Fatalf("conversation and session.OpenChain differ (-conversation +chain):\n%s", diff)
		}
		if diff := cmp.Diff(want, printedContext(t, dir, "context", id, "--json")); diff != "" {
			t.Fatalf("conversation and coppice context differ (-conversation +command):\n%s", diff)
		}
	})
}

// chatOn lets a chat go on over several sessions, and returns its id.
func chatOn(a *author, dir, id string, messages int) string {
	t := a.t
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	m, err := conversation.NewSessions(st, &conversation.Options{
		Settings: conversation.Settings{MaxMessagesPerSession: rapid.IntRange(3, 8).Draw(t, "limit")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	chat := conversation.NewChat(m, conversation.NewWindow(nil))
	if id != "" {
		if err := chat.Load(id); err != nil {
			t.Fatal(err)
		}
	}
	add := func(role session.MessageRole, category conversation.Category, content ...session.Content) {
		if _, err := chat.Add(conversation.Message{Role: role, Content: content, Category: category}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		what := rapid.IntRange(0, 9).Draw(t, "what")
		switch {
		case i == 0 || what < 3:
			add(session.RoleUser, 0, session.Text(a.text()))
		case what < 5:
			add(session.RoleAssistant, 0, session.Text(a.text()))
		case what == 5:
			add(session.RoleSystem, 0, session.Text(a.text()))
		case what == 6:
			add(session.RoleUser, conversation.CategoryContext, session.Text(a.text()))
		case what == 7 || len(a.waiting) == 0:
			a.n++
			call := fmt.Sprintf("call<%d>", a.n)
			add(session.RoleAssistant, 0, session.ToolUse(call, "dig", nil))
			a.waiting = append(a.waiting, call)
		default:
			add(session.RoleTool, 0, session.ToolResult(a.waiting[0], a.text(), false))
			a.waiting = a.waiting[1:]
		}
	}
	return chat.ID()
}

// changeLast does something to the last session of a chain, as another program
// might: it compacts, edits, merges and branches.
func changeLast(a *author, dir, id string, steps int) {
	t := a.t
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	chain, err := session.FindChain(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.s, err = session.Open(t.Context(), st, chain.Links[len(chain.Links)-1], nil); err != nil {
		t.Fatal(err)
	}
	defer a.s.Close()
	path, err := a.s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	a.said = nil
	for _, e := range path {
		if e.Message != nil {
			a.said = append(a.said, e.ID)
		}
	}
	for range steps {
		a.step()
	}
}

// compactChain compacts a conversation as a whole. What is planned is accepted, in
// whichever session the cut is, and leaves what was planned.
func compactChain(a *author, dir, id string) {
	t, keep, summary := a.t, rapid.IntRange(0, 20).Draw(a.t, "keep"), a.text()
	want := []string(nil)
	withChain(t, dir, id, func(s *session.Session) {
		plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: func(session.Entry) int { return 1 }})
		if errors.Is(err, session.ErrNothingToCompact) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendCompaction(summary, plan.FirstKept, plan.TokensBefore); err != nil {
			t.Fatalf("a compaction that was planned: %v", err)
		}
		if n := len(plan.Kept); n > keep && plan.Over != n-keep {
			t.Fatalf("%d entries are kept, %d over the limit of %d", n, plan.Over, keep)
		}
		want = append(slices.Clip(atoms(plan.Kept)), spoken(session.RoleSystem, summary)...)
	})
	if want == nil {
		return
	}
	got := chainAtoms(t, dir, id)
	slices.Sort(want) // where the summary stands, others say
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the context is not what was planned (-planned +is):\n%s", diff)
	}
}

// chainAtoms are what the sessions of a conversation have, opened as one.
func chainAtoms(t *rapid.T, dir, id string) (list []string) {
	withChain(t, dir, id, func(s *session.Session) {
		c, err := s.Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list = atoms(c.Entries)
	})
	return list
}

// withChain calls f with the sessions of a conversation, opened as one.
func withChain(t *rapid.T, dir, id string, f func(*session.Session)) {
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	chain, err := session.FindChain(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.OpenChain(t.Context(), st, chain, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f(s)
}

// What a program does to a chat by its key, others read as the chat itself does.
func TestAllAgreeOnAKeyedChat(t *testing.T) {
	root := t.TempDir()
	runs := 0
	soak.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, strconv.Itoa(runs))
		const key = "chat:1"
		chatByKey(&author{t: t}, dir, key, rapid.IntRange(1, 30).Draw(t, "steps"))
		id, err := session.KeyID(key)
		if err != nil {
			t.Fatal(err)
		}
		want := atoms(contextOf(t, dir, id).Entries)
		for who, got := range map[string][]string{
			"keyed":           builtContext(t, dir, key),
			"conversation":    conversationAtoms(t, dir, id),
			"coppice context": printedContext(t, dir, "context", key, "--json"),
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("session.Context and %s differ (-session +other):\n%s", who, diff)
			}
		}
	})
}

// chatByKey does all that can be done to a chat by its key.
func chatByKey(a *author, dir, key string, steps int) {
	sm := keyed.New(&keyed.Options{Dir: dir})
	defer sm.Close()
	add := func(m keyed.Message) {
		if err := sm.Add(key, m); err != nil {
			a.t.Fatal(err)
		}
	}
	for i := range steps {
		switch what := rapid.IntRange(0, 12).Draw(a.t, "what"); {
		case i == 0 || what < 3:
			add(keyed.Message{Role: "user", Content: a.text()})
		case what < 5:
			add(keyed.Message{Role: "assistant", Content: a.text(), ReasoningContent: a.text()})
		case what < 7 || what < 9 && len(a.waiting) == 0:
			a.n++
			call := fmt.Sprintf("call<%d>", a.n)
			add(keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: call, Name: "dig"}}})
			a.waiting = append(a.waiting, call)
		case what < 9:
			add(keyed.Message{Role: "tool", ToolCallID: a.waiting[0], Content: a.text()})
			a.waiting = a.waiting[1:]
		case what == 9:
			add(keyed.Message{Role: "system", Content: a.text()})
		case what == 10:
			sm.SetSummary(key, a.text())
		case what == 11:
			sm.TruncateHistory(key, rapid.IntRange(0, 8).Draw(a.t, "keep"))
		default:
			sm.SetHistory(key, []keyed.Message{{Role: "system", Content: a.text()}, {Role: "user", Content: a.text()}})
			a.waiting = nil
		}
	}
	if err := sm.Save(key); err != nil {
		a.t.Fatal(err)
	}
}
