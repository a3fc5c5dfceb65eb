package terminal

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Fold limits the output and the edits that are drawn.
type Fold int

// The ways to fold.
const (
	Shortened Fold = iota // the first lines
	Folded                // one line
	Whole
)

// EntryOptions say how to draw an entry by itself.
type EntryOptions struct {
	Tools    Fold // calls and their results
	Thinking Fold // Folded, or else whole
	Label    string
	// Continues leaves out who speaks: the entry before said so.
	Continues bool
	// Answer returns what a tool answered to a call, to be drawn with it; nil if that is not
	// known. Without the function, calls are drawn alone.
	Answer    func(call string) *session.ToolResultContent
	Subagents []string // the sessions that its calls started
	// Media returns rows that show an image, below the line that says what it is. The function may
	// be nil, and so may what it returns.
	Media func(c *session.Content) []string
}

// Entry draws one entry as rows.
func Entry(s Style, e *session.Entry, o EntryOptions) []string {
	r := newReader(nil, s, ShowOptions{Full: o.Tools == Whole})
	r.coloured, r.first = maxColoured, true
	r.alone = &o
	if o.Label != "" {
		r.labels = map[string]string{e.ID: o.Label}
	}
	rest := o.Subagents
	if calls := callsOf(e); len(calls) == len(rest) { // otherwise it is not known which started which
		r.subagent = func(t *session.ToolUseContent) string { return o.Subagents[slices.Index(calls, t)] }
		rest = nil
	}
	r.entry(e)
	for _, name := range rest {
		r.line(indent, r.Paint(Dim, r.fitLine(subagentMark+render.OneLine(name, 0), 2)))
	}
	return strings.Split(strings.TrimSuffix(r.buf.String(), "\n"), "\n")
}

func callsOf(e *session.Entry) (calls []*session.ToolUseContent) {
	if e.Message == nil {
		return nil
	}
	for i := range e.Message.Content {
		if t := e.Message.Content[i].ToolUse; t != nil {
			calls = append(calls, t)
		}
	}
	return calls
}

// answered draws what a tool answered below its call, if the line of the call does not say it all.
func (r *reader) answered(t *session.ToolUseContent) {
	if r.alone == nil || r.alone.Answer == nil {
		return
	}
	answer := r.alone.Answer(t.ID)
	if answer == nil {
		return
	}
	if text := strings.TrimSpace(answer.Content); len(answer.Parts) > 0 || strings.TrimSpace(render.OutcomeGist(answer)) != text {
		r.answer(answer)
	}
}

// endedCall draws a call on one line, with how it ended if that is known.
func (r *reader) endedCall(gist string, t *session.ToolUseContent) {
	end := r.end(t)
	name, rest, _ := strings.Cut(gist, " ")
	line := indent + r.Paint(Yellow, "→ "+name)
	if used := ansi.StringWidth(line+end) + 1; r.Width == 0 || r.Width-used >= 8 {
		line += " " + r.fitLine(rest, used)
	}
	r.line(strings.TrimRight(line+end, " "))
}

// end says how a call ended, behind its line.
func (r *reader) end(t *session.ToolUseContent) string {
	if r.alone == nil || r.alone.Answer == nil {
		return ""
	}
	return "  " + r.outcome(r.alone.Answer(t.ID))
}

// outcome says how a call ended, in a few words.
func (r *reader) outcome(t *session.ToolResultContent) string {
	if t == nil {
		return r.Paint(Dim, "no answer")
	}
	words := render.OutcomeGist(t)
	if words == "" {
		return r.mark(t)
	}
	words = " " + r.fitLine(words, r.Width/2)
	if t.IsError {
		return r.mark(t) + r.Paint(Red, words)
	}
	return r.mark(t) + r.Paint(Dim, words)
}

// mark says whether a call went well.
func (r *reader) mark(t *session.ToolResultContent) string {
	if t.IsError {
		return r.Paint(Red, "✗")
	}
	return r.Paint(Green, "✓")
}

// thought draws thinking on a line.
func (r *reader) thought(text string) {
	lines := 1 + strings.Count(strings.TrimSpace(text), "\n")
	gist := render.OneLine(text, max(r.Width-20, 20))
	more := ""
	if lines > 1 {
		more = "  " + render.Counted(lines, "line", "lines")
	}
	r.line(indent, r.Paint(Dim, "┊ "+r.fitLine(gist, 4+ansi.StringWidth(more))+more))
}
