package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	chatui "github.com/coppice-dev/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// printChat sends one message and prints the answer: chat for scripts.
func (a *app) printChat(ctx context.Context, args []string, isTyped bool, f *chatFlags) error {
	other := ""
	if !isTyped {
		piped, err := io.ReadAll(a.stdin)
		if err != nil {
			return err
		}
		other = strings.TrimSpace(string(piped))
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		text, err := f.begin(ctx, h, args, other, true)
		if err != nil {
			return err
		}
		return a.chatOnce(ctx, h, text, strings.Join(args, " "), f)
	})
}

// chatOnce sends a message and prints the answer. typed is the part of it in which files can be
// mentioned: what is piped is not the word of the person.
func (a *app) chatOnce(ctx context.Context, h *home.Home, text, typed string, f *chatFlags) error {
	var c *home.Chat
	c, err := h.Chat(ctx, f.request, home.ChatHands{Approve: func(ctx context.Context, call agent.Call) (agent.Decision, error) {
		return agent.Deny.Because(notAsked), a.sayRefused(ctx, call, c)
	}})
	if err != nil {
		return err
	}
	named := c.Mentions(typed)
	for _, name := range named.Missing {
		a.say("there is no file %s in %s; it is sent as text", name, c.Dir())
	}
	named.Images = slices.Concat(f.images, named.Images)
	return errors.Join(a.converse(ctx, c, text, named), c.Close())
}

// notAsked tells a model why its call did not run.
const notAsked = "it needs approval, and this program cannot ask anyone: work without it, or say what should be allowed"

// sayRefused says that a call was refused because nobody is there, and which rule would
// have let it run.
func (a *app) sayRefused(ctx context.Context, call agent.Call, c *home.Chat) error {
	box, err := c.Toolbox(ctx)
	if err != nil {
		return err
	}
	why := ""
	if call.Reason != "" {
		why = " (" + render.OneLine(call.Reason, 0) + ")"
	}
	rules, err := box.RulesFor(call)
	for i := range rules {
		rules[i] = "--allow " + plain.ShellWord(rules[i])
	}
	way := strings.Join(rules, " ") + " lets it run"
	if err != nil {
		way = "no --allow rule is for this call alone: " + err.Error()
	}
	a.say("refused a call of %s in %s, which nobody can approve here%s; %s", call.Name, c.Dir(), why, way)
	return nil
}

func (a *app) converse(ctx context.Context, c *home.Chat, text string, named home.Mentions) error {
	content, err := c.Prompt(text, named.Images...)
	if err != nil {
		if strings.TrimSpace(text) == "" && len(named.Images) == 0 {
			err = hinted(err, "give the message as an argument, or on standard input")
		}
		return err
	}
	isNew, chosen := c.Conversation() == nil, c.Model()
	if len(c.Tools()) > 0 {
		a.say("tools work in %s", c.Dir())
	}
	if chosen.Unreached != "" {
		info := chosen.Model.Info()
		a.say("%s %s answered before, but the settings do not say how to reach it; %s answers now",
			a.paint(yellow, "warning:"), chosen.Unreached, render.ModelName(info.Provider, info.Model))
	}
	for _, text := range c.Warnings() {
		a.say("%s %s", a.paint(yellow, "warning:"), text)
	}
	if p := c.Project(); p != nil && !p.Trusted && !a.flags.json {
		a.say("%s of %s is not used, because you have not trusted it: %s", strings.Join(p.Files, " and "), p.Path, command("config trust", []string{p.Path}))
	}
	worker, err := c.Start(ctx, named.Files...)
	if err != nil {
		return err
	}
	if isNew && !a.flags.json {
		a.say("session %s", render.ShortID(c.Conversation().ID()))
	}
	answer := printedAnswer{app: a}
	out, err := answer.hear(ctx, worker, content)
	switch {
	case err != nil:
		return err
	case out.Why != "":
		a.say("the model is not done: %s", out.Why)
		return errPartial
	case out.Stop == provider.StopMaxTokens:
		a.say("the answer was cut off at the token limit")
		return errPartial
	case out.Stop == provider.StopRefusal:
		a.say("the model refused to say more, or a filter of its provider did")
		return errPartial
	case out.Message == nil || strings.TrimSpace(session.TextOf(out.Message.Content)) == "":
		return errNoText
	case answer.void:
		return errPartial // which was said when it happened
	}
	return nil
}

// errNoText tells a script why there is nothing to read.
var errNoText = errors.New("the model's answer has no text")

// printedAnswer prints what a model says in a turn as it arrives: an empty line is between
// two messages.
type printedAnswer struct {
	*app
	said  strings.Builder // what was printed of the present message
	block int             // the block that it ends in
	began bool            // an earlier message was printed
	void  bool            // something was printed that is not part of the answer
	err   error           // why printing failed
}

// hear runs a turn.
func (p *printedAnswer) hear(ctx context.Context, worker *agent.Agent, content []session.Content) (out *agent.Outcome, err error) {
	news := worker.Subscribe(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = worker.Send(ctx, content...)
		news.Close()
	}()
	for e := range news.Events(context.Background()) {
		if p.flags.json {
			p.note(p.printJSON(e))
		} else {
			p.event(e)
		}
	}
	<-done
	p.endMessage(false)
	return out, errors.Join(err, p.err)
}

func (p *printedAnswer) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

// event prints a piece of the answer, or reports what a person who waits for it should
// know. The agent reports another writer once in a turn.
func (p *printedAnswer) event(e agent.Event) {
	warning := p.paint(yellow, "warning:")
	switch {
	case e.Type == agent.MessageUpdate && e.Update.Type == provider.EventText:
		p.add(e.Update.Text, e.Update.Block)
	case e.Type == agent.MessageEnd && e.Entry.Message != nil && e.Entry.Message.Role == session.RoleAssistant:
		// If events were missed, the rest is here.
		if rest, ok := strings.CutPrefix(session.TextOf(e.Entry.Message.Content), p.said.String()); ok {
			p.add(rest, p.block)
		}
		p.endMessage(e.Entry.Message.StopReason == provider.StopFailed)
	case e.Type == agent.MessageDropped:
		p.endMessage(true)
	case e.Type == agent.Retry && e.Retry != nil:
		more := ""
		if p.void {
			more = "; what was printed of this answer so far does not count"
		}
		p.say("%s %s; %s%s", warning, render.OneLine(e.Retry.Reason, 0), chatui.TryingAgain(e.Retry), more)
	case e.Type == agent.Error && errors.Is(e.Err, session.ErrConflict):
		p.say("%s somebody else writes to this session too; this answer is on a branch of its own, and coppice tree shows it", warning)
	case e.Type == agent.Error:
		text, _ := p.explain(e.Err)
		p.say("%s %s", warning, text)
	}
}

// add prints more of the present message.
func (p *printedAnswer) add(text string, block int) {
	if text == "" {
		return
	}
	switch {
	case p.said.Len() == 0 && p.began:
		p.write("\n")
	case p.said.Len() > 0 && block != p.block:
		p.write("\n")
		p.said.WriteByte('\n')
	}
	p.block = block
	p.said.WriteString(text)
	p.write(text)
}

func (p *printedAnswer) write(text string) {
	_, err := io.WriteString(p.out, text)
	p.note(err)
}

// endMessage ends the last line of a message.
func (p *printedAnswer) endMessage(brokeOff bool) {
	if p.said.Len() > 0 {
		p.write("\n")
		p.began, p.void = true, p.void || brokeOff
	}
	p.said.Reset()
}
