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
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// ask shows what a call would do, all of it: a person who approves it must see it.
func (u *ui) ask(e home.TurnEvent) {
	q := &question{call: e.Call, about: e.Question}
	u.asking = q
	u.ring()
	u.print(u.job.view.hear(e.Event, u.style())...)
	u.print(u.job.view.askRow(q.call, u.style())...)
	u.job.view.seen[q.call.ID] = true
	u.print(u.details(q)...)
	if q.call.Reason != "" {
		for _, row := range terminal.Wrap(render.OneLine(q.call.Reason, 0), u.style().Width-6) {
			u.print("  " + u.paint(terminal.Yellow, row))
		}
	}
	u.note("    in " + q.about.Dir)
	if q.about.NoRules != "" {
		u.note("    no rule can allow it from now on: " + render.OneLine(q.about.NoRules, 0))
	}
}

// details are the arguments of a call as far as one line does not show them.
func (u *ui) details(q *question) (rows []string) {
	use, s := useOf(q.call), u.style()
	gist := render.CallGist(use)
	short := ansi.StringWidth(gist) <= s.Width-4
	if edits := q.about.Edits; edits != nil {
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
func (u *ui) answer(ctx context.Context, k line.Key) {
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
	text := strings.TrimSpace(q.editor.Submit())
	if q.editing {
		u.always(ctx, q, strings.Split(text, "\n"))
		return
	}
	word, why, _ := strings.Cut(text, " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		u.decide(ctx, home.ApproveRequest{Decision: agent.Allow}, "allowed")
	case "n", "no":
		words := "refused"
		if why = strings.TrimSpace(why); why != "" {
			words += ": " + render.OneLine(why, 0)
		}
		u.decide(ctx, home.ApproveRequest{Decision: agent.Deny, Reason: why}, words)
	case "a", "always":
		u.editRules(q)
	case "later":
		u.decide(ctx, home.ApproveRequest{Decision: agent.Later}, "left for later")
	case "":
	default:
		u.note("    y runs it; n refuses it, and n REASON tells the model why; a shows the rule that allows it from now on, to be changed or confirmed; later leaves it waiting")
	}
}

// editRules has the person see and change the rules that would allow calls like this one.
func (u *ui) editRules(q *question) {
	if len(q.about.Rules) == 0 {
		u.note("    no rule can allow it; y runs it this time")
		return
	}
	q.editing = true
	q.editor.Set(strings.Join(q.about.Rules, "\n"))
}

// always allows a call, and from now on those that the rules are for.
func (u *ui) always(ctx context.Context, q *question, rules []string) {
	rules = slices.DeleteFunc(rules, func(rule string) bool { return strings.TrimSpace(rule) == "" })
	if q.editing = len(rules) > 0; !q.editing {
		return
	}
	q.editor.Set(strings.Join(rules, "\n")) // it stays there if a rule is wrong
	u.decide(ctx, home.ApproveRequest{Rules: rules}, "allowed, from now on: "+strings.Join(rules, ", "))
}

// decide answers the question. Rules may not allow its call: then it stays.
func (u *ui) decide(ctx context.Context, r home.ApproveRequest, words string) {
	q := u.asking
	r.Session, r.Call = u.chat.Conversation().Handle, q.call.ID
	made, err := u.o.Home.Turns.Approve(ctx, r)
	if err != nil {
		u.fail(err)
		return
	}
	q.editing = false
	q.editor.Set("")
	if made.Waiting {
		u.note("    allowed from now on: " + strings.Join(r.Rules, ", ") + "; that does not cover this call, so it still waits for you")
		return
	}
	c := terminal.Red
	if r.Decision == agent.Allow || len(r.Rules) > 0 {
		c = terminal.Green
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
		u.showWhenFree(e)
	}
}

// hold keeps an event for later: the last thing above an answer is what it is about.
func (q *question) hold(e home.TurnEvent) {
	if e.Type != agent.ToolUpdate { // of which the next one says more
		q.held = append(q.held, e)
	}
}

// isOver reports whether no answer is needed any more after an event: the turn has gone on.
func (q *question) isOver(e home.TurnEvent) bool {
	isAbout := (e.Type == agent.ToolStart || e.Type == agent.ToolEnd) && e.Call.ID == q.call.ID
	return isAbout || e.Type == agent.ToolWaiting || e.Type == agent.TurnEnd
}

// subject is the row above the answer: however long the details are, it names the call.
func (q *question) subject(s terminal.Style) string {
	return "  " + s.Paint(terminal.Yellow, "run "+ansi.Truncate(render.CallGist(useOf(q.call)), max(s.Width-7, 8), "…")+"?")
}

// prompt is what comes before an answer.
func (q *question) prompt() string {
	switch {
	case q.editing:
		return "  from now on allow (Esc: back) ›"
	case len(q.about.Rules) == 0:
		return "  y yes · n WHY no · later ›"
	}
	return "  y yes · n WHY no · a always · later ›"
}
