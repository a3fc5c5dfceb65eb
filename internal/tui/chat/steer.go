package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/session"
)

// unheard is what the person said while the model works, until the model hears it.
type unheard struct{ id, text string }

// typeAhead takes what was typed while the model works. Words are for the model, as soon as
// it can hear them. Commands and files wait for the end of the turn, and so does what comes
// after them.
func (u *ui) typeAhead(ctx context.Context, text string) {
	_, isCommand := commandIn(text)
	_, _, isShell := shellIn(text)
	a := u.chat.Agent()
	if isCommand || isShell || a == nil || len(u.queue) > 0 || len(u.chat.Mentions(text).Files) > 0 {
		u.queue = append(u.queue, text)
		return
	}
	content, err := u.chat.Prompt(text, slices.Concat(u.images, u.mentions(text).Images)...)
	if err != nil {
		u.fail(err)
		return
	}
	switch id, err := a.Steer(ctx, content...); {
	case errors.Is(err, agent.ErrIdle): // it is busy with something else, or has just ended
		u.queue = append(u.queue, text)
	case err != nil:
		u.fail(err)
		u.queue = append(u.queue, text)
	default:
		u.images, u.pasted, u.unheard = nil, nil, append(u.unheard, unheard{id, text})
	}
}

// heard shows a message that was queued, now that it is part of the conversation.
func (u *ui) heard(e agent.Event) {
	if e.Type != agent.MessageEnd || e.Entry.Message == nil {
		return
	}
	id, queued := e.Entry.Message.Metadata[session.MetaQueued].(string)
	if !queued {
		return
	}
	u.unheard = slices.DeleteFunc(u.unheard, func(one unheard) bool { return one.id == id })
	v := u.job.view
	u.print(append(v.finish(u.style()), "")...)
	u.echo(session.TextOf(e.Entry.Message.Content))
	v.group, v.last = nothing, "" // an empty row follows
}

// echo prints what the person said.
func (u *ui) echo(text string) {
	var typed line.Editor
	typed.Set(text)
	columns, _ := u.screen.Size()
	rows, _, _ := typed.Rows(u.prompt(), columns, maxEcho)
	u.print(rows...)
}

// typedAhead returns what was typed ahead and not used yet.
func (u *ui) typedAhead() []string {
	var texts []string
	for _, one := range u.unheard {
		texts = append(texts, one.text)
	}
	return append(texts, u.queue...)
}

// takeBack puts what was typed ahead back into the prompt, before what is there.
func (u *ui) takeBack() {
	if a := u.chat.Agent(); a != nil && len(u.unheard) > 0 {
		if _, err := a.TakeBack(context.Background()); err != nil {
			u.fail(err)
			return
		}
	}
	texts := u.typedAhead()
	if len(texts) == 0 {
		return
	}
	if now := u.editor.Text(); now != "" {
		texts = append(texts, now)
	}
	u.editor.Set(strings.Join(texts, "\n"))
	u.unheard, u.queue = nil, nil
}
