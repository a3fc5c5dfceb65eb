package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screentest"
	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// person sits at a terminal and chats.
type person struct {
	t    *testing.T
	home *home.Home
	term *screentest.Terminal
	keys *io.PipeWriter
	done chan error
}

func openHome(t *testing.T, given ...home.Setting) *home.Home {
	t.Helper()
	given = append(given, home.Setting{Key: home.SettingSync, Value: "never"})
	settings, err := home.LoadSettings(func(string) string { return "" }, given...)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := home.Open(t.Context(), filepath.Join(t.TempDir(), "sessions"), &home.Options{Settings: settings, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// sit starts a chat. Tools work in a directory of their own.
func sit(t *testing.T, opened *home.Home, change func(o *chat.Options)) *person {
	t.Helper()
	read, write := io.Pipe()
	p := &person{t: t, home: opened, term: screentest.New(80, 24), keys: write, done: make(chan error, 1)}
	o := chat.Options{
		Home: opened, Request: home.ChatRequest{CWD: t.TempDir()}, Keys: read, Screen: screen.New(p.term, p.term.Size), Color: true,
		Explain: func(err error) (string, string) { return err.Error(), "" },
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	go func() { p.done <- chat.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		_ = write.Close()
		for _, fault := range p.term.Faults() {
			t.Errorf("the terminal got %s", fault)
		}
	})
	return p
}

// restored starts a chat that goes on with a conversation.
func restored(t *testing.T, opened *home.Home, id string) *person {
	return sit(t, opened, func(o *chat.Options) { o.Request.Session, o.Request.CWD = id, "" })
}

const (
	enter  = "\r"
	ctrlC  = "\x03"
	ctrlD  = "\x04"
	up     = "\x1b[A"
	altRet = "\x1b\r"
)

// types types text.
func (p *person) types(text ...string) {
	p.t.Helper()
	for _, s := range text {
		if _, err := p.keys.Write([]byte(s)); err != nil {
			p.t.Fatalf("typing %q: %v\n%s", s, err, p.term)
		}
	}
}

// sees waits until the terminal shows all of some texts.
func (p *person) sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !p.term.Wait(func(all string) bool { return strings.Contains(all, text) }) {
			p.t.Fatalf("%q is not on the terminal:\n%s", text, p.term)
		}
	}
}

// seesNoMore waits until a text is gone.
func (p *person) seesNoMore(text string) {
	p.t.Helper()
	if !p.term.Wait(func(all string) bool { return !strings.Contains(all, text) }) {
		p.t.Fatalf("%q is still on the terminal:\n%s", text, p.term)
	}
}

func (p *person) doesNotSee(text string) {
	p.t.Helper()
	if strings.Contains(p.term.String(), text) {
		p.t.Errorf("%q is on the terminal:\n%s", text, p.term)
	}
}

// says sends a message and waits for the whole answer.
func (p *person) says(text string) {
	p.t.Helper()
	before := strings.Count(p.term.String(), statusMark)
	p.types(text, enter)
	if !p.term.Wait(func(all string) bool { return strings.Count(all, statusMark) > before }) {
		p.t.Fatalf("%q was not answered:\n%s", text, p.term)
	}
}

// statusMark is a part of the line after each answer.
const statusMark = "offline/parrot · "

// leaves waits for the end of the chat.
func (p *person) leaves(keys ...string) {
	p.t.Helper()
	p.types(keys...)
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Fatalf("the chat ended with %v", err)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("the chat does not end:\n%s", p.term)
	}
}

// sessions lists what the home has.
func (p *person) sessions() []home.SessionInfo {
	p.t.Helper()
	list, err := p.home.Sessions.List(p.t.Context(), home.ListRequest{})
	if err != nil {
		p.t.Fatal(err)
	}
	return list.Sessions
}

// last opens the conversation that was active last.
func (p *person) last() *home.Conversation {
	p.t.Helper()
	c, err := p.home.Conversation(p.t.Context(), home.OpenRequest{Session: home.LastSession})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAnAnswerIsDrawnAndTheSessionIsCreatedWithTheFirstMessage(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.sees("offline/parrot", "built in", "›")
	if n := len(p.sessions()); n != 0 {
		t.Errorf("there are %d sessions before anything was said", n)
	}
	p.says("say # A title" + altRet + "say Some **bold** words." + altRet + "think about it")
	p.sees("› say # A title\n  say Some **bold** words.\n  think about it\n\n  ┊ about it\n\n  A title\n  Some bold words.\n\n  ")
	p.sees(" of 32,768 tokens")
	if got := p.sessions(); len(got) != 1 || got[0].Messages != 2 {
		t.Errorf("the sessions are %+v", got)
	}
	p.leaves(ctrlD)
}

func TestARestoredConversationIsShownAndGoesOn(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("first things first")
	p.leaves("/exit", enter)
	p = restored(t, opened, home.LastSession)
	p.sees("You said: first things first\n\nRestored session with 2 messages\ncoppice chat · offline/parrot")
	p.types(up)
	p.sees("› first things first")
	p.says(" again")
	p.sees("You said: first things first again")
	p.leaves(ctrlC, ctrlC)
	if got := p.sessions(); len(got) != 1 || got[0].Messages != 4 {
		t.Errorf("the sessions are %+v", got)
	}
}

// What programs said in the person's name is not offered again as what the person said.
// A branch that was left is not what is restored.
func TestRestoredMessagesAreThoseOfTheBranch(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("about peas")
	p.runs("/retry", "")
	p.leaves("/exit", enter)
	if got := p.sessions(); len(got) != 1 || got[0].Messages != 3 {
		t.Fatalf("the sessions are %+v", got)
	}
	p = restored(t, opened, home.LastSession)
	p.sees("Restored session with 2 messages\n")
	p.leaves(ctrlD)
}

func TestTheHistoryHasWhatThePersonSaid(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	made, err := opened.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*session.MessageEntry{
		{Role: session.RoleUser, Content: []session.Content{session.Text("my own words")}},
		{Role: session.RoleUser, Content: []session.Content{session.Text("a reminder")}, Metadata: map[string]any{session.MetaInjected: true}},
	} {
		if _, err := opened.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	p := restored(t, opened, made.Session)
	p.sees("Restored session")
	p.types(up)
	p.sees("› my own words")
	p.leaves(ctrlC, ctrlD) // the first empties the prompt
}

func TestWhatIsPastedIsOneMessage(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.types("\x1b[200~say one\r\nsay two\rsay \x1b]0;x\x07three\x1b[201~")
	p.sees("› say one\n  say two\n  say �]0;x�three")
	p.says("")
	p.sees("  one\n  two\n  �]0;x�three")
	p.leaves(ctrlD)
	c := p.last()
	found, err := c.Context(session.ContextOptions{})
	if err != nil || len(found.Entries) != 2 {
		t.Fatalf("the messages are %+v, %v", found, err)
	}
	if e := found.Entries[0]; session.TextOf(e.Message.Content) != "say one\nsay two\nsay \x1b]0;x\x07three" {
		t.Errorf("the message is %q", session.TextOf(e.Message.Content))
	}
}

// slowHome is a home whose model says something and then falls silent, until the
// connection ends.
func slowHome(t *testing.T, says string) *home.Home {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal(says)
		fmt.Fprintf(w, "data: {\"id\":\"r1\",\"model\":\"slow\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s}}]}\n\n", text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return openHome(t,
		home.Setting{Key: home.SettingProvider, Value: "openai-chat"},
		home.Setting{Key: home.SettingModel, Value: "slow"},
		home.Setting{Key: home.SettingBaseURL, Value: server.URL})
}

func TestCtrlCStopsTheAnswerAndKeepsWhatArrived(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, "The **first** half"), nil)
	p.types("go on", enter)
	p.sees("  The first half", "Esc stops")
	p.types("typed ahead", enter, "and a draft")
	p.sees("› typed ahead", "› and a draft")
	p.types(ctrlC)
	p.sees("stopped; what arrived is kept", "› typed ahead\n  and a draft")
	p.leaves(ctrlC, ctrlC, ctrlC)
	c := p.last()
	e, err := c.Entry(mustEnd(t, c))
	if err != nil || e.Message == nil || session.TextOf(e.Message.Content) != "The **first** half" || e.Message.StopReason != provider.StopCancelled {
		t.Errorf("the last entry is %+v, %v", e.Message, err)
	}
	why, err := p.home.Entries.Why(t.Context(), home.WhyRequest{Session: home.LastSession})
	if err != nil || len(why.Requests) != 1 || why.Requests[0].Error != "stopped by the user" {
		t.Errorf("the requests are %+v, %v", why, err)
	}
}

// What is said about an answer fits the terminal, and an answer without text is no riddle.
func TestTheStatusIsWholeAndAnEmptyAnswerSaysSo(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.term.Resize(40)
	p.types("say ", enter)
	p.sees("■ the answer is empty", " · offline/parrot\n  ", " tokens (0 %)\n")
	p.leaves(ctrlD)
}

func TestEscStopsTheAnswerAndSwallowsNothing(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, "half of it"), nil)
	p.types("go on", enter)
	p.sees("half of it", "Esc stops")
	p.types("\x1b")
	p.sees("stopped; what arrived is kept")
	p.types(ctrlC)
	p.sees("Ctrl-C again leaves")
	p.types("\x1b")
	p.seesNoMore("Ctrl-C again leaves") // it has had its time for the rest of a sequence
	p.types("/help", enter)
	p.sees("list the latest conversations")
	p.leaves(ctrlD)
}

func TestNothingIsKeptOfAnAnswerThatDidNotBegin(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, ""), nil)
	p.types("go on", enter)
	p.sees("answering")
	p.types(ctrlC)
	p.sees("■ stopped  /resume")
	p.leaves(ctrlD)
	p.doesNotSee("what arrived is kept")
	p.doesNotSee("context canceled")
}

func TestAnotherWriterIsAnnouncedOnceAndPlainly(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, "half an answer"), nil)
	for i := range 2 {
		p.types("go on", enter)
		if !p.term.Wait(func(all string) bool { return strings.Count(all, "half an answer") > i }) {
			t.Fatalf("no answer:\n%s", p.term)
		}
		if _, err := p.last().AppendAll(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleUser, Content: []session.Content{session.Text("me too")},
		}}); err != nil {
			t.Fatal(err)
		}
		p.types(ctrlC)
		if !p.term.Wait(func(all string) bool { return strings.Count(all, "stopped") > i }) {
			t.Fatalf("it does not stop:\n%s", p.term)
		}
	}
	p.leaves(ctrlD)
	if n := strings.Count(p.term.String(), "another program writes here too"); n != 1 {
		t.Errorf("the other writer is announced %d times:\n%s", n, p.term)
	}
	p.doesNotSee("conflict")
}

func mustEnd(t *testing.T, c *home.Conversation) string {
	t.Helper()
	id, err := c.Resolve(home.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A terminal that goes away, or a signal, ends the chat in the middle of an answer. What
// arrived is kept then as well.
func TestLeavingInTheMiddleKeepsWhatArrived(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, "half an answer"), nil)
	p.types("go on", enter)
	p.sees("half an answer")
	_ = p.keys.Close()
	p.leaves()
	if got := p.sessions(); len(got) != 1 || got[0].Messages != 2 {
		t.Errorf("the sessions are %+v", got)
	}
}

func TestAnswersFitTheTerminalAfterAResize(t *testing.T) {
	t.Parallel()
	resized := make(chan os.Signal, 1)
	words := strings.Repeat("some words of an answer ", 20)
	p := sit(t, slowHome(t, words), func(o *chat.Options) { o.Resized = resized })
	p.types("go on", enter)
	p.sees("some words of an answer")
	p.term.Resize(40)
	resized <- os.Interrupt // any signal will do
	p.sees("  some words of an answer some words of\n  an answer")
	p.types(ctrlC)
	p.sees("stopped")
	p.types("a long message that has to be broken into two rows")
	p.sees("› a long message that has to be broken")
	p.leaves(ctrlC, ctrlC, ctrlC)
}

func TestCtrlCEmptiesThePromptFirst(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.types("nothing of this")
	p.sees("› nothing of this")
	p.types(ctrlC)
	p.seesNoMore("nothing of this")
	p.types(ctrlC)
	p.sees("Ctrl-C again leaves")
	p.types("x", "\x7f", ctrlC) // something else was typed in between
	p.sees("Ctrl-C again leaves")
	p.leaves(ctrlC)
}

// TestWhatIsTypedAheadIsSentInOrder: the model may hear several messages in one request or one
// after the other, depending on when they arrive. Either way each is in the conversation once,
// in order, and a command that follows them works on what they led to.
func TestWhatIsTypedAheadIsSentInOrder(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Prompt = "say zero" })
	p.types("say one\rsay two\r/label here\r/exit\r")
	p.leaves()
	p.sees("› say zero\n", "› say one\n", "› say two\n\n  two", "has the label here")
	c, err := p.last().Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for i := range c.Entries {
		if m := c.Entries[i].Message; m.Role == session.RoleUser {
			said = append(said, session.TextOf(m.Content))
		}
	}
	if want := []string{"say zero", "say one", "say two"}; !slices.Equal(said, want) {
		t.Errorf("the conversation has %q, want %q", said, want)
	}
	labels, err := p.last().Labels()
	if end := c.Entries[len(c.Entries)-1]; err != nil || labels[end.ID] != "here" || session.TextOf(end.Message.Content) != "two" {
		t.Errorf("the labels are %v, %v; the conversation ends with %+v", labels, err, end.Message)
	}
}

// Whoever approves a call sees which file it changes and all that it would run, however
// long that is.
func TestNothingOfACallIsHiddenWhenItAsks(t *testing.T) {
	t.Parallel()
	dir, deep := filepath.Join(t.TempDir(), "work"), strings.Repeat("deep/", 30)
	for _, name := range []string{filepath.Join(dir, deep), filepath.Join(dir, "..", strings.Repeat("long/", 30))} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, deep, "end.go"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sit(t, openHome(t), func(o *chat.Options) {
		o.Request.CWD, o.Request.Tools = dir, []string{home.AllTools}
	})
	p.says(`call read {"path":"` + deep + `end.go"}`) // only what could run asks
	for call, want := range map[string]string{
		`write {"path":"docs/notes/` + strings.Repeat("./", 40) + `../../Makefile","content":"all:"}`: "it writes Makefile",
		`write {"path":"../` + strings.Repeat("long/", 30) + `end.txt","content":"x"}`:                "end.txt",
		`edit {"path":"` + deep + `end.go","old_string":"a","new_string":"b"}`:                        "end.go",
		`bash {"command":"` + strings.Repeat("echo fine; ", 30) + `rm precious"}`:                     "rm precious",
		`bash {"command":"echo one\necho two\n\nrm treasure"}`:                                        "│ rm treasure",
	} {
		answers := strings.Count(p.term.String(), statusMark)
		p.types("call "+call, enter)
		if !p.term.Wait(func(all string) bool {
			return strings.Contains(all, "y yes") && strings.Contains(all[strings.LastIndex(all, "\n  → ")+1:], want)
		}) {
			t.Fatalf("%q is not below the call:\n%s", want, p.term)
		}
		p.types("n", enter)
		p.term.Wait(func(all string) bool { return strings.Count(all, statusMark) > answers })
	}
	p.leaves(ctrlD)
}

func TestCallsAreApprovedOneByOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := sit(t, openHome(t), func(o *chat.Options) {
		o.Request.CWD, o.Request.Tools = dir, []string{home.AllTools}
	})
	write := func(name string) string { return `call write {"path":"` + name + `","content":"green\npeas\n"}` }
	p.types(write("a.txt"), enter)
	p.sees("\nin " + dir)
	p.sees("→ write a.txt +2", "│     2 +peas", "    in "+dir+"\n", "y yes")
	p.types("perhaps", enter)
	p.sees("y runs it")
	p.types("n not here", enter)
	p.sees("refused: not here", "write failed: [denied: this call was not allowed: not here]")
	p.types(write("b.txt"), enter)
	p.sees("→ write b.txt", "y yes")
	p.types("y", enter)
	p.sees("write answered")
	p.types(write("c.txt"), enter)
	p.sees("→ write c.txt", "y yes")
	p.types("a", enter)
	p.sees("from now on allow (Esc: back) › write(c.txt)")
	p.types("\x1b[D\x7f\x7f\x7fmd", enter) // which is another file
	p.sees("allowed from now on: write(c.md); that does not cover this call", "y yes")
	p.types("a", enter)
	p.types(enter)
	p.sees("allowed, from now on: write(c.txt)")
	p.says(write("c.txt")) // not asked again
	p.types(`call bash {"command":"echo one $PWD"}`, enter)
	p.sees("no rule can allow it from now on: a rule can only hold a command of plain", "y yes · n WHY no · later ›")
	p.types(ctrlC)
	p.sees("stopped")
	p.sees("/resume continues")
	p.types("/approve", enter)
	p.sees("allowed without asking: write(c.md), write(c.txt)", "y yes")
	p.types("y", enter)
	p.sees("bash answered: one")
	// Each part of a line has a rule of its own, which can be changed before it holds.
	p.types(`call bash {"command":"echo two && printf three"}`, enter)
	p.sees("→ bash echo two", "a always")
	p.types("a", enter)
	p.sees("› bash(echo two)\n", " bash(printf three)")
	p.types("\x1b[D\x17\x17bash(printf *", enter)
	p.sees("allowed, from now on: bash(echo two), bash(printf *)")
	p.sees("bash answered: two")
	p.says(`call bash {"command":"printf four && echo two"}`) // not asked again
	p.sees("bash answered: fourtwo")
	p.leaves(ctrlD)
	for name, want := range map[string]bool{"a.txt": false, "b.txt": true, "c.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is asked about stands right above the question, with every space of it.
func TestAQuestionShowsItsCallExactly(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.Tools = []string{home.AllTools} })
	p.types("\x1b[200~call ls {\"path\":\".\"}\ncall bash {\"command\":\"printf  '%s'   'a\\tb'\"}\ncall bash {\"command\":\"echo two\"}\x1b[201~", enter)
	p.sees("  │ printf  '%s'   'a⇥   b'\n", "y yes")
	p.types("y", enter)
	p.sees("  → bash echo two\n    in ")
	p.types("n", enter)
	p.sees("bash failed")
	p.leaves(ctrlD)
}

// A change is shown with its place in the file.
func TestAChangeIsShownWithTheLinesAroundIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.CWD, o.Request.Tools = dir, []string{home.AllTools} })
	p.says(`call read {"path":"a.txt"}`)
	p.types(`call edit {"path":"a.txt","old_string":"line 10\nline 11","new_string":"line ten"}`, enter)
	p.sees("  │     7  line 7\n  │     8  line 8\n  │     9  line 9\n  │    10 -line 10\n  │    11 -line 11\n" +
		"  │    10 +line ten\n  │    11  line 12\n  │    12  line 13\n  │    13  line 14\n    in " + dir)
	p.types("n", enter)
	p.sees("edit failed")
	p.leaves(ctrlD)
}

// Commands that only look work while the model answers.
func TestCommandsWorkDuringAnAnswer(t *testing.T) {
	t.Parallel()
	p := sit(t, slowHome(t, "half of it"), nil)
	p.types("go on", enter)
	p.sees("half of it")
	p.runs("/help", "list the latest conversations")
	p.runs("/list", "◉ ")
	p.runs("/tree", " user        go on") // the leaf, until a part of the answer is kept
	p.runs("/model", "slow")
	p.runs("/model offline/parrot", "\n› /model offline/parrot") // which waits
	p.sees("Esc stops")
	p.types(ctrlC)
	p.sees("stopped", "› /model offline/parrot")
	p.leaves(ctrlC, ctrlD)
}

func TestCtrlZClearsTheWayForTheShell(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) {
		s := o.Screen
		o.Suspend = func() { s.Print("$ echo hello", "hello", "$ fg") }
	})
	p.types("one"+altRet+"two", "\x1a")
	p.sees("$ fg\n› one\n  two")
	p.types("\x0c") // Ctrl-L
	p.leaves(ctrlC, ctrlC, ctrlC)
}

// What a model says and what a tool prints cannot act on the terminal: sit checks the
// faults at the end.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.Tools = []string{"bash", "read"} })
	evil := "\x1b]0;pwned\x07\x1b[2J\u202e\u009b31m"
	p.says("\x1b[200~say # " + evil + "\nsay ```go\nsay func " + evil + "\nsay ```\nthink " + evil + "\x1b[201~")
	p.types(`call bash {"command":"printf '\\033]0;pwned\\007\\n'"}`, enter)
	p.sees("y yes")
	p.types("y", enter)
	p.sees("bash answered")
	p.types("/label x\x1b[200~"+evil+"\x1b[201~", enter, "/tree", enter, "/context", enter, "/search pwned", enter, "/"+"\x1b[200~"+evil+"\x1b[201~", enter)
	p.sees("there is no command")
	p.leaves(ctrlD)
}
