package home_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// listener hears a turn, and can be waited for.
type listener struct {
	t *testing.T

	mu     sync.Mutex
	events []home.TurnEvent
	more   chan struct{} // closed at the next event

	done   chan struct{}
	result *home.TurnResult
	err    error
}

func listen(t *testing.T, hear func(send func(home.TurnEvent) error) (*home.TurnResult, error)) *listener {
	t.Helper()
	l := &listener{t: t, more: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.result, l.err = hear(func(e home.TurnEvent) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
			close(l.more)
			l.more = make(chan struct{})
			return nil
		})
	}()
	return l
}

// until waits for the first event of a type.
func (l *listener) until(is agent.EventType) home.TurnEvent {
	l.t.Helper()
	for {
		l.mu.Lock()
		at := slices.IndexFunc(l.events, func(e home.TurnEvent) bool { return e.Type == is })
		more := l.more
		var found home.TurnEvent
		if at >= 0 {
			found = l.events[at]
		}
		l.mu.Unlock()
		if at >= 0 {
			return found
		}
		select {
		case <-more:
		case <-l.done:
			if l.mu.Lock(); !slices.ContainsFunc(l.events, func(e home.TurnEvent) bool { return e.Type == is }) {
				l.t.Fatalf("there was no %s: %v, %v", is, types(l.events), l.err)
			}
			l.mu.Unlock()
		}
	}
}

// end waits for the end of the turn.
func (l *listener) end() *home.TurnResult {
	l.t.Helper()
	<-l.done
	if l.err != nil {
		l.t.Fatal(l.err)
	}
	return l.result
}

func types(events []home.TurnEvent) (all []agent.EventType) {
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

func (h *house) prompt(ctx context.Context, o home.TurnOptions, text string) *listener {
	h.Helper()
	return listen(h.T, func(send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return h.Turns.Prompt(ctx, home.PromptRequest{TurnOptions: o, Text: text}, send)
	})
}

func (h *house) resume(o home.TurnOptions) *listener {
	h.Helper()
	return listen(h.T, func(send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return h.Turns.Resume(h.Context(), home.ResumeTurnRequest{TurnOptions: o}, send)
	})
}

func (h *house) watch(ctx context.Context, name string, after int64) *listener {
	h.Helper()
	return listen(h.T, func(send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return h.Turns.Watch(ctx, home.WatchRequest{Session: name, After: after}, send)
	})
}

// bash is a turn in which the model may run commands in a directory, if they are approved.
func bash(dir string) home.TurnOptions {
	return home.TurnOptions{ChatRequest: home.ChatRequest{CWD: dir, Tools: []string{"bash"}}}
}

// running is the line with which the built-in model runs a command.
func running(command string) string {
	input, _ := json.Marshal(map[string]string{"command": command})
	return "call bash " + string(input)
}

func (h *house) status(name string) *home.TurnStatus {
	h.Helper()
	s, err := h.Turns.Status(h.Context(), home.SessionRequest{Session: name})
	if err != nil {
		h.Fatal(err)
	}
	return s
}

func (h *house) approve(r home.ApproveRequest) *home.ApproveResult {
	h.Helper()
	made, err := h.Turns.Approve(h.Context(), r)
	if err != nil {
		h.Fatal(err)
	}
	return made
}

// gate is a command that runs until it is opened, and then says so.
func gate(t *testing.T, dir string) (command string, open func()) {
	t.Helper()
	return "until [ -e open ]; do sleep 0.01; done; rm open; echo opened", func() {
		if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
}

func text(o *home.TurnResult) string {
	if o.Message == nil {
		return ""
	}
	return session.TextOf(o.Message.Content)
}

func TestATurnIsData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.prompt(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{Title: "Beans"}}, "think hm\nsay hello")
	result := first.end()
	if text(result) != "hello" || result.Stop != provider.StopEndTurn || result.Steps != 1 || result.Usage.Output == 0 || result.Entry == "" {
		t.Errorf("the result is %+v", result)
	}
	if result.Events != len(first.events) {
		t.Errorf("%d events came, and the result has %d", len(first.events), result.Events)
	}
	facts := first.until(agent.TurnStart).Facts
	if facts == nil || facts.Model != "parrot" || facts.From != home.FromDefault || len(facts.Tools) > 0 {
		t.Errorf("the facts are %+v", facts)
	}
	// What arrives as JSON is what was sent.
	var said, thought string
	var last int64
	for _, e := range first.events {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back home.TurnEvent
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if back.Type == agent.MessageUpdate && back.Update.Type == provider.EventText {
			said += back.Update.Text
		}
		if back.Type == agent.MessageUpdate && back.Update.Type == provider.EventThinking {
			thought += back.Update.Text
		}
		if back.Number <= last {
			t.Errorf("the number %d follows %d", back.Number, last)
		}
		last = back.Number
	}
	if said != "hello" || thought != "hm" || first.events[len(first.events)-1].Type != agent.TurnEnd {
		t.Errorf("heard %q and %q in %v", said, thought, types(first.events))
	}
	got, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: result.Session})
	if err != nil || got.Title != "Beans" || got.CWD != "" {
		t.Errorf("the session is %+v, %v", got, err)
	}

	next := h.prompt(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{Session: result.Session}}, "more")
	if text(next.end()) != "You said: more" || next.events[0].Number <= last {
		t.Errorf("the next turn: %+v from %d, after %d", next.result, next.events[0].Number, last)
	}
	again, err := h.Turns.Resume(t.Context(), home.ResumeTurnRequest{TurnOptions: home.TurnOptions{ChatRequest: home.ChatRequest{Session: result.Session}}, Again: true}, nil)
	if err != nil || text(again) != "You said: more" || again.Entry == next.result.Entry {
		t.Errorf("answered again: %+v, %v", again, err)
	}
	if nothing := h.resume(home.TurnOptions{ChatRequest: home.ChatRequest{Session: result.Session}}).end(); nothing.Steps != 0 {
		t.Errorf("nothing was to be done: %+v", nothing)
	}
}

func TestATurnThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	field := func(err error, want string) {
		t.Helper()
		if info := home.Describe(err); info.Kind != home.KindInvalid || info.Field != want {
			t.Errorf("the error is %+v, want one about %s", info, want)
		}
	}
	_, err := h.Turns.Prompt(t.Context(), home.PromptRequest{}, nil)
	field(err, "text")
	_, err = h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "x", TurnOptions: home.TurnOptions{Questions: "maybe"}}, nil)
	field(err, "questions")
	_, err = h.Turns.Resume(t.Context(), home.ResumeTurnRequest{}, nil)
	field(err, "session")
	_, err = h.Turns.Approve(t.Context(), home.ApproveRequest{Call: "x", Decision: "allow: {}"})
	field(err, "decision")
	_, err = h.Turns.Approve(t.Context(), home.ApproveRequest{Call: "x", Decision: agent.Allow, Reason: "fine"})
	field(err, "reason")
	_, err = h.Turns.Approve(t.Context(), home.ApproveRequest{Call: "x"})
	field(err, "decision")
	_, err = h.Turns.Approve(t.Context(), home.ApproveRequest{Call: "x", Rules: []string{"bash"}, Reason: "no"})
	field(err, "decision")
	if _, err = h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "x", TurnOptions: home.TurnOptions{ChatRequest: home.ChatRequest{Session: "nothing"}}}, nil); home.KindOf(err) != home.KindNotFound {
		t.Errorf("a conversation that does not exist: %v", err)
	}
	if _, err = h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "x", TurnOptions: home.TurnOptions{ChatRequest: home.ChatRequest{Model: "nobody/nothing"}}}, nil); err == nil {
		t.Error("there is no such model")
	}
	s := h.say(session.Header{}, "hello")
	if _, err = h.Turns.Watch(t.Context(), home.WatchRequest{Session: s.ID()}, nil); home.KindOf(err) != home.KindNotFound {
		t.Errorf("a turn that does not exist: %v", err)
	}
	if _, err = h.Turns.Steer(t.Context(), home.SteerRequest{Session: s.ID(), Text: "left"}); home.KindOf(err) != home.KindConflict {
		t.Errorf("steering nothing: %v", err)
	}
	if got, err := h.Turns.Cancel(t.Context(), home.SessionRequest{Session: s.ID()}); err != nil || got.Stopped {
		t.Errorf("stopping nothing: %+v, %v", got, err)
	}
	if got := h.status(s.ID()); got.Running || !got.Unfinished {
		t.Errorf("the status is %+v", got)
	}
}

func TestCallsAreDecidedAboutByRequests(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	turn := h.prompt(t.Context(), bash(dir), running("echo one > one")+"\n"+running("echo two > two"))
	asked := turn.until(agent.ToolWaiting)
	if asked.Question == nil || asked.Question.Dir != dir || len(asked.Question.Rules)+len(asked.Question.NoRules) == 0 || asked.Call.Name != "bash" {
		t.Errorf("the question is %+v about %+v", asked.Question, asked.Call)
	}
	if s := h.status(asked.Session); !s.Running || s.Asked == nil || s.Asked.ID != asked.Call.ID || len(s.Pending) != 2 || s.Working == nil {
		t.Errorf("the status is %+v", s)
	}
	if list, err := h.Turns.Running(t.Context()); err != nil || len(list.Turns) != 1 || list.Turns[0].Session != asked.Session {
		t.Errorf("the turns are %+v, %v", list, err)
	}
	if _, err := h.Turns.Approve(t.Context(), home.ApproveRequest{Session: asked.Session, Call: "other", Decision: agent.Allow}); home.KindOf(err) != home.KindNotFound {
		t.Errorf("a call that does not exist: %v", err)
	}
	if made := h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Deny, Reason: "not that"}); !made.Running {
		t.Error("the turn runs")
	}
	second := h.watch(t.Context(), asked.Session, asked.Number).until(agent.ToolWaiting)
	if second.Call.ID == asked.Call.ID {
		t.Fatal("it asks again")
	}
	h.approve(home.ApproveRequest{
		Session: asked.Session, Call: second.Call.ID, Decision: agent.Allow, Input: json.RawMessage(`{"command":"echo three > three"}`),
	})
	if got := text(turn.end()); !strings.Contains(got, "not that") {
		t.Errorf("the answer is %q", got)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 1 || filepath.Base(names[0]) != "three" {
		t.Errorf("there are %v", names)
	}
	if list, err := h.Turns.Running(t.Context()); err != nil || len(list.Turns) != 0 {
		t.Errorf("the turns are %+v, %v", list, err)
	}
}

func TestARuleAnswersTheNextQuestions(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	turn := h.prompt(t.Context(), bash(dir), running("touch one")+"\n"+running("touch two"))
	asked := turn.until(agent.ToolWaiting)
	decide := home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Allow, Rules: []string{"nonsense("}}
	if _, err := h.Turns.Approve(t.Context(), decide); home.Describe(err).Field != "rules" {
		t.Errorf("a rule that makes no sense: %v", err)
	}
	// Rules that a person has changed may no longer be about the call.
	decide.Decision, decide.Rules = "", []string{"bash(echo *)"}
	if made := h.approve(decide); !made.Waiting || !made.Running {
		t.Errorf("a rule for other calls: %+v", made)
	}
	if s := h.status(asked.Session); s.Asked == nil || s.Asked.ID != asked.Call.ID {
		t.Errorf("the call should still wait: %+v", s)
	}
	decide.Rules = []string{"bash(touch *)"}
	if made := h.approve(decide); made.Waiting || !made.Running {
		t.Errorf("a rule for the call: %+v", made)
	}
	turn.end()
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 2 {
		t.Errorf("there are %v", names)
	}
}

// A person who is asked about a change to a file sees the change, even when a task asks for it.
func TestAQuestionShowsWhatWouldChange(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := home.TurnOptions{ChatRequest: home.ChatRequest{CWD: dir, Tools: []string{"read", "edit", "task"}}}
	edit := `call edit {"path":"a","old_string":"two","new_string":"three"}`
	task, _ := json.Marshal(map[string]string{"description": "count", "prompt": `call read {"path":"a"}` + "\n" + edit})
	turn := h.prompt(t.Context(), o, "call task "+string(task))
	asked := turn.until(agent.ToolWaiting)
	if asked.Call.Session == asked.Session || asked.Session != turn.until(agent.TurnStart).Session {
		t.Errorf("a call in session %s is asked about in %s", asked.Call.Session, asked.Session)
	}
	raw, err := json.Marshal(asked.Question.Edits)
	if want := `[{"path":"a","op":"change","hunks":[{"before":1,"after":1,"lines":[" one","-two","+three"]}]}]`; err != nil || string(raw) != want {
		t.Errorf("the question shows %s, %v, want %s", raw, err, want)
	}
	var back []render.Edit
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, asked.Question.Edits) {
		t.Errorf("as data it is %+v, %v", back, err)
	}
	h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Deny})
	turn.end()
}

// A question is left for later if no one is there to answer it, and the conversation is free for
// others. The answer then counts, in this home or in another one.
func TestAQuestionOutlivesItsListener(t *testing.T) {
	t.Parallel()
	h, dir := newHouseInFiles(t), t.TempDir()
	ctx, leave := context.WithCancel(t.Context())
	turn := h.prompt(ctx, bash(dir), running("echo one >> one"))
	asked := turn.until(agent.ToolWaiting)
	watching := h.watch(t.Context(), asked.Session, 0)
	watching.until(agent.ToolWaiting)
	leave()
	if <-turn.done; home.KindOf(turn.err) != home.KindInterrupted {
		t.Errorf("the listener that left got %v", turn.err)
	}
	if s := h.status(asked.Session); !s.Running || s.Asked == nil {
		t.Errorf("another one listens, and the turn is %+v", s)
	}
	other, gone := context.WithCancel(t.Context())
	last := h.watch(other, asked.Session, 0)
	last.until(agent.ToolWaiting)
	gone()
	<-last.done

	h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Later})
	if out := watching.end(); out.Stop != agent.StopApproval || len(out.Waiting) != 1 {
		t.Errorf("the turn ended with %+v", out)
	}

	// Alone, it does not wait at all.
	o := bash(dir)
	o.Session = asked.Session
	ctx, leave = context.WithCancel(t.Context())
	resumed := listen(t, func(send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return h.Turns.Resume(ctx, home.ResumeTurnRequest{TurnOptions: o}, send)
	})
	resumed.until(agent.ToolWaiting)
	leave()
	<-resumed.done
	for h.status(asked.Session).Running { // who listened would be asked
	}
	if out, err := h.Turns.Watch(t.Context(), home.WatchRequest{Session: asked.Session}, nil); err != nil || out.Stop != agent.StopApproval {
		t.Errorf("the turn that no one heard ended with %+v, %v", out, err)
	}
	if s := h.status(asked.Session); s.Running || !s.Unfinished || len(s.Pending) != 1 || s.Pending[0].State != agent.CallWaiting {
		t.Errorf("the status is %+v", s)
	}

	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h.Home = h.open(&home.Options{})
	if made := h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Allow}); made.Running {
		t.Error("no turn runs")
	}
	if s := h.status(asked.Session); len(s.Pending) != 1 || s.Pending[0].State != agent.CallAllowed {
		t.Errorf("the status is %+v", s)
	}
	h.resume(o).end()
	if got, err := os.ReadFile(filepath.Join(dir, "one")); err != nil || string(got) != "one\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func TestQuestionsMayBeSettledBefore(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	o := bash(dir)
	o.Questions = home.DenyThem
	if out := h.prompt(t.Context(), o, running("touch one")).end(); !strings.Contains(text(out), "cannot ask anyone") {
		t.Errorf("the answer is %q", text(out))
	}
	o.Questions = home.LeaveThem
	out := h.prompt(t.Context(), o, running("touch one")).end()
	if out.Stop != agent.StopApproval || len(out.Waiting) != 1 {
		t.Errorf("the turn ended with %+v", out)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 0 {
		t.Errorf("there are %v", names)
	}
}

// The turn is the home's: it goes on without its listener, unless the listener wants otherwise.
func TestATurnGoesOnWithoutItsListener(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	wait, open := gate(t, dir)
	o := bash(dir)
	o.Allow = []string{"bash"}
	ctx, leave := context.WithCancel(t.Context())
	turn := h.prompt(ctx, o, running(wait))
	id := turn.until(agent.ToolStart).Session
	leave()
	<-turn.done
	again := h.watch(t.Context(), id, turn.events[len(turn.events)-1].Number)
	open()
	if out := again.end(); !strings.Contains(text(out), "opened") {
		t.Errorf("the answer is %q", text(out))
	}
	// What the two heard is the whole turn.
	all := listen(t, func(send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return h.Turns.Watch(t.Context(), home.WatchRequest{Session: id}, send)
	})
	all.end()
	heard := slices.Concat(turn.events, again.events)
	if len(heard) != len(all.events) {
		t.Errorf("they heard %v, and there was %v", types(heard), types(all.events))
	}
	for i := range min(len(heard), len(all.events)) {
		if heard[i].Number != all.events[i].Number {
			t.Errorf("event %d is %d, want %d", i, heard[i].Number, all.events[i].Number)
		}
	}

	o.Session, o.Attached = id, true
	ctx, leave = context.WithCancel(t.Context())
	turn = h.prompt(ctx, o, running(wait))
	turn.until(agent.ToolStart)
	leave()
	<-turn.done
	if s := h.status(id); s.Running || s.Working != nil {
		t.Errorf("the turn should have ended with its caller: %+v", s)
	}
}

// A listener that does not read holds up neither the turn nor the others.
func TestASlowListenerHoldsNothingUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	release, stuck := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var heard []home.TurnEvent
	done := make(chan error, 1)
	var id string
	go func() {
		_, err := h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "repeat 1000 " + strings.Repeat("0123456789", 500)}, func(e home.TurnEvent) error {
			if e.Session != "" {
				once.Do(func() {
					id = e.Session
					close(stuck)
					<-release
				})
			}
			heard = append(heard, e)
			return nil
		})
		done <- err
	}()
	select {
	case <-stuck:
	case err := <-done:
		t.Fatal(err)
	}
	fast := h.watch(t.Context(), id, 0)
	fast.end()
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// Each was told how many events it missed, and has the end.
	total := func(events []home.TurnEvent) (n int64) {
		for _, e := range events {
			if n += e.Missed; e.Type != agent.Missed {
				n++
			}
		}
		return n
	}
	late := h.watch(t.Context(), id, 0)
	late.end()
	if !slices.Contains(types(heard), agent.Missed) || heard[len(heard)-1].Type != agent.TurnEnd {
		t.Errorf("it heard %v", types(heard))
	}
	if total(heard) != total(late.events) || total(heard) != total(fast.events) {
		t.Errorf("they heard of %d, %d and %d events", total(heard), total(late.events), total(fast.events))
	}
}

func TestATurnIsStoppedAndSteered(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	wait, open := gate(t, dir)
	o := bash(dir)
	o.Allow = []string{"bash"}
	turn := h.prompt(t.Context(), o, running(wait))
	id := turn.until(agent.ToolStart).Session

	// One turn at a time.
	o.Session = id
	_, err := h.Turns.Prompt(t.Context(), home.PromptRequest{TurnOptions: o, Text: "me too"}, nil)
	if info := home.Describe(err); info.Kind != home.KindLocked || info.Hint == "" {
		t.Errorf("the second prompt: %+v", info)
	}

	if _, err := h.Turns.Steer(t.Context(), home.SteerRequest{Session: id, Text: "never mind", After: true}); err != nil {
		t.Fatal(err)
	}
	back, err := h.Turns.TakeBack(t.Context(), home.SessionRequest{Session: id})
	if err != nil || len(back.Queued) != 1 || session.TextOf(back.Queued[0].Content) != "never mind" {
		t.Errorf("taken back: %+v, %v", back, err)
	}
	said, err := h.Turns.Steer(t.Context(), home.SteerRequest{Session: id, Text: "say left"})
	if err != nil || said.Entry == "" {
		t.Fatalf("steered: %+v, %v", said, err)
	}
	if s := h.status(id); len(s.Queued) != 1 {
		t.Errorf("the status is %+v", s)
	}
	open()
	if out := turn.end(); text(out) != "left" {
		t.Errorf("the answer is %q", text(out))
	}

	turn = h.prompt(t.Context(), o, running(wait))
	turn.until(agent.ToolStart)
	if got, err := h.Turns.Cancel(t.Context(), home.SessionRequest{Session: id}); err != nil || !got.Stopped {
		t.Errorf("stopped: %+v, %v", got, err)
	}
	if <-turn.done; !errors.Is(turn.err, home.ErrStopped) || home.KindOf(turn.err) != home.KindInterrupted {
		t.Errorf("the turn ended with %v", turn.err)
	}
	if out := h.prompt(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{Session: id}}, "say on").end(); text(out) != "on" {
		t.Errorf("the answer is %q", text(out))
	}
}

// Whoever knows the conversation hears and steers the turn of a chat, and decides about its calls.
// A permission lasts as long as the chat.
func TestTheTurnsOfAChatAreThoseOfItsHome(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	c, err := h.Chat(t.Context(), bash(dir))
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context, text string) *home.Turn {
		t.Helper()
		turn, err := c.Say(ctx, []session.Content{session.Text(text)})
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	hear := func(turn *home.Turn) *listener {
		return listen(t, func(send func(home.TurnEvent) error) (*home.TurnResult, error) { return turn.Listen(t.Context(), send) })
	}
	say := func(ctx context.Context, text string) (*home.Turn, *listener) {
		t.Helper()
		turn := begin(ctx, text)
		return turn, hear(turn)
	}
	turn := begin(t.Context(), running("touch one"))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // a question waits for whoever began the turn
		list, err := h.Turns.Running(t.Context())
		if err != nil || len(list.Turns) != 1 {
			t.Fatalf("the turns are %+v, %v", list, err)
		}
		if list.Turns[0].Asked != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the turn does not ask")
		}
	}
	heard := hear(turn)
	asked := heard.until(agent.ToolWaiting)
	other := h.watch(t.Context(), asked.Session, 0)
	other.until(agent.ToolWaiting)
	h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Rules: []string{"bash(touch *)", "bash(sleep *)"}})
	heard.end()
	other.end()
	if len(heard.events) != len(other.events) {
		t.Errorf("they heard %v and %v", types(heard.events), types(other.events))
	}

	_, heard = say(t.Context(), running("touch two"))
	heard.end()
	if _, err := os.Stat(filepath.Join(dir, "two")); err != nil {
		t.Error(err)
	}

	turn, heard = say(t.Context(), running("sleep 600"))
	heard.until(agent.ToolStart)
	if _, err := h.Turns.Steer(t.Context(), home.SteerRequest{Session: asked.Session, Text: "never mind"}); err != nil {
		t.Error(err)
	}
	turn.Stop()
	if <-heard.done; !errors.Is(heard.err, home.ErrStopped) {
		t.Errorf("the turn ended with %v", heard.err)
	}
	if back, err := h.Turns.TakeBack(t.Context(), home.SessionRequest{Session: asked.Session}); err != nil || len(back.Queued) != 1 || session.TextOf(back.Queued[0].Content) != "never mind" {
		t.Errorf("taken back: %+v, %v", back, err)
	}
	if _, err := h.Turns.Steer(t.Context(), home.SteerRequest{Session: asked.Session, Text: "too late"}); home.KindOf(err) != home.KindConflict {
		t.Errorf("steering a turn that has ended: %v", err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	_, heard = say(ctx, running("sleep 600"))
	heard.until(agent.ToolStart)
	over := errors.New("the lamp is out")
	cancel(over)
	if <-heard.done; !errors.Is(heard.err, over) {
		t.Errorf("the turn ended with %v", heard.err)
	}

	_, heard = say(t.Context(), running("sleep 600"))
	heard.until(agent.ToolStart)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-heard.done:
	case <-time.After(time.Minute):
		t.Error("the turn outlives its chat")
	}
}

// While another program has a turn there, this home says so, and can steer it.
func TestATurnOfAnotherProgramIsSeen(t *testing.T) {
	t.Parallel()
	h, dir := newHouseInFiles(t), t.TempDir()
	wait, open := gate(t, dir)
	other := &house{T: t, dir: h.dir, Home: h.open(&home.Options{Create: true})}
	o := bash(dir)
	o.Allow = []string{"bash"}
	turn := other.prompt(t.Context(), o, running(wait))
	id := turn.until(agent.ToolStart).Session
	if s := h.status(id); s.Running || s.Working == nil {
		t.Errorf("the status is %+v", s)
	}
	here := home.TurnOptions{ChatRequest: home.ChatRequest{Session: id}}
	if _, err := h.Turns.Prompt(t.Context(), home.PromptRequest{TurnOptions: here, Text: "me too"}, nil); home.KindOf(err) != home.KindLocked {
		t.Errorf("a prompt: %v", err)
	}
	if _, err := h.Turns.Cancel(t.Context(), home.SessionRequest{Session: id}); home.KindOf(err) != home.KindLocked {
		t.Errorf("stopping it: %v", err)
	}
	if _, err := h.Turns.Steer(home.Confine(t.Context()), home.SteerRequest{Session: id, Text: "say left"}); home.KindOf(err) != home.KindForbidden {
		t.Errorf("a confined caller steers it: %v", err)
	}
	if _, err := h.Turns.Steer(t.Context(), home.SteerRequest{Session: id, Text: "say left"}); err != nil {
		t.Fatal(err)
	}
	open()
	if out := turn.end(); text(out) != "left" {
		t.Errorf("the answer is %q", text(out))
	}
}

func TestAConfinedCallerCannotReachTheMachine(t *testing.T) {
	t.Parallel()
	h, dir := newHouse(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".coppice.toml"), []byte("tools = nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := home.Confine(t.Context())
	for field, r := range map[string]home.ChatRequest{
		"tools":   {Tools: []string{"read"}},
		"servers": {Servers: []string{"touch " + dir + "/started"}},
		"context": {Context: []string{"/etc/hosts"}},
	} {
		_, err := h.Turns.Prompt(ctx, home.PromptRequest{TurnOptions: home.TurnOptions{ChatRequest: r}, Text: "x"}, nil)
		if info := home.Describe(err); info.Kind != home.KindForbidden || info.Field != field {
			t.Errorf("%s: %+v", field, info)
		}
	}
	// The conversation had tools, and its directory has settings: neither matters.
	turn := h.prompt(t.Context(), bash(t.TempDir()), running("touch one"))
	asked := turn.until(agent.ToolWaiting)
	decide := home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Allow}
	if _, err := h.Turns.Approve(ctx, decide); home.KindOf(err) != home.KindForbidden {
		t.Errorf("a confined caller allows a call: %v", err)
	}
	if _, err := h.Turns.Steer(ctx, home.SteerRequest{Session: asked.Session, Text: "go on"}); home.KindOf(err) != home.KindForbidden {
		t.Errorf("a confined caller steers: %v", err)
	}
	decide.Decision = agent.Deny
	if _, err := h.Turns.Approve(ctx, decide); err != nil {
		t.Error(err)
	}
	turn.end()
	next := h.prompt(ctx, home.TurnOptions{ChatRequest: home.ChatRequest{Session: asked.Session, CWD: dir}}, "say hello")
	if out := next.end(); text(out) != "hello" || len(next.until(agent.TurnStart).Facts.Tools) > 0 {
		t.Errorf("%q with %+v", text(out), next.until(agent.TurnStart).Facts)
	}
}

// Closing the home ends its turns. What they did is kept, and the conversation is free.
func TestCloseEndsTurns(t *testing.T) {
	t.Parallel()
	h, dir := newHouseInFiles(t), t.TempDir()
	wait, _ := gate(t, dir)
	o := bash(dir)
	o.Allow = []string{"bash"}
	turn := h.prompt(t.Context(), o, running(wait))
	asking := h.prompt(t.Context(), bash(dir), running("touch one"))
	id, other := turn.until(agent.ToolStart).Session, asking.until(agent.ToolWaiting)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*listener{turn, asking} {
		if <-l.done; home.KindOf(l.err) != home.KindInterrupted {
			t.Errorf("a turn ended with %v", l.err)
		}
	}
	if _, err := h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "hello"}, nil); err == nil {
		t.Error("a closed home has no turns")
	}
	h.Home = h.open(&home.Options{})
	if s := h.status(id); s.Working != nil {
		t.Errorf("the status is %+v", s)
	}
	if s := h.status(other.Session); s.Working != nil || len(s.Pending) != 1 || s.Pending[0].State != agent.CallWaiting {
		t.Errorf("the status is %+v", s)
	}
	o = bash(dir)
	o.Session = other.Session
	h.approve(home.ApproveRequest{Session: other.Session, Call: other.Call.ID, Decision: agent.Allow})
	h.resume(o).end()
	if _, err := os.Stat(filepath.Join(dir, "one")); err != nil {
		t.Error(err)
	}
}

// A question can wait for somebody who comes later.
func TestAQuestionWaitsWithoutAListener(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	name := h.say(session.Header{}, "hello").ID()
	o := bash(t.TempDir())
	o.Session, o.Questions = name, home.AskAnyone
	left := errors.New("the listener goes at the first event")
	_, err := h.Turns.Prompt(t.Context(), home.PromptRequest{TurnOptions: o, Text: running("echo one")}, func(home.TurnEvent) error { return left })
	if !errors.Is(err, left) {
		t.Fatal(err)
	}
	for h.status(name).Asked == nil { // a turn that does not wait ends here
		if !h.status(name).Running {
			t.Fatal("the turn ended without an answer")
		}
	}
	later := h.watch(t.Context(), name, 0)
	q := later.until(agent.ToolWaiting)
	if q.Question == nil {
		t.Errorf("who comes later is asked %+v", q)
	}
	h.approve(home.ApproveRequest{Session: name, Call: q.Call.ID, Decision: agent.Allow})
	if end := later.end(); end.Stop != "end_turn" {
		t.Errorf("the turn ended with %q", end.Stop)
	}
}
