package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	chatui "github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
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
		text, err := a.begin(ctx, h, f, args, other, true)
		if err != nil {
			return err
		}
		return a.chatOnce(ctx, h, text, strings.Join(args, " "), f)
	})
}

// chatOnce sends a message and prints the answer. typed is the part of it in which files can be
// mentioned: what is piped is not the word of the person.
func (a *app) chatOnce(ctx context.Context, h *home.Home, text, typed string, f *chatFlags) error {
	c, err := h.Chat(ctx, home.TurnOptions{ChatRequest: f.request, Questions: home.DenyThem}) // printedAnswer says so
	if err != nil {
		return err
	}
	named := c.Mentions(typed)
	for _, name := range named.Missing {
		a.say("there is no file %s in %s; it is sent as text", name, c.Dir())
	}
	for _, name := range named.Directories {
		a.say("%s is a directory, so only its name is sent; name the files, or have the model look with --tools", name)
	}
	named.Images = slices.Concat(f.images, named.Images)
	return errors.Join(a.converse(ctx, c, text, named), c.Close())
}

// converse says whatever a person should know before the request is sent (where tools work,
// which settings are not used, and so on), because an answer may take long. Afterwards the exit
// code tells a script how far to trust the answer.
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
	if text := chatui.ModelChange(&chosen); text != "" {
		a.say("%s the model %s", a.paint(yellow, "warning:"), text)
	}
	for _, text := range c.Warnings() {
		a.say("%s %s", a.paint(yellow, "warning:"), text)
	}
	if p := c.Project(); p != nil && !p.Trusted && !a.flags.json {
		a.say("%s of %s is not used, because you have not trusted it: %s", strings.Join(p.Files, " and "), p.Path, a.command("config trust", []string{p.Path}))
	}
	turn, err := c.Say(ctx, content, named.Files...)
	if err != nil {
		return err
	}
	if isNew && !a.flags.json {
		a.say("session %s", render.ShortID(c.Conversation().ID()))
	}
	answer := printedAnswer{app: a}
	out, err := answer.hear(turn)
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
		a.say("the model, or a filter of its provider, refused to say more")
		return errPartial
	case out.Message == nil || strings.TrimSpace(session.TextOf(out.Message.Content)) == "":
		return errNoText
	case answer.void, answer.refused > 0 && answer.ran == 0:
		return errPartial // which was said when it happened
	}
	return nil
}

// errNoText tells a script why there is nothing to read.
var errNoText = errors.New("the model's answer has no text")

// printedAnswer prints what a model says in a turn as it arrives: an empty line is between
// two messages. If a message broke off and is asked for again, what was printed of it is not
// printed twice.
type printedAnswer struct {
	*app
	said  strings.Builder // the present message so far
	block int             // the block that it ends in
	// broken is what was printed of an attempt that broke off, as long as the present one says
	// nothing else.
	broken string
	open   bool  // a line was begun and not ended
	began  bool  // a message was printed
	void   bool  // something was printed that is not part of the answer
	err    error // why printing failed

	refused, ran int // calls
}

// hear prints a turn.
func (p *printedAnswer) hear(turn *home.Turn) (*home.TurnResult, error) {
	out, err := turn.Listen(context.Background(), func(e home.TurnEvent) error { // it ends with the chat
		p.count(&e)
		if p.flags.json {
			p.note(p.printJSON(e))
		} else {
			p.event(e.Event)
		}
		return nil
	})
	p.endMessage(false)
	p.endLine()
	return out, errors.Join(err, p.err)
}

// note keeps the first error of printing. A turn is not stopped for it: the session keeps the
// answer even if it cannot be printed.
func (p *printedAnswer) note(err error) {
	if p.err == nil {
		p.err = err
	}
}

// say writes a line of talk. It does not begin in the middle of a line of the answer, if both
// are seen on one terminal.
func (p *printedAnswer) say(format string, args ...any) {
	if p.screen != nil && p.talkScreen != nil {
		p.endLine()
	}
	p.note(p.out.Flush())
	p.app.say(format, args...)
}

// count says which calls are refused, and counts those that run.
func (p *printedAnswer) count(e *home.TurnEvent) {
	switch {
	case e.Type == agent.ToolWaiting:
		p.refused++
		p.sayRefused(e.Call, e.Question)
	case e.Type == agent.ToolEnd && e.Result != nil && !e.Result.IsError:
		p.ran++
	}
}

// sayRefused says that a call is refused because no one can be asked, and which rule would let
// it run.
func (p *printedAnswer) sayRefused(call *agent.Call, q *home.TurnQuestion) {
	why := ""
	if call.Reason != "" {
		why = " (" + render.OneLine(call.Reason, 0) + ")"
	}
	var flags []string
	for _, rule := range q.Rules {
		flags = append(flags, "--allow "+plain.ShellWord(rule))
	}
	way := strings.Join(flags, " ") + " lets it run"
	if q.NoRules != "" {
		way = "no --allow rule is for this call alone: " + q.NoRules
	}
	p.say("refused a call of %s in %s: no one is here to approve it%s; %s", call.Name, q.Dir, why, way)
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
		p.say("%s %s; %s", warning, render.OneLine(e.Retry.Reason, 0), chatui.TryingAgain(e.Retry))
	case e.Type == agent.Error && errors.Is(e.Err, session.ErrConflict):
		p.say("%s another program writes to this session too; this answer is on a branch of its own, and %s shows it", warning, p.command("tree", nil))
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
	if p.said.Len() > 0 && block != p.block {
		text = "\n" + text
	}
	p.block = block
	first := p.said.Len() == 0
	p.said.WriteString(text)
	said := p.said.String()
	switch rest, goesOn := strings.CutPrefix(said, p.broken); {
	case p.broken == "":
		if first && p.began {
			p.write("\n")
		}
		p.write(text)
	case goesOn:
		p.broken = ""
		p.write(rest)
	case !strings.HasPrefix(p.broken, said):
		p.discard()
		p.write(said)
	}
}

// discard says that what was printed of an attempt does not count.
func (p *printedAnswer) discard() {
	p.broken, p.void = "", true
	p.endLine()
	p.say("%s the model now says something else; what was printed of this answer so far does not count", p.paint(yellow, "warning:"))
	p.write("\n")
}

// write remembers whether a line is open, so that talk never begins in the middle of one.
func (p *printedAnswer) write(text string) {
	_, err := io.WriteString(p.out, text)
	p.note(err)
	if text != "" {
		p.open = !strings.HasSuffix(text, "\n")
	}
}

// endLine ends a line that was begun.
func (p *printedAnswer) endLine() {
	if p.open {
		p.write("\n")
	}
}

// endMessage ends a message, or an attempt that broke off.
func (p *printedAnswer) endMessage(brokeOff bool) {
	switch {
	case p.said.Len() == 0:
	case brokeOff && len(p.broken) < p.said.Len():
		p.broken = p.said.String()
	case !brokeOff:
		p.void = p.void || p.broken != "" // there was more of it
		p.broken, p.began = "", true
		p.endLine()
	}
	p.said.Reset()
}
