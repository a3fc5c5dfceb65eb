package chat

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// approve is asked by the agent, in a goroutine of its own, and waits for the person.
func (u *ui) approve(ctx context.Context, call agent.Call) (agent.Decision, error) {
	q := &question{call: call, ctx: ctx, answer: make(chan agent.Decision, 1)}
	select {
	case u.questions <- q:
	case <-ctx.Done():
		return agent.Later, context.Cause(ctx)
	}
	select {
	case d := <-q.answer:
		return d, nil
	case <-ctx.Done():
		return agent.Later, context.Cause(ctx)
	}
}

// ask shows what a call would do, all of it: whoever approves must see it.
func (u *ui) ask(q *question) {
	if q.ctx.Err() != nil {
		return
	}
	var err error
	if q.box, err = u.chat.Toolbox(q.ctx); err != nil {
		u.fail(err)
		q.answer <- agent.Later
		return
	}
	u.asking = q
	if u.job != nil {
		u.print(u.job.view.finish(u.style())...)
		u.print(u.job.view.callRow(&q.call, u.style())...)
	}
	u.print(u.details(&q.call)...)
	if q.call.Reason != "" {
		for _, row := range terminal.Wrap(render.OneLine(q.call.Reason, 0), u.style().Width-6) {
			u.print("  " + u.paint(terminal.Yellow, row))
		}
	}
	u.note("    in " + u.chat.Dir())
	u.offer(q)
}

// offer says what "always" would allow.
func (u *ui) offer(q *question) {
	text := "a allows from now on: " + render.OneLine(q.box.RuleFor(q.call), 0)
	if err := q.box.WhyNoRule(q.call); err != nil {
		text = "a allows it only this time: " + render.OneLine(err.Error(), 0)
	}
	for _, row := range terminal.Wrap(text, u.style().Width-6) {
		u.note("  " + row)
	}
}

// details are the arguments of a call as far as one line does not show them.
func (u *ui) details(c *agent.Call) (rows []string) {
	use, s := useOf(c), u.style()
	short := ansi.StringWidth(render.CallGist(use)) <= s.Width-4
	if edits := render.Edits(use); edits != nil {
		for i := range edits {
			if !short {
				rows = append(rows, wrapped(render.OneLine(edits[i].Path, 0), terminal.Yellow, s)...)
			}
			for _, l := range edits[i].Rows() {
				colour := map[byte]terminal.Colour{'+': terminal.Green, '-': terminal.Red}[byte(l.Op)]
				rows = append(rows, wrapped(string(l.Op)+l.Text, colour, s)...)
			}
		}
		return rows
	}
	key, text := render.MainArgument(use)
	if short && !strings.Contains(text, "\n") {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		rows = append(rows, wrapped(line, "", s)...)
	}
	for _, name := range slices.Sorted(maps.Keys(use.Input)) {
		if name == key {
			continue
		}
		value, ok := use.Input[name].(string)
		if !ok {
			raw, _ := json.Marshal(use.Input[name]) // it was JSON before
			value = string(raw)
		}
		for line := range strings.SplitSeq(name+": "+value, "\n") {
			rows = append(rows, wrapped(line, "", s)...)
		}
	}
	return rows
}

// wrapped draws a line of what a call would do, below the call.
func wrapped(text string, c terminal.Colour, s terminal.Style) (rows []string) {
	for _, row := range terminal.Wrap(strings.ReplaceAll(text, "\t", "    "), s.Width-6) {
		rows = append(rows, s.Paint(terminal.Dim, "  │ ")+s.Paint(c, row))
	}
	return rows
}

// answer takes a key of the answer to a question.
func (u *ui) answer(k line.Key) {
	q := u.asking
	switch {
	case k.Kind == line.Interrupt, k.Kind == line.Escape:
		u.asking = nil
		u.interrupt(false)
		return
	case k.Kind != line.Enter:
		q.editor.Press(k)
		return
	}
	text := strings.ToLower(strings.TrimSpace(q.editor.Take()))
	switch text {
	case "y", "yes":
		u.decide(agent.Allow, "allowed")
	case "n", "no":
		u.decide(agent.Deny, "refused")
	case "a", "always":
		u.always(q)
	case "later":
		u.decide(agent.Later, "left for later")
	case "":
	default:
		u.note("    y runs it, n refuses it, a runs it now and whenever it is called like this, later leaves it waiting")
	}
}

func (u *ui) decide(d agent.Decision, words string) {
	u.asking.answer <- d
	u.asking = nil
	c := terminal.Green
	if d != agent.Allow {
		c = terminal.Red
	}
	u.print("    " + u.paint(c, words))
}

// always allows a call, and for the rest of the chat those like it.
func (u *ui) always(q *question) {
	if err := q.box.WhyNoRule(q.call); err != nil {
		u.decide(agent.Allow, "allowed, this time: "+render.OneLine(err.Error(), 0))
		return
	}
	rule := q.box.RuleFor(q.call)
	if err := q.box.Allow(rule); err != nil {
		u.fail(err)
		return
	}
	u.decide(agent.Allow, "allowed, from now on: "+render.OneLine(rule, 0))
}
