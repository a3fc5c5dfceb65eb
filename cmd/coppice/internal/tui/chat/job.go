package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// job is something that takes a while: a turn, or a command.
type job struct {
	isTurn bool
	stop   func()
	began  time.Time
	events chan home.TurnEvent // closed when everything was heard
	err    error               // set before events is closed
	out    *home.TurnResult    // the same
	begun  bool                // the turn has the conversation for itself
	view   *view
	after  func(err error) // says how it went
	silent bool            // the state of the chat is as it was
}

// news returns where a job's events come from: nowhere, if there is no job.
func (j *job) news() <-chan home.TurnEvent {
	if j == nil {
		return nil
	}
	return j.events
}

// work runs something in the background. after is called when it has ended and everything that
// happened on the way is shown.
func (u *ui) work(ctx context.Context, run func(ctx context.Context, tell func(home.TurnEvent) error) error, after func(err error)) *job {
	ctx, cancel := context.WithCancelCause(ctx)
	return u.start(&job{stop: func() { cancel(home.ErrStopped) }, after: after}, func(tell func(home.TurnEvent) error) error {
		defer cancel(nil)
		return run(ctx, tell)
	})
}

// listen shows a turn.
func (u *ui) listen(turn *home.Turn) *job {
	j := &job{isTurn: true, stop: turn.Stop}
	return u.start(j, func(tell func(home.TurnEvent) error) (err error) {
		j.out, err = turn.Listen(context.Background(), tell) // it ends with the chat
		return err
	})
}

func (u *ui) start(j *job, run func(tell func(home.TurnEvent) error) error) *job {
	j.began, j.events, j.view = time.Now(), make(chan home.TurnEvent, 64), newView()
	u.job = j
	go func() {
		defer close(j.events)
		j.err = run(func(e home.TurnEvent) error {
			j.events <- e
			return nil
		})
	}()
	return j
}

// hear takes an event, or the end of a job.
func (u *ui) hear(ctx context.Context, e home.TurnEvent, more bool) {
	j := u.job
	if more {
		u.showWhenFree(e)
		return
	}
	if u.asking != nil {
		u.close(u.asking)
	}
	u.print(j.view.end(u.style())...)
	u.job = nil
	j.after(j.err)
	if time.Since(j.began) >= longJob {
		u.ring()
	}
	if !j.silent {
		u.status(ctx)
	}
}

// showWhenFree shows an event, now or when the person has answered a question.
func (u *ui) showWhenFree(e home.TurnEvent) {
	switch q := u.asking; {
	case q == nil:
		u.show(e)
	case q.isOver(e):
		u.note("    no answer is needed any more")
		u.close(q)
		u.showWhenFree(e)
	default:
		q.hold(e)
	}
}

// show shows what happened.
func (u *ui) show(e home.TurnEvent) {
	switch {
	case e.Type == agent.ToolWaiting:
		u.ask(e)
		return
	case e.Type == agent.TurnStart:
		u.job.begun = true
	case e.Type == agent.Error && errors.Is(e.Err, session.ErrConflict):
		u.sayShared()
		return
	case e.Type == agent.CaughtUp:
		u.showAdded(e.Event)
		return
	}
	if e.Type == agent.ToolEnd && e.Result != nil {
		u.result = e.Result
	}
	u.heard(e.Event)
	u.print(u.job.view.hear(e.Event, u.style())...)
}

// sayShared says once that another program writes to the session. The agent has seen to it
// that nothing is lost.
func (u *ui) sayShared() {
	if !u.isShared {
		u.print(u.job.view.lines(u.style(), noting, terminal.Yellow,
			"another program writes here too; you continue on a branch of your own, /tree shows it")...)
	}
	u.isShared = true
}

// longJob is how long something takes that a person does not sit and watch.
const longJob = 10 * time.Second

// ring tells a person who may look elsewhere that it is their turn.
func (u *ui) ring() {
	if u.o.Home.Settings().Get(home.SettingBell).Value == "on" {
		u.screen.Bell()
	}
}

// progress says what is going on.
func (j *job) progress() string {
	wheel := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	past := time.Since(j.began)
	text := fmt.Sprintf("  %c %s", wheel[int(past/(100*time.Millisecond))%len(wheel)], j.view.doing)
	if past >= 2*time.Second {
		text += fmt.Sprintf(" · %d s", int(past.Seconds()))
	}
	return text + " · Esc stops"
}

// say sends a message and shows the answer.
func (u *ui) say(ctx context.Context, text string) {
	named := u.mentions(text)
	content, err := u.chat.Prompt(text, slices.Concat(u.images, named.Images)...)
	var turn *home.Turn
	if err == nil {
		turn, err = u.chat.Say(ctx, content, named.Files...)
	}
	if err != nil {
		u.unsent(text, err)
		return
	}
	images, pasted := u.images, u.pasted
	u.images, u.pasted = nil, nil
	j := u.answered(ctx, turn)
	after := j.after
	j.after = func(err error) {
		if after(err); err != nil && !j.begun { // another program works there
			u.images, u.pasted = images, pasted
			u.giveBack(text)
		}
	}
}

// unsent says why a message was not sent, and puts it back into the prompt.
func (u *ui) unsent(text string, err error) {
	u.fail(err)
	switch {
	case home.KindOf(err) == home.KindLocked:
		u.giveBack(text)
	case u.editor.Text() == "":
		u.editor.Set(text)
	}
}

// giveBack puts a message that was not sent back into the prompt, with all that was typed after it.
func (u *ui) giveBack(text string) {
	u.queue = slices.Insert(u.queue, 0, text)
	u.unsend()
	u.note("    the message was not sent; it is in the prompt again")
}

// answered shows a turn in which the model answers.
func (u *ui) answered(ctx context.Context, turn *home.Turn) *job {
	j := u.listen(turn)
	j.after = func(err error) {
		switch {
		case errors.Is(err, context.Canceled):
			text := "  ■ stopped"
			if j.out != nil && j.out.Message != nil {
				text += "; what arrived is kept"
			}
			u.print("", u.paint(terminal.Yellow, text)+u.paint(terminal.Dim, "  "+u.wayOn(ctx)))
		case err != nil:
			u.print("")
			u.fail(err)
			if !errors.Is(u.chat.Explain(err), home.ErrRemoved) && home.KindOf(err) != home.KindLocked {
				u.note("    " + u.wayOn(ctx))
			}
		case j.out == nil:
		case j.out.Stop == agent.StopApproval:
			u.sayWaiting(j.out.Waiting)
		case j.out.Why != "":
			u.note("  ■ " + j.out.Why + "; /resume continues")
		case j.out.Stop == provider.StopMaxTokens:
			u.note("  ■ the answer was cut off at the token limit")
		case j.out.Stop == provider.StopRefusal:
			u.note("  ■ the model, or a filter of its provider, refused to say more")
		case j.out.Steps == 0:
			u.note("  there is nothing to resume")
		case strings.TrimSpace(textOf(j.out.Message)) == "":
			u.note("  ■ the answer is empty; /retry asks again")
		}
	}
	return j
}

// sayWaiting says what to do about calls that wait.
func (u *ui) sayWaiting(calls []agent.Pending) {
	var missing []string
	for i := range calls {
		name := calls[i].Name
		if !slices.Contains(missing, name) && !slices.ContainsFunc(u.chat.Tools(), func(t agent.Tool) bool { return t.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		u.note("  ■ calls wait for approval, and their tools are not in use: " + strings.Join(missing, ", ") + "; /tools has them used, then /approve decides")
		return
	}
	u.note("  ■ calls wait for approval; /approve decides about them")
}

// wayOn says what to do after a turn that did not come to its end.
func (u *ui) wayOn(ctx context.Context) string {
	s, err := u.unfinished(ctx)
	switch {
	case err == nil && s.Working != nil:
		return "wait until it is done, or continue in a copy with /fork"
	case err == nil && s.Unfinished:
		return "/resume continues"
	}
	return "/retry asks again"
}

// unfinished returns what an unfinished turn has left.
func (u *ui) unfinished(ctx context.Context) (*home.TurnStatus, error) {
	id, err := u.session()
	if err != nil {
		return &home.TurnStatus{}, nil
	}
	return u.o.Home.Turns.Status(ctx, home.SessionRequest{Session: id})
}

// status prints the state of the chat.
func (u *ui) status(ctx context.Context) {
	s, err := u.chat.Status(ctx)
	if err != nil {
		u.fail(err)
		return
	}
	if s.Name == "" {
		return
	}
	facts := []string{s.Name}
	if s.Branches > 1 && s.Branch > 0 {
		facts = append(facts, fmt.Sprintf("branch %d of %d", s.Branch, s.Branches))
	}
	facts = append(facts, render.ModelName(s.Provider, s.Model), windowUse(s.Tokens, s.Window))
	if s.Spent.CostMicroUSD > 0 {
		facts = append(facts, render.Money(s.Spent.CostMicroUSD))
	}
	u.print("")
	u.facts(facts...)
}

// facts prints short facts on a line, or on as many as they need.
func (u *ui) facts(facts ...string) {
	row := "  " + facts[0]
	for _, f := range facts[1:] {
		if ansi.StringWidth(row+" · "+f) > u.style().Width {
			u.note(row)
			row = "  " + f
		} else {
			row += " · " + f
		}
	}
	u.note(row)
}

// windowUse says how much of a window is used.
func windowUse(tokens, window int) string {
	if window == 0 {
		return render.Counted(tokens, "token", "tokens")
	}
	return fmt.Sprintf("%s of %s tokens (%d %%)", render.Thousands(tokens), render.Thousands(window), (100*tokens+window/2)/window)
}

// textOf returns what a model said in a message.
func textOf(m *session.MessageEntry) string {
	if m == nil {
		return ""
	}
	return session.TextOf(m.Content)
}
