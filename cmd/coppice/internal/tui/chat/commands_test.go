package chat_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// runs types a command and waits for what it shows.
func (p *person) runs(command string, want ...string) {
	p.t.Helper()
	p.types(command, enter)
	p.sees(want...)
}

func TestHelpListsEveryCommand(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.runs("/help", "Ctrl-D leaves")
	for name := range strings.FieldsSeq("new list load tree branch fork label compact undo context model system thinking export search image edit tools approve help exit retry resume") {
		p.sees("  /" + name + " ")
	}
	p.runs("/ex", "/ex could be /export or /exit")
	p.runs("/xyz", "there is no command /xyz")
	p.leaves("/quit", enter)
}

func TestCommandsNeedAConversation(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	for i, name := range strings.Fields("tree fork retry resume compact undo context export:x.md label:x branch:x") {
		p.types("/"+strings.Replace(name, ":", " ", 1), enter)
		if !p.term.Wait(func(all string) bool { return strings.Count(all, "nothing was said yet") > i }) {
			t.Fatalf("/%s:\n%s", name, p.term)
		}
	}
	for i, name := range strings.Fields("load branch label image search export") {
		p.types("/"+name, enter)
		if !p.term.Wait(func(all string) bool { return strings.Count(all, "usage: /") > i }) {
			t.Fatalf("/%s:\n%s", name, p.term)
		}
	}
	p.runs("/approve", "no call waits")
	p.leaves(ctrlD)
}

func TestNewListAndLoad(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("about peas")
	p.runs("/new Beans", "a new conversation")
	p.says("about beans")
	p.runs("/list", "about peas", "◉ ", "Beans", "2      51  about peas", "2      52  Beans") // messages and tokens
	p.runs("/list many", "usage: /list")
	p.runs("/load about peas", "Restored session with 2 messages")
	p.says("more about peas")
	p.runs("/load nowhere", "no such session")
	p.says("still about peas")
	p.leaves(ctrlD)
	got := map[string]int{}
	for _, s := range p.sessions() {
		got[s.Title] = s.Messages
	}
	if got["about peas"] != 6 || got["Beans"] != 2 {
		t.Errorf("the sessions are %v", got)
	}
}

// TestListCountsAllBranches: a list has the messages of all branches, and a conversation that is
// loaded those that lead to its end.
func TestListCountsAllBranches(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{Title: "Hazel"})
	if err != nil {
		t.Fatal(err)
	}
	say := func(text, parent string) string {
		said := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
		added, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, Parent: parent, Message: said})
		if err != nil {
			t.Fatal(err)
		}
		return added.Entry
	}
	root := say("How do I cut it?", "")
	say("In winter?", root)
	say("With which saw?", root)
	p := sit(t, h, nil)
	p.runs("/list", "     3       –  Hazel")
	p.runs("/load Hazel", "Restored session with 2 messages")
	p.leaves(ctrlD)
}

func TestBranchTreeLabelForkAndRetry(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("say one")
	p.runs("/label start", "has the label start")
	p.says("say two")
	p.says("/branch start")
	p.sees("the next message follows", "/branch ")
	p.says("say three")
	p.sees("branch 2 of 2")
	p.runs("/tree", "[start]", "← leaf", "├─○")
	p.says("/branch start summary")
	p.says("/branch nowhere")
	p.sees("nowhere")
	p.says("say four")
	p.says("/retry")
	p.runs("/fork", "this is the copy", "goes back")
	p.says("say five")
	p.leaves(ctrlD)
	if n := len(p.sessions()); n != 2 {
		t.Errorf("there are %d sessions, want the original and the copy", n)
	}
}

// A project's settings take effect when the person says so, and what the model is told is no
// secret.
func TestAProjectIsTrustedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{".coppice.toml": "tools = ['read']\nsystem = 'rules.txt'\n", "rules.txt": "Speak of beans.", "AGENTS.md": "Peas are green."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened := openHome(t)
	in := func(o *chat.Options) { o.Request.CWD = dir }
	p := sit(t, opened, in)
	p.sees(".coppice.toml and AGENTS.md in "+dir, "│ tools: read", "│ notes for agents: AGENTS.md (15 bytes)", "use it?")
	p.types("n", enter)
	p.sees("not used")
	p.runs("/system", "the model is told nothing")
	p.leaves(ctrlD)
	p = sit(t, opened, in)
	p.sees("use it?")
	p.types("y", enter)
	p.sees("\nin "+dir, "tools: read")
	p.runs("/system", "│ Speak of beans.", "│ Working directory:", "│ Date: ", "│ Peas are green.")
	p.says("hello")
	p.leaves(ctrlD)
	p = sit(t, opened, in)
	p.sees("tools: read")
	p.doesNotSee("use it?")
	p.leaves(ctrlD)
	if err := os.WriteFile(filepath.Join(dir, ".coppice.toml"), []byte("tools = ['all']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = sit(t, opened, in)
	p.sees("│ tools: all", "use it?")
	p.leaves(ctrlD)
}

// What was typed before a project is shown is no answer about it. It goes to the prompt.
func TestTypingAheadTrustsNoProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".coppice.toml"), []byte("tools = ['all']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened := openHome(t)
	p := sit(t, opened, func(o *chat.Options) {
		o.Request.CWD, o.Prompt = dir, "say asked on the command line"
		o.Keys = io.MultiReader(strings.NewReader("y\rsay one"), o.Keys)
	})
	p.sees("│ tools: all", "use it? y yes · n no ›")
	p.types("n", enter)
	p.sees("not used", statusMark, "› y\n  say one")
	p.leaves(ctrlC, ctrlD)
	if found, err := opened.Trusted(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("these are trusted: %+v, %v", found, err)
	}
}

func TestTheOutputOfACommandIsShownWhileItRuns(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.Tools, o.Request.Allow = []string{"bash"}, []string{"bash"} })
	p.types(`call bash {"command":"echo one; echo two; sleep 100"}`, enter)
	p.sees("│ one\n  │ two\n", "running bash")
	p.types("\x1b")
	p.sees("stopped")
	p.leaves(ctrlD)
}

func TestTreeHasWhatOthersWrote(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("say one")
	if _, err := p.home.Entries.Append(t.Context(), home.AppendRequest{Session: home.LastSession, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("from elsewhere")},
	}}); err != nil {
		t.Fatal(err)
	}
	p.runs("/tree", "from elsewhere")
	p.leaves(ctrlD)
}

func TestCompactAndUndo(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	for range 3 {
		p.says("repeat 200 a few beans")
	}
	p.says("/compact what grows")
	p.sees("── compacted from")
	p.says("/undo")
	p.sees("taken back")
	p.types("/undo", enter)
	p.sees("✗ no compaction is in force, so there is nothing to undo\n")
	p.leaves(ctrlD)
}

// A path with spaces can be typed as Tab completes it, in quotes, and as a shell takes it.
func TestPathsWithSpaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"my notes.md", "more notes.md", "third.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("Peas are green."), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.CWD = dir })
	p.runs("/context my notes.md", "1 file will be sent")
	p.runs(`/context "more notes.md" my\ notes.md third.md`, "3 files will be sent")
	p.runs(`/context -"more notes.md" -third.md`, "2 files are no longer sent")
	p.runs("/context no notes.md", "✗ context file: open ")
	p.leaves(ctrlD)
}

func TestContextModelThinkingImageAndExport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := sit(t, openHome(t), nil)
	p.runs("/context "+file("notes.md", "Peas are green."), "1 file will be sent")
	p.runs("/context "+filepath.Join(dir, "none.md"), "none.md")
	p.runs("/image "+file("dot.gif", "GIF89a"), "goes with the next message")
	p.runs("/image "+file("text.gif", "text"), "looks like text")
	p.says("say yes")
	p.runs("/context", "<context source=", "[image/gif 6 B] say yes", "3 entries · ")
	p.runs("/model", "◉   1  offline/parrot", "a window of 32,768 tokens", "more need a key")
	p.runs("/model 1", "› /model 1\n  offline/parrot")
	p.runs("/model gpt-5", "there is no key")
	p.runs("/model nobody/nothing", "✗")
	p.runs("/thinking", "the provider's default")
	p.runs("/thinking high", "thinking: high")
	p.runs("/thinking hard", "✗")
	p.says("say again")
	out := filepath.Join(dir, "out.md")
	p.runs("/export "+out, "wrote")
	p.runs("/export "+out, "left alone")
	p.runs("/search beans", "nothing found")
	p.runs("/search yes", "/load ID")
	p.runs("/search yes again", "no text has all of this", "/load ID")
	p.leaves(ctrlD)
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), "say again") {
		t.Errorf("the export is %q, %v", text, err)
	}
	c := p.last()
	now, err := c.Context(session.ContextOptions{})
	if err != nil || now.ThinkingLevel != "high" {
		t.Errorf("the thinking level is %q, %v", now.ThinkingLevel, err)
	}
}

func TestToolsAndApprove(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.runs("/tools", "the model has no tools")
	p.says(`call read {"path":"x"}`)
	p.sees("I have no tool read")
	p.runs("/tools read,bash", "  read", "  bash")
	p.doesNotSee("  write ")
	p.runs("/tools hammer", "hammer")
	p.runs("/approve bash(echo *)", "allowed without asking: bash(echo *)")
	p.runs("/approve bash(", "✗")
	p.says(`call bash {"command":"echo hello"}`)
	p.sees("bash answered: hello")
	p.runs("/tools none", "none\n  the model has no tools")
	p.leaves(ctrlD)
}

func TestResumeGoesOnWithWhatWasInterrupted(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, func(o *chat.Options) { o.Request.Tools = []string{"bash"} })
	p.types(`call bash {"command":"echo beans"}`, enter)
	p.sees("y yes")
	p.types("later", enter)
	p.sees("/approve decides")
	p.leaves(ctrlD)
	p = sit(t, opened, func(o *chat.Options) {
		o.Request.Session = home.LastSession
		o.Request.Tools = []string{"bash"}
	})
	p.sees("it waits for approval", "/resume continues with 1 unfinished call")
	p.runs("/tools none", "none\n  the model has no tools")
	p.runs("/approve", "calls wait for approval, and their tools are not in use: bash")
	p.runs("/tools bash", "bash")
	p.types("/approve", enter)
	p.sees("y yes")
	p.types("yes", enter)
	p.sees("bash answered: beans")
	p.runs("/resume", "nothing to resume")
	p.leaves(ctrlD)
}

// A message that cannot be sent because another chat is at work is not lost.
func TestAMessageThatHasToWaitIsInThePromptAgain(t *testing.T) {
	t.Parallel()
	opened := slowHome(t, "half of it")
	first := sit(t, opened, nil)
	first.types("go on", enter)
	first.sees("half of it")
	p := restored(t, opened, home.LastSession)
	p.types("and the beans?", enter)
	p.sees("the message was not sent; it is in the prompt again", "\n› and the beans?")
	p.leaves(ctrlC, ctrlD)
	first.types("\x1b")
	first.sees("stopped")
	first.leaves(ctrlD)
}

func TestAnUnansweredMessageIsAnsweredByResume(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("fail unavailable")
	p.sees("✗", "/resume continues")
	p.leaves(ctrlD)
	p = restored(t, opened, home.LastSession)
	p.sees("was not answered")
	p.leaves(ctrlD)
}

func TestADraftIsShownAsAnAnswerThatBrokeOff(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("say one")
	p.leaves(ctrlD)
	c := p.last()
	draft := session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: session.CustomDraft, Data: map[string]any{"text": "half an answer"}}}
	question := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("say two")}}}
	if _, err := c.AppendAll(question, draft); err != nil {
		t.Fatal(err)
	}
	p = restored(t, opened, home.LastSession)
	p.sees("  half an answer", "broke off here; /resume asks again")
	p.says("/resume")
	p.sees("› /resume\n\n  two\n")
	if n := strings.Count(p.term.String(), "half an answer"); n != 1 {
		t.Errorf("the draft is shown %d times:\n%s", n, p.term)
	}
	p.leaves(ctrlD)
}

func TestLongErrorsAreShownInFull(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	name := ""
	for i := range 60 {
		name += fmt.Sprintf("%03d.", i)
	}
	p.types("/context "+name, enter)
	p.sees("059.: ")
	_, shown, _ := strings.Cut(p.term.String(), "✗")
	if got := strings.Join(strings.Fields(shown), ""); !strings.Contains(got, name) {
		t.Errorf("the error is %q", got)
	}
	p.leaves(ctrlD)
}

func TestACompactionThatFailsIsReportedOnce(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("say one")
	p.says("/compact")
	p.sees("nothing to compact")
	if n := strings.Count(p.term.String(), "✗"); n != 1 {
		t.Errorf("there are %d errors:\n%s", n, p.term)
	}
	p.leaves(ctrlD)
}

func TestAConversationThatWasRemoved(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("say one")
	if _, err := p.home.Sessions.Remove(t.Context(), home.RemoveRequest{Session: home.LastSession}); err != nil {
		t.Fatal(err)
	}
	p.types("say two", enter)
	p.sees("was removed")
	p.runs("/new", "a new conversation")
	p.says("say three")
	p.leaves(ctrlD)
	p.doesNotSee("/retry")
	p.doesNotSee(".jsonl")
}

func TestFilesStayWithTheirConversation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes.md")
	if err := os.WriteFile(file, []byte("Peas are green."), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sit(t, openHome(t), nil)
	p.says("say one")
	p.runs("/context "+file, "1 file will be sent")
	p.runs("/new", "a new conversation")
	p.says("say two")
	p.leaves(ctrlD)
	if n, err := p.last().MessageCount(); err != nil || n != 2 {
		t.Errorf("the new conversation has %d messages, %v", n, err)
	}
}

func TestTheContextBeginsWithTheNumberOfTheStatusLine(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.Tools = []string{home.AllTools} })
	p.says("say one")
	p.runs("/context", "counted entry by entry")
	_, after, _ := strings.Cut(p.term.String(), statusMark)
	number, _, _ := strings.Cut(after, " of ")
	if n := strings.Count(p.term.String(), number+" of 32,768 tokens"); n != 2 {
		t.Errorf("%q is shown %d times:\n%s", number, n, p.term)
	}
	p.leaves(ctrlD)
}

func TestTabCompletesCommands(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.types("/he\t")
	p.sees("› /help")
	p.types(ctrlC, "/t\t")
	p.sees("/tree  /thinking  /tools")
	p.types("h\t")
	p.sees("› /thinking")
	p.leaves(ctrlC, ctrlC, ctrlC)
}

// The directory of the chat does not change in silence.
func TestNewSaysWhereItIs(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	other := garden(t)
	p := sit(t, opened, func(o *chat.Options) { o.Request.CWD = other })
	p.says("say one")
	p.leaves(ctrlD)
	p = sit(t, opened, nil)
	p.runs("/new", "a new conversation")
	p.doesNotSee("it is about")
	p.runs("/load last", "Restored session")
	p.runs("/new", "  it is about ")
	p.leaves(ctrlD)
}
