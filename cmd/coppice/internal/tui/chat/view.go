package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// view is how the events of a job look. It turns each into finished rows, and knows the
// rows that are not finished yet.
type view struct {
	doing string // in a few words

	part    part // what grows
	block   int
	stream  *terminal.Stream
	thought strings.Builder
	said    strings.Builder // the text of the message so far
	call    string          // the name of the call whose arguments grow
	group   part            // what was printed last: parts of one kind are shown together
	shown   map[string]bool // the calls that were printed
	seen    map[string]bool // the calls that a question showed in full
	last    string          // the call that was printed last, if nothing was since
	running map[string]bool
	several bool // calls run or ran at the same time
	// progress is what a running tool says so far.
	progress string
	// compacting means that a person asked for a compaction, and is told at the end if it
	// fails.
	compacting bool
	failed     string // why the request was sent again last
	asked      bool   // the model was asked in this turn
}

// part is a kind of what a model does.
type part int

const (
	nothing part = iota
	talking
	thinking
	calling
	noting
)

const (
	maxThought  = 3  // rows of a thought that stay
	liveThought = 3  // rows of a thought that grows
	maxResult   = 4  // rows of a tool's result
	maxChange   = 12 // rows of a change that was not asked about
)

func newView() *view {
	return &view{doing: "waiting for the model", shown: make(map[string]bool), seen: make(map[string]bool), running: make(map[string]bool)}
}

// hear takes an event and returns the rows that are finished with it.
func (v *view) hear(e agent.Event, s terminal.Style) []string {
	switch e.Type {
	case agent.MessageStart:
		v.doing, v.asked = "answering", true
		v.said.Reset()
	case agent.MessageUpdate:
		return v.update(e.Update, s)
	case agent.MessageEnd:
		return v.message(e.Entry, s)
	case agent.MessageDropped:
		shown := v.part != nothing || v.said.Len() > 0
		v.part = nothing
		if !shown || errors.Is(e.Err, context.Canceled) {
			return nil // why is said when the turn ends, or when it is tried again
		}
		return v.lines(s, noting, terminal.Yellow, "↻ that attempt failed and is not kept: "+e.Error)
	case agent.ToolWaiting:
		v.doing = "waiting for you"
		return v.finish(s) // the question shows the call
	case agent.ToolStart:
		v.doing = "running " + render.OneLine(e.Call.Name, 40)
		v.running[e.Call.ID] = true
		v.several = len(v.running) > 1 || v.several
		return append(v.finish(s), v.callRow(e.Call, s)...)
	case agent.ToolUpdate:
		v.progress = e.Text
	case agent.ToolEnd:
		v.progress = ""
		return v.result(e, s)
	case agent.CompactionStart:
		v.doing = "writing a summary"
		return v.finish(s)
	case agent.CompactionEnd:
		return v.compacted(e, s)
	case agent.Retry:
		return append(v.finish(s), v.retry(e.Retry, s)...)
	case agent.Error:
		return append(v.finish(s), v.lines(s, noting, terminal.Red, "✗ "+e.Error)...)
	}
	return nil
}

// update takes a piece of an answer.
func (v *view) update(e *provider.Event, s terminal.Style) []string {
	switch e.Type {
	case provider.EventText:
		rows := v.turnTo(talking, e.Block, s)
		v.said.WriteString(e.Text)
		return append(rows, v.grow(e.Text, s)...)
	case provider.EventThinking:
		rows := v.turnTo(thinking, e.Block, s)
		v.doing = "thinking"
		v.thought.WriteString(e.Text)
		return rows
	case provider.EventCallStart:
		rows := v.turnTo(calling, e.Block, s)
		v.call = e.Call.Name
		v.doing = "calling " + render.OneLine(v.call, 40)
		return rows
	case provider.EventRetry:
		return append(v.finish(s), v.retry(e.Retry, s)...)
	}
	return nil
}

// turnTo makes a block the one that grows.
func (v *view) turnTo(p part, block int, s terminal.Style) []string {
	if v.part == p && v.block == block {
		return nil
	}
	rows := v.finish(s)
	v.part, v.block = p, block
	if p == talking {
		v.doing = "answering"
		v.stream = terminal.NewStream(s)
	}
	return rows
}

// grow draws more text.
func (v *view) grow(text string, s terminal.Style) []string {
	v.stream.Resize(s.Width)
	return v.grouped(talking, v.stream.Add(text))
}

// finish ends the part that grows.
func (v *view) finish(s terminal.Style) (rows []string) {
	switch v.part {
	case talking:
		v.stream.Resize(s.Width)
		rows = v.grouped(talking, v.stream.End())
	case thinking:
		rows = v.grouped(thinking, thoughtRows(v.thought.String(), s, false))
		v.thought.Reset()
	}
	v.part = nothing
	return rows
}

// end finishes what is left when a job has ended.
func (v *view) end(s terminal.Style) []string { return v.finish(s) }

// grouped puts an empty row between parts of different kinds.
func (v *view) grouped(p part, rows []string) []string {
	if len(rows) == 0 {
		return nil
	}
	if v.group != p {
		rows = append([]string{""}, rows...)
	}
	v.group, v.last = p, ""
	return rows
}

// live are the rows that may still change.
func (v *view) live(s terminal.Style) (rows []string) {
	switch v.part {
	case talking:
		v.stream.Resize(s.Width)
		rows = v.stream.Rows()
	case thinking:
		rows = thoughtRows(v.thought.String(), s, true)
	case calling:
		rows = []string{s.Paint(terminal.Dim, "  → "+render.OneLine(v.call, 40)+" …")}
	case nothing:
		if v.progress != "" {
			return lastRows(v.progress, s)
		}
	}
	if len(rows) > 0 && v.group != v.part {
		rows = append([]string{""}, rows...)
	}
	return rows
}

// thoughtRows draws a thought: its end while it grows, and its beginning later.
func thoughtRows(text string, s terminal.Style, growing bool) []string {
	var rows []string
	for line := range strings.SplitSeq(plain.Text(strings.TrimSpace(text)), "\n") {
		if strings.TrimSpace(line) != "" {
			rows = append(rows, terminal.Wrap(line, min(s.Width, maxReading)-4)...)
		}
	}
	switch {
	case growing && len(rows) > liveThought:
		rows = rows[len(rows)-liveThought:]
	case !growing && len(rows) > maxThought:
		rows = rows[:maxThought]
		rows[maxThought-1] = ansi.Truncate(rows[maxThought-1], max(min(s.Width, maxReading)-6, 8), "") + " …"
	}
	for i := range rows {
		rows[i] = s.Paint(terminal.Dim, "  ┊ "+rows[i])
	}
	return rows
}

// maxReading is a width beyond which text is hard to follow.
const maxReading = 110

// message takes a message that is in the log now. If events were missed, the rest of what
// the model said comes from here.
func (v *view) message(e *session.Entry, s terminal.Style) []string {
	if e == nil || e.Message == nil || e.Message.Role != session.RoleAssistant {
		return nil
	}
	if !v.asked && e.Message.Metadata[provider.MetaIncomplete] != nil {
		return nil // the draft that an earlier program left, which was shown already
	}
	text, said := textOf(e.Message), v.said.String()
	v.said.Reset()
	var rows []string
	if squeeze(text) != squeeze(said) {
		if rest, ok := strings.CutPrefix(text, said); ok && v.part == talking {
			rows = v.grow(rest, s)
		} else if text != "" {
			rows = v.turnTo(talking, -1, s)
			rows = append(rows, v.grow(text, s)...)
		}
	}
	rows = append(rows, v.finish(s)...)
	v.doing = "waiting for the model"
	return rows
}

// squeeze leaves out line breaks: blocks of text are joined by them.
func squeeze(text string) string { return strings.ReplaceAll(text, "\n", "") }

// callRow draws a call on one line, unless it was drawn before.
func (v *view) callRow(c *agent.Call, s terminal.Style) []string {
	if v.shown[c.ID] {
		return nil
	}
	return v.askRow(c, s)
}

// askRow draws a call that is asked about, unless it is what was drawn last.
func (v *view) askRow(c *agent.Call, s terminal.Style) []string {
	if v.last == c.ID {
		return nil
	}
	v.shown[c.ID] = true
	rows := v.grouped(calling, []string{callLine("→ ", c, s)})
	v.last = c.ID
	return rows
}

// callLine names a call on one line, behind an arrow.
func callLine(arrow string, c *agent.Call, s terminal.Style) string {
	gist := ansi.Truncate(render.CallGist(useOf(c)), max(s.Width-4, 8), "…")
	name, rest, _ := strings.Cut(gist, " ")
	return strings.TrimRight("  "+s.Paint(terminal.Yellow, arrow+name)+" "+rest, " ")
}

// useOf returns a call in the form in which a message has it.
func useOf(c *agent.Call) *session.ToolUseContent {
	return session.ToolUseJSON(c.ID, c.Name, json.RawMessage(c.Input)).ToolUse
}

// result draws what a tool answered, shortened.
func (v *view) result(e agent.Event, s terminal.Style) []string {
	rows := append(v.finish(s), v.callRow(e.Call, s)...)
	named := v.several || v.last != e.Call.ID // what is right above may be about another call
	delete(v.running, e.Call.ID)
	v.several = v.several && len(v.running) > 0
	v.doing = "waiting for the model"
	if e.Result == nil {
		return rows
	}
	use := useOf(e.Call)
	var drawn []string
	if named {
		drawn = append(drawn, callLine("← ", e.Call, s))
	}
	if !v.seen[e.Call.ID] && !e.Result.IsError {
		drawn = append(drawn, changeRows(render.Edits(use), s)...)
	}
	first, last := maxResult, 0
	if key, _ := render.MainArgument(use); key == "command" || key == "cmd" {
		first, last = 1, maxResult // how it went is at the end
	}
	return append(rows, v.grouped(calling, append(drawn, resultRows(resultText(e.Result), first, last, e.Result.IsError, s)...))...)
}

func resultText(r *agent.Result) string {
	if r.Text == "" {
		return session.TextOf(r.Parts)
	}
	return r.Text
}

// changeRows draws what was changed in files, shortened.
func changeRows(edits []render.Edit, s terminal.Style) (rows []string) {
	for i := range edits {
		if len(edits) > 1 {
			rows = append(rows, wrapped(render.OneLine(edits[i].Path, 0), terminal.Yellow, s)...)
		}
		rows = append(rows, editRows(&edits[i], s)...)
	}
	if hidden := len(rows) - maxChange; hidden > 1 {
		rows = append(rows[:maxChange], s.Paint(terminal.Dim, "  │ … "+render.Counted(hidden, "more line", "more lines")))
	}
	return rows
}

// resultRows draws the first and the last lines of a result.
func resultRows(text string, first, last int, isError bool, s terminal.Style) (rows []string) {
	c := terminal.Dim
	if isError {
		c = terminal.Red
	}
	lines := strings.Split(strings.Trim(plain.Text(text), "\n"), "\n")
	hidden := len(lines) - first - last
	for i, line := range lines {
		if hidden > 1 && i >= first && i < first+hidden {
			if i == first {
				rows = append(rows, s.Paint(terminal.Dim, "  │ … "+render.Counted(hidden, "more line", "more lines")))
			}
			continue
		}
		line = strings.ReplaceAll(line, "\t", "    ")
		rows = append(rows, strings.TrimRight(s.Paint(terminal.Dim, "  │ ")+s.Paint(c, ansi.Truncate(line, max(s.Width-4, 8), "…")), " "))
	}
	return rows
}

// lastRows draws the end of what a running tool says.
func lastRows(text string, s terminal.Style) []string {
	lines := strings.Split(strings.Trim(plain.Text(text), "\n"), "\n")
	return resultRows(strings.Join(lines[max(len(lines)-maxResult, 0):], "\n"), maxResult, 0, false, s)
}

func (v *view) retry(r *provider.Retry, s terminal.Style) []string {
	if r == nil {
		return nil
	}
	v.doing = TryingAgain(r)
	if r.Reason == v.failed && v.group == noting {
		return nil // nothing came of the attempt; what is going on says the rest
	}
	v.failed = r.Reason
	return v.lines(s, noting, terminal.Yellow, "↻ "+r.Reason+"; "+v.doing)
}

// TryingAgain says when a request is sent again.
func TryingAgain(r *provider.Retry) string {
	text := "trying again"
	if r.After >= time.Second {
		text += fmt.Sprintf(" in %d s", int(r.After.Seconds()))
	}
	if r.Attempt > 2 {
		text += fmt.Sprintf(" (attempt %d)", r.Attempt)
	}
	return text
}

func (v *view) compacted(e agent.Event, s terminal.Style) []string {
	v.doing = "waiting for the model"
	if e.Compacted == nil && v.compacting {
		return nil
	}
	if e.Compacted == nil {
		return v.lines(s, noting, terminal.Yellow, "✗ the conversation could not be compacted: "+e.Error)
	}
	return v.grouped(noting, []string{compactedLine(e.Compacted, s)})
}

func compactedLine(c *agent.Compacted, s terminal.Style) string {
	text := fmt.Sprintf("── compacted from %s to %s tokens; /undo takes it back ", render.Thousands(c.TokensBefore), render.Thousands(c.TokensAfter))
	text = ansi.Truncate(text, max(s.Width-2, 8), "…")
	return "  " + s.Paint(terminal.Blue, text+strings.Repeat("─", max(min(s.Width, maxReading)-2-ansi.StringWidth(text), 0)))
}

// lines draws a remark.
func (v *view) lines(s terminal.Style, p part, c terminal.Colour, text string) []string {
	var rows []string
	for i, row := range terminal.Wrap(render.OneLine(text, 0), s.Width-4) {
		before := "  "
		if i > 0 {
			before = "    "
		}
		rows = append(rows, before+s.Paint(c, row))
	}
	return v.grouped(p, rows)
}
