package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// unheard is what the person said while the model works, until the model hears it.
type unheard struct {
	id, text string
	images   []string // of /image; those that the text names are in it
}

// typeAhead takes what was typed while the model works. Words are for the model, as soon as
// it can hear them. Commands and files wait for the end of the turn, and so does what comes
// after them.
func (u *ui) typeAhead(ctx context.Context, text string) {
	_, isCommand := commandIn(text)
	_, _, isShell := shellIn(text)
	if isCommand || isShell || !u.job.isTurn || len(u.queue) > 0 || len(u.chat.Mentions(text).Files) > 0 {
		u.queue = append(u.queue, text)
		return
	}
	content, err := u.chat.Prompt(text, slices.Concat(u.images, u.mentions(text).Images)...)
	if err != nil {
		u.unsent(text, err)
		return
	}
	switch said, err := u.o.Home.Turns.Steer(ctx, home.SteerRequest{Session: u.chat.Conversation().Handle, Content: content}); {
	case home.KindOf(err) == home.KindConflict: // it is busy with something else, or has just ended
		u.queue = append(u.queue, text)
	case err != nil:
		u.fail(err)
		u.queue = append(u.queue, text)
	default:
		u.images, u.pasted, u.unheard = nil, nil, append(u.unheard, unheard{said.Entry, text, u.images})
	}
}

// heard shows a message that was queued, now that it is part of the conversation.
func (u *ui) heard(e agent.Event) {
	if e.Type != agent.MessageEnd {
		return
	}
	ids := e.Entry.Unqueued()
	if len(ids) == 0 {
		return
	}
	u.unheard = slices.DeleteFunc(u.unheard, func(one unheard) bool { return slices.Contains(ids, one.id) })
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

// unsend puts what was typed ahead back into the prompt, before what is there, and its
// images beside it. Words that the model has just been sent stay in the conversation.
func (u *ui) unsend() {
	var texts []string
	if len(u.unheard) > 0 {
		back, err := u.o.Home.Turns.TakeBack(context.Background(), home.SessionRequest{Session: u.chat.Conversation().Handle})
		if err != nil {
			u.fail(err)
			return
		}
		for i := range back.Queued {
			texts = append(texts, session.TextOf(back.Queued[i].Content))
			for _, one := range u.unheard {
				if one.id == back.Queued[i].ID {
					u.images = append(u.images, one.images...)
				}
			}
		}
	}
	u.unheard, texts = nil, append(texts, u.queue...)
	if len(texts) == 0 {
		return
	}
	if now := u.editor.Text(); now != "" {
		texts = append(texts, now)
	}
	u.editor.Set(strings.Join(texts, "\n"))
	u.queue = nil
}
