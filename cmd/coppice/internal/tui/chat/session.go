package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// lastShown is how many entries of a conversation are shown when it is restored.
const lastShown = 4

// greet shows the conversation that is restored, and says who answers and what it may use
// where. That comes last, because the conversation may be longer than the screen.
func (u *ui) greet(ctx context.Context) {
	if u.chat.Conversation() != nil {
		u.restore(ctx)
	}
	u.introduce()
	u.print("")
	u.pendingWork(ctx)
}

// quiet is how long nothing is typed when all that was typed ahead has arrived.
const quiet = 150 * time.Millisecond

// typedBefore takes the keys that were typed before there is anything to see. They are for
// the prompt and answer no question.
func (u *ui) typedBefore(ctx context.Context) {
	u.draw()
	for {
		select {
		case pressed, ok := <-u.keys:
			if !ok {
				return
			}
			for _, k := range pressed {
				u.press(ctx, k)
			}
		case <-time.After(quiet):
			u.unsend()
			return
		}
	}
}

// askTrust shows what the directory says about chats in it, if the person has not decided
// about it.
func (u *ui) askTrust(ctx context.Context) {
	p := u.chat.Project()
	if p == nil || p.Trusted {
		return
	}
	u.typedBefore(ctx)
	u.trusting = p
	u.print(u.paint(terminal.Yellow, "  "+strings.Join(p.Files, " and ")+" in "+render.OneLine(p.Path, 0)+":"))
	for _, line := range p.Says {
		u.print(wrapped(line, "", u.style())...)
	}
	u.note("  This can start programs, instruct the model, and let it act without asking. It holds until a file changes.")
}

// answerTrust takes a key of the answer. With yes, the chat begins again, as the project has it.
func (u *ui) answerTrust(ctx context.Context, k line.Key) {
	if k.Kind != line.Enter && k.Kind != line.Interrupt && k.Kind != line.Escape {
		u.trust.Press(k)
		return
	}
	yes := false
	if k.Kind == line.Enter {
		text := strings.ToLower(strings.TrimSpace(u.trust.Submit()))
		if yes = text == "y" || text == "yes"; !yes && text != "n" && text != "no" {
			return
		}
	}
	p := u.trusting
	u.trusting = nil
	if !yes {
		u.note("  not used")
		return
	}
	// Without the rules of a project that the person relies on, the chat must not go on.
	if u.failed = u.o.Home.Trust(ctx, p); u.failed == nil {
		u.failed = u.switchTo(ctx, u.chat.Request())
	}
	if u.done = u.failed != nil; u.done {
		return
	}
	u.introduce()
	u.print("")
}

// ModelChange says that another model answers than the one that the conversation had, and why
// if the person did not choose it; "" if it is the same.
func ModelChange(m *home.ChosenModel) string {
	if m.Was == "" {
		return ""
	}
	info := m.Model.Info()
	was := render.OneLine(m.Was, 0)
	text := "was " + was + "; now " + render.ModelName(info.Provider, info.Model)
	if m.From != home.FromChoice {
		text += ", because the settings do not say how to reach " + was
	}
	return text
}

// introduce says who answers, and what it may use where.
func (u *ui) introduce() {
	chosen := u.chat.Model()
	m := chosen.Model.Info()
	text := render.ModelName(m.Provider, m.Model)
	if m.Provider == offline.Name {
		text += ", built in: it repeats what it hears"
	}
	u.note("coppice chat · " + text + " · /help")
	if text := ModelChange(&chosen); text != "" {
		u.note(text)
	}
	for _, text := range u.chat.Warnings() {
		u.print(wrapped(render.OneLine(text, 0), terminal.Yellow, u.style())...)
	}
	if tools := u.chat.Tools(); len(tools) > 0 {
		var names []string
		for i := range tools {
			names = append(names, tools[i].Name)
		}
		u.note("in " + u.chat.Dir() + " · tools: " + strings.Join(names, ", "))
	}
}

// restore shows the end of the conversation, and fills the history with what the person
// said in it. Prompts are kept nowhere else: what is redacted in the log is gone from the
// history as well.
func (u *ui) restore(ctx context.Context) {
	c, err := u.o.Home.Conversation(ctx, home.OpenRequest{Session: u.chat.Conversation().ID()})
	if err != nil {
		u.fail(err)
		return
	}
	if err := errors.Join(u.showEnd(ctx, c), c.Close()); err != nil {
		u.fail(err)
	}
}

// maxAdded is how many messages of other programs are shown.
const maxAdded = 12

// showAdded shows what other programs have added to the conversation since the last turn.
func (u *ui) showAdded(e agent.Event) {
	u.note("  another program has added " + render.Counted(int(e.Missed), "message", "messages") + " before this:")
	c := u.chat.Conversation()
	var added []session.Entry
	for one, err := range c.Path(e.Entry.ID) {
		if err != nil {
			u.fail(err)
			return
		}
		if one.Message != nil {
			added = append(added, one)
		}
		if len(added) == min(int(e.Missed), maxAdded) {
			break
		}
	}
	slices.Reverse(added)
	shape, err := c.Shape()
	if err == nil {
		err = u.drawInto(func(w *strings.Builder) error {
			return terminal.Entries(w, u.style(), added, render.ShortEntryIDs(shape.IDs()))
		})
	}
	if err != nil {
		u.fail(err)
	}
}

func (u *ui) showEnd(ctx context.Context, c *home.Conversation) error {
	end, err := u.o.Home.Entries.Rows(ctx, home.RowsRequest{Session: c.Session.ID(), From: -1, Count: 1, Limit: 1})
	if err != nil {
		return err
	}
	drawn, err := c.Rendered(ctx)
	if err != nil {
		return err
	}
	leaf, err := c.Resolve(home.Leaf)
	if err != nil {
		return err
	}
	if leaf != "" {
		err = u.drawInto(func(w *strings.Builder) error {
			return terminal.Show(ctx, w, drawn, u.style(), terminal.ShowOptions{Leaf: leaf, Last: lastShown})
		})
		u.print("")
	}
	if err != nil {
		return err
	}
	u.print("Restored session with " + render.Counted(end.Messages, "message", "messages"))
	return u.recallPrompts()
}

// recallPrompts fills the history with what the person said.
func (u *ui) recallPrompts() error {
	said, err := u.chat.Said()
	u.forget()
	u.editor.Remember(said...)
	return err
}

// forget empties the history.
func (u *ui) forget() {
	u.editor.Forget()
	u.recalled = false
}

// pendingWork says what a turn that ended in the middle has left.
func (u *ui) pendingWork(ctx context.Context) {
	left, err := u.unfinished(ctx)
	if err == nil {
		err = left.Held()
	}
	if err != nil {
		u.fail(err)
		return
	}
	states := map[agent.CallState]string{
		agent.CallNew: "it never started", agent.CallWaiting: "it waits for approval",
		agent.CallAllowed: "it was approved, and never started", agent.CallRunning: "it was running; it may have done all, some or none of its work",
		agent.CallElsewhere: "it was started on another branch",
	}
	for i := range left.Pending {
		u.print(callLine("→ ", &left.Pending[i].Call, u.style()))
		u.print("    " + u.paint(terminal.Yellow, states[left.Pending[i].State]))
	}
	switch {
	case len(left.Pending) > 0:
		u.note(fmt.Sprintf("  /resume continues with %s", render.Counted(len(left.Pending), "unfinished call", "unfinished calls")))
	case left.Draft != "":
		u.note("  the answer broke off here; /resume asks again")
	case left.Unfinished:
		u.note("  the last message was not answered to the end; /resume asks again")
	}
}

// drawInto prints what f draws.
func (u *ui) drawInto(f func(w *strings.Builder) error) error {
	var b strings.Builder
	err := f(&b)
	if text := strings.TrimRight(b.String(), "\n"); text != "" {
		u.print(strings.Split(text, "\n")...)
	}
	return err
}

// switchTo continues another conversation, or with a new one.
func (u *ui) switchTo(ctx context.Context, r home.ChatRequest) error {
	u.draw()
	next, typed, err := u.open(ctx, r)
	if err != nil {
		return err
	}
	err = u.chat.Close()
	u.result = nil
	u.chat, u.images, u.unheard, u.isShared = next, nil, nil, false
	typed(ctx)
	return err
}

// open begins a chat. Ctrl-C stops that, because servers can take long to start. typed takes
// the other keys that were pressed on the way: if a server was slow, nothing of it is sent.
func (u *ui) open(ctx context.Context, r home.ChatRequest) (c *home.Chat, typed func(context.Context), err error) {
	starting, cancel := context.WithCancelCause(ctx) // the chat may keep it
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		if c, err = u.o.Home.Chat(starting, home.TurnOptions{ChatRequest: r}); err != nil {
			cancel(err)
		}
	}()
	var early []line.Key
	for keys := u.keys; ; {
		select {
		case <-opened:
			why := context.Cause(starting)
			switch {
			case why != nil && c != nil:
				return nil, nil, errors.Join(why, c.Close())
			case why != nil:
				return nil, nil, why
			}
			return c, func(ctx context.Context) {
				for _, k := range early {
					u.press(ctx, k)
				}
				if c.Waited() {
					u.unsend()
				}
			}, nil
		case pressed, ok := <-keys:
			if !ok {
				keys = nil
			}
			for _, k := range pressed {
				if k.Kind == line.Interrupt {
					cancel(home.ErrStopped)
				}
			}
			early = append(early, pressed...)
		}
	}
}

// request returns what a chat with another conversation should be like.
func (u *ui) request(session, title string) home.ChatRequest {
	r := u.chat.Request()
	r.Session, r.Title = session, title
	return r
}
