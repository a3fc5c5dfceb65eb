package home_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// chat begins a chat that is closed at the end of the test.
func (h *house) chat(r home.ChatRequest, own ...agent.Tool) *home.Chat {
	h.Helper()
	c, err := h.Chat(h.Context(), home.TurnOptions{ChatRequest: r, Questions: home.DenyThem}, own...)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = c.Close() })
	return c
}

// tell sends a message and returns the answer.
func (h *house) tell(c *home.Chat, text string, images ...string) string {
	h.Helper()
	content, err := c.Prompt(text, images...)
	if err != nil {
		h.Fatal(err)
	}
	turn, err := c.Say(h.Context(), content)
	if err != nil {
		h.Fatal(err)
	}
	out, err := turn.Listen(h.Context(), nil)
	if err != nil {
		h.Fatal(err)
	}
	return session.TextOf(out.Message.Content)
}

func TestAChatCreatesItsSessionWhenSomethingIsSaid(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.chat(home.ChatRequest{Title: "Beans", CWD: "/garden"})
	if s, err := c.Status(t.Context()); err != nil || s.Model != "parrot" || s.Name != "" || s.Title != "Beans" {
		t.Errorf("the status is %+v, %v", s, err)
	}
	if _, err := c.Branch(t.Context(), home.Leaf, false); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a branch of nothing: %v", err)
	}
	if _, err := h.Chat(t.Context(), home.TurnOptions{Questions: "maybe"}); home.Describe(err).Field != "questions" {
		t.Errorf("an unknown answer to questions: %v", err)
	}
	if _, err := c.Resume(t.Context(), false); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("nothing to resume: %v", err)
	}
	if _, err := c.Compact(t.Context(), ""); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("nothing to compact: %v", err)
	}
	if names, err := h.Sessions.Short(t.Context(), home.SessionNamesRequest{All: true}); err != nil || len(names.Names) != 0 {
		t.Errorf("the sessions are %v, %v", names, err)
	}
	if got := h.tell(c, "hello"); got != "You said: hello" {
		t.Errorf("the answer is %q", got)
	}
	list, err := h.Sessions.List(t.Context(), home.ListRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].Title != "Beans" || list.Sessions[0].CWD != "/garden" {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	if chosen := c.Model(); chosen.From != home.FromDefault {
		t.Errorf("the model was chosen by %q", chosen.From)
	}
}

func TestAChatBranchesAndKnowsWhereItIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.chat(home.ChatRequest{})
	h.tell(c, "one")
	first, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: c.Conversation().ID(), Label: "start"})
	if err != nil {
		t.Fatal(err)
	}
	h.tell(c, "two")
	moved, err := c.Branch(t.Context(), "start", false)
	if err != nil || !moved.Moved || moved.Leaf != first.Target {
		t.Fatalf("moved: %+v, %v", moved, err)
	}
	if again, err := c.Branch(t.Context(), "start", false); err != nil || again.Moved {
		t.Errorf("moved again: %+v, %v", again, err)
	}
	if s, err := c.Status(t.Context()); err != nil || s.Branch != 0 || s.Branches != 1 {
		t.Errorf("the status is %+v, %v", s, err)
	}
	h.tell(c, "three")
	if s, err := c.Status(t.Context()); err != nil || s.Branch != 2 || s.Branches != 2 || s.Tokens == 0 || s.Window == 0 {
		t.Errorf("the status is %+v, %v", s, err)
	}
	if err := c.SetThinking("hard"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an unknown level: %v", err)
	}
	if err := errors.Join(c.SetThinking("low"), c.SetModel("offline/parrot"), c.SetTools(t.Context())); err != nil {
		t.Error(err)
	}
	if err := c.SetModel("nobody/nothing"); err == nil {
		t.Error("there is no such model")
	}
	if s := h.status(c.Conversation().ID()); s.Unfinished {
		t.Errorf("unfinished: %+v", s)
	}
}

// Files are loaded through the home, so that what must not be kept is not.
func TestContextFilesOfAChatAreRedacted(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	dir := t.TempDir()
	secret := "sk-ant-api03-" + strings.Repeat("Ab3dE5gH", 11) + "AA"
	path := filepath.Join(dir, "notes.md")
	if err := os.WriteFile(path, []byte("key: "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened := h.open(&home.Options{Create: true, Settings: settings(t, env{"HOME": t.TempDir(), "COPPICE_REDACT": "true"})})
	other := &house{T: t, Home: opened, dir: h.dir}
	c := other.chat(home.ChatRequest{})
	if err := c.AddFiles(path, path); err != nil {
		t.Fatal(err)
	}
	if err := c.AddFiles(filepath.Join(dir, "none.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	other.tell(c, "what is the key?")
	other.tell(c, "once more")
	id := c.Conversation().ID()
	log, err := os.ReadFile(filepath.Join(h.dir, id+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), secret) {
		t.Error("the secret is in the log")
	}
	if n := strings.Count(string(log), "<context source="); n != 1 {
		t.Errorf("the file is in the log %d times", n)
	}
}

func TestAToolboxAllowsMoreOnTheWay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.chat(home.ChatRequest{CWD: t.TempDir(), Deny: []string{"bash(rm *)"}})
	if list := c.Tools(); len(list) != 0 {
		t.Errorf("without being asked for: %v", list)
	}
	if err := c.SetTools(t.Context(), "hammer"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an unknown tool: %v", err)
	}
	err := c.SetTools(t.Context(), home.AllTools)
	list := c.Tools()
	if err != nil || len(list) != len(tools.Names()) {
		t.Fatalf("all tools: %d, %v", len(list), err)
	}
	echo := agent.Call{ID: "1", Name: "bash", Input: []byte(`{"command":"echo hello"}`)}
	remove := agent.Call{ID: "2", Name: "bash", Input: []byte(`{"command":"rm hello"}`)}
	bash := list[slices.IndexFunc(list, func(tool agent.Tool) bool { return tool.Name == "bash" })]
	if asks, _ := bash.Ask(echo); !asks {
		t.Error("nothing is allowed yet")
	}
	rules, err := c.Allow(t.Context(), "bash(echo *)", "bash(rm *)")
	if err != nil {
		t.Fatal(err)
	}
	if asks, _ := bash.Ask(echo); asks {
		t.Errorf("a tool that is in use does not obey a new rule; the rules are %q", rules)
	}
	if got, err := bash.Run(t.Context(), remove); err != nil || !got.IsError || !strings.Contains(got.Text, "denies it") {
		t.Errorf("a rule that denies: %+v, %v", got, err)
	}
	if _, err := c.Allow(t.Context(), "bash("); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a rule that makes no sense: %v", err)
	}
	if _, err := c.Allow(t.Context(), "read", "bsh"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a rule for no tool: %v", err)
	}
	if rules, err := c.Allow(t.Context()); err != nil || slices.Contains(rules, "read") {
		t.Errorf("the rules are %q, %v", rules, err)
	}
}

// Tools work where the conversation is, wherever the program is. Files are called what the
// tools call them.
func TestToolsWorkInTheConversationsDirectory(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dir, other := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(dir, "a.txt"): "beans", filepath.Join(other, "a.txt"): "peas"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := h.chat(home.ChatRequest{CWD: dir})
	h.tell(first, "hello")
	again := home.ChatRequest{Session: home.LastSession, Tools: []string{"read"}, Context: []string{filepath.Join(dir, "a.txt"), filepath.Join(other, "a.txt")}}
	c := h.chat(again)
	if got := h.tell(c, `call read {"path":"a.txt"}`); !strings.Contains(got, "beans") || c.Dir() != dir {
		t.Errorf("in %s, the answer is %q", c.Dir(), got)
	}
	now, err := c.Conversation().Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var sent strings.Builder
	for i := range now.Entries {
		if m := now.Entries[i].Message; m != nil {
			sent.WriteString(session.TextOf(m.Content) + "\n")
		}
	}
	for _, want := range []string{"<context source=\"a.txt\">\nbeans", "<context source=\"" + filepath.ToSlash(other) + "/a.txt\">\npeas"} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("the model was not sent %q:\n%s", want, sent.String())
		}
	}
	again.CWD, again.Context = other, nil
	if got := h.tell(h.chat(again), `call read {"path":"a.txt"}`); !strings.Contains(got, "peas") {
		t.Errorf("elsewhere, as asked, the answer is %q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	again.CWD = ""
	if _, err := h.Chat(t.Context(), home.TurnOptions{ChatRequest: again}); home.Describe(err).Field != "cwd" || !strings.Contains(err.Error(), dir) {
		t.Errorf("in a directory that is gone: %v", err)
	}
	again.Tools = nil
	h.chat(again) // without tools, the directory does not matter
}

func TestAToolboxRefusesRulesForToolsThatDoNotExist(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, r := range []home.ChatRequest{{Deny: []string{"bsh"}}, {Allow: []string{"read,write"}}, {Allow: []string{"Read"}}, {Allow: []string{"github_push"}}} {
		if _, err := h.Chat(t.Context(), home.TurnOptions{ChatRequest: r}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "read, write, edit, bash, grep, glob, ls, fetch, search, task") {
			t.Errorf("%v: %v", r, err)
		}
	}
	h.chat(home.ChatRequest{Allow: []string{"github_*", "search"}, Deny: []string{"Bash", "b?sh"}})
}

func TestAModelSearchesTheHomeWithItsTool(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tell(h.chat(home.ChatRequest{}), "the marigolds are orange")
	c := h.chat(home.ChatRequest{Tools: []string{"search"}})
	if got := h.tell(c, `call search {"query":"marigolds"}`); !strings.Contains(got, "orange") || strings.Contains(got, "query") { // it does not find itself
		t.Errorf("the answer is %q", got)
	}
	if got := h.tell(c, `call search {"query":"marigolds","limit":1}`); strings.Contains(got, "limit") || !strings.Contains(got, "marigolds") {
		t.Errorf("the second answer is %q", got)
	}
}

// The tools remember what was read when others are added.
func TestToolsAreTheSameAfterAChange(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := h.chat(home.ChatRequest{CWD: dir, Tools: []string{"read"}, Allow: []string{"write"}})
	h.tell(c, `call read {"path":"a"}`)
	if err := c.SetTools(t.Context(), "read", "write", "write"); err != nil {
		t.Fatal(err)
	}
	if got := h.tell(c, `call write {"path":"a","content":"two"}`); !strings.Contains(got, "replaced") {
		t.Errorf("%q", got)
	}
}

// A chat is open for long. Each turn of it finishes an interrupted redaction first, like
// everything that writes.
func TestAChatFinishesARedactionFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.chat(home.ChatRequest{})
	for range 2 { // with a new session, and with the one that is open
		if err := h.Store().Notes("").Write(t.Context(), "redact.pending", []byte(`{"all":true}`)); err != nil {
			t.Fatal(err)
		}
		h.tell(c, "hello")
		if left, err := h.Upkeep.Unfinished(t.Context()); err != nil || left.Unfinished {
			t.Errorf("unfinished: %v, %v", left, err)
		}
	}
}

// A conversation goes on with the tools that its model had, unless others are asked for.
func TestAConversationKeepsItsTools(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dir := t.TempDir()
	c := h.chat(home.ChatRequest{CWD: dir, Tools: []string{"read", "ls"}})
	h.tell(c, "hello")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	names := func(r home.ChatRequest) (names []string) {
		t.Helper()
		r.Session = home.LastSession
		again := h.chat(r)
		for _, tool := range again.Tools() {
			names = append(names, tool.Name)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		return names
	}
	for want, r := range map[string]home.ChatRequest{
		"read ls": {}, "": {Tools: []string{home.NoTools}}, "grep": {Tools: []string{"grep"}},
	} {
		if got := strings.Join(names(r), " "); got != want {
			t.Errorf("%+v: the tools are %q", r.Tools, got)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := names(home.ChatRequest{}); len(got) > 0 {
		t.Errorf("in a directory that is gone the tools are %q", got)
	}
	h.say(session.Header{ID: "theirs", CWD: t.TempDir(), Extra: []session.Field{{Name: session.OriginField, Value: []byte(`{"format":"pi","id":"x","path":"/x"}`)}}}, "hello")
	c = h.chat(home.ChatRequest{Session: "theirs", Tools: []string{"read"}})
	h.tell(c, "hello")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(home.ChatRequest{}); len(got) > 0 {
		t.Errorf("an imported conversation has the tools %q", got)
	}
}

// A file that cannot be read leaves no empty session behind. One that goes away later is
// reported once, and again if it was there once more.
func TestContextFilesOfAChat(t *testing.T) {
	t.Parallel()
	var gone []string
	settings, err := home.LoadSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), filepath.Join(t.TempDir(), "sessions"), &home.Options{Settings: settings, Create: true, Notify: func(n home.Notice) {
		if n.Kind == home.FileGone {
			gone = append(gone, n.Path)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	file := filepath.Join(t.TempDir(), "notes.md")
	c, err := h.Chat(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{Context: []string{file}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hello := []session.Content{session.Text("hello")}
	if _, err := c.Say(t.Context(), hello); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	if list, err := h.Sessions.List(t.Context(), home.ListRequest{}); err != nil || len(list.Sessions) > 0 {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	for range 2 {
		if err := os.WriteFile(file, []byte("Beans."), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			turn, err := c.Say(t.Context(), hello)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := turn.Listen(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(file)
		}
	}
	if !slices.Equal(gone, []string{file, file}) {
		t.Errorf("told about %q", gone)
	}
}
