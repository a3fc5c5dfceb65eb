package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
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

// ask shows what a call would do, all of it: a person who approves it must see it.
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
	u.ring()
	if u.job != nil {
		u.print(u.job.view.finish(u.style())...)
		u.print(u.job.view.askRow(&q.call, u.style())...)
		u.job.view.seen[q.call.ID] = true
	}
	u.print(u.details(q)...)
	if q.call.Reason != "" {
		for _, row := range terminal.Wrap(render.OneLine(q.call.Reason, 0), u.style().Width-6) {
			u.print("  " + u.paint(terminal.Yellow, row))
		}
	}
	u.note("    in " + u.chat.Dir())
	if q.rules, err = q.box.RulesFor(q.call); err != nil {
		u.note("    no rule can allow it from now on: " + render.OneLine(err.Error(), 0))
	}
}

// details are the arguments of a call as far as one line does not show them.
func (u *ui) details(q *question) (rows []string) {
	use, s := useOf(&q.call), u.style()
	gist := render.CallGist(use)
	short := ansi.StringWidth(gist) <= s.Width-4
	if edits := q.box.Edits(q.call); edits != nil {
		for i := range edits {
			if !short {
				rows = append(rows, wrapped(render.OneLine(edits[i].Path, 0), terminal.Yellow, s)...)
			}
			rows = append(rows, editRows(&edits[i], s)...)
		}
		return rows
	}
	key, text := render.MainArgument(use)
	if short && strings.Contains(gist, text) {
		return nil
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		rows = append(rows, exactly(line, s)...)
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

// editRows draws a change to a file, with the numbers of its lines if they are known: those
// of the new file, and of the old one for lines that go.
func editRows(e *render.Edit, s terminal.Style) (rows []string) {
	colours := map[byte]terminal.Colour{'+': terminal.Green, '-': terminal.Red}
	for i := range e.Hunks {
		h := &e.Hunks[i]
		if i > 0 || h.Heading != "" {
			rows = append(rows, wrapped("@ "+h.Heading, terminal.Dim, s)...)
		}
		before, after := h.Before, h.After
		for _, l := range h.Lines {
			number := ""
			if h.Before+h.After > 0 {
				number = fmt.Sprintf("%5d ", after)
				if l.Op == '-' {
					number = fmt.Sprintf("%5d ", before)
				}
			}
			if l.Op != '+' {
				before++
			}
			if l.Op != '-' {
				after++
			}
			rows = append(rows, wrapped(number+string(l.Op)+l.Text, colours[l.Op], s)...)
		}
	}
	return rows
}

// exactly draws a line of a command with all of its spaces. A tab is to be seen.
func exactly(text string, s terminal.Style) (rows []string) {
	text = ansi.Hardwrap(strings.ReplaceAll(plain.Text(text), "\t", "⇥   "), max(s.Width-6, 8), true)
	for row := range strings.SplitSeq(text, "\n") {
		rows = append(rows, s.Paint(terminal.Dim, "  │ ")+row)
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
	case k.Kind == line.Escape && q.editing: // back to the question
		q.editing = false
		q.editor.Set("")
		return
	case k.Kind == line.Interrupt, k.Kind == line.Escape:
		u.close(q)
		u.interrupt(false)
		return
	case k.Kind != line.Enter:
		q.editor.Press(k)
		return
	}
	text := strings.TrimSpace(q.editor.Take())
	if q.editing {
		u.always(q, strings.Split(text, "\n"))
		return
	}
	word, why, _ := strings.Cut(text, " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		u.decide(agent.Allow, "allowed")
	case "n", "no":
		u.deny(strings.TrimSpace(why))
	case "a", "always":
		u.editRules(q)
	case "later":
		u.decide(agent.Later, "left for later")
	case "":
	default:
		u.note("    y runs it; n refuses it, and n REASON tells the model why; a shows the rule that allows it from now on, to be changed or confirmed; later leaves it waiting")
	}
}

// editRules has the person see and change the rules that would allow calls like this one.
func (u *ui) editRules(q *question) {
	if len(q.rules) == 0 {
		u.note("    no rule can allow it; y runs it this time")
		return
	}
	q.editing = true
	q.editor.Set(strings.Join(q.rules, "\n"))
}

// always allows a call, and from now on those that the rules are for.
func (u *ui) always(q *question, rules []string) {
	rules = slices.DeleteFunc(rules, func(rule string) bool { return strings.TrimSpace(rule) == "" })
	if err := q.box.Allow(rules...); err != nil {
		u.fail(err)
		q.editor.Set(strings.Join(rules, "\n"))
		return
	}
	if !q.box.Allows(q.call) {
		q.editing = false
		u.note("    allowed from now on: " + strings.Join(rules, ", ") + "; that does not cover this call, so it still waits for you")
		return
	}
	u.decide(agent.Allow, "allowed, from now on: "+strings.Join(rules, ", "))
}

func (u *ui) deny(why string) {
	if why == "" {
		u.decide(agent.Deny, "refused")
		return
	}
	u.decide(agent.Deny.Because(why), "refused: "+render.OneLine(why, 0))
}

func (u *ui) decide(d agent.Decision, words string) {
	q := u.asking
	q.answer <- d
	c := terminal.Green
	if d != agent.Allow {
		c = terminal.Red
	}
	for _, row := range terminal.Wrap(words, u.style().Width-6) {
		u.print("    " + u.paint(c, row))
	}
	u.close(q)
}

// close ends a question, and shows what happened since it was asked.
func (u *ui) close(q *question) {
	u.asking = nil
	for _, e := range q.held {
		u.show(e)
	}
}

// hold keeps an event for later: the last thing above an answer is what it is about.
func (q *question) hold(e agent.Event) {
	if e.Type != agent.ToolUpdate { // of which the next one says more
		q.held = append(q.held, e)
	}
}

// over is closed when no answer is needed any more. Without a question that is never.
func (q *question) over() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.ctx.Done()
}

// subject is the row above the answer: however long the details are, it names the call.
func (q *question) subject(s terminal.Style) string {
	return "  " + s.Paint(terminal.Yellow, "run "+ansi.Truncate(render.CallGist(useOf(&q.call)), max(s.Width-7, 8), "…")+"?")
}

// prompt is what comes before an answer.
func (q *question) prompt() string {
	switch {
	case q.editing:
		return "  from now on allow (Esc: back) ›"
	case len(q.rules) == 0:
		return "  y yes · n WHY no · later ›"
	}
	return "  y yes · n WHY no · a always · later ›"
}
