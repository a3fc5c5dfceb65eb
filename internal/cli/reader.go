package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// reader writes a conversation so that a person can read it.
type reader struct {
	talk   *talk
	now    time.Time
	width  int // 0: lines are not broken
	full   bool
	short  map[string]string
	labels map[string]string
	tools  map[string]string // the names of the tools by the ids of calls
	dense  bool              // the last entry took one line
	buf    strings.Builder
}

const (
	indent     = "  "
	foldedRows = 6 // of a tool's output
)

// flush writes what was collected.
func (r *reader) flush() error {
	_, err := io.WriteString(r.talk.out, r.buf.String())
	r.buf.Reset()
	return err
}

func (r *reader) line(parts ...string) {
	for _, part := range parts {
		r.buf.WriteString(part)
	}
	r.buf.WriteByte('\n')
}

// text writes text of several lines, broken to the width, each line painted for
// itself so that a pager which begins in the middle has the colour.
func (r *reader) text(before, text string, c colour) {
	text = strings.ReplaceAll(plain.Text(strings.Trim(text, "\n")), "\t", "    ")
	for line := range strings.SplitSeq(text, "\n") {
		if r.width > 0 {
			line = ansi.Wrap(line, max(r.width-ansi.StringWidth(before), 16), "")
		}
		for row := range strings.SplitSeq(line, "\n") {
			r.line(strings.TrimRight(before+r.talk.paint(c, strings.TrimRight(row, " ")), " "))
		}
	}
}

// fits shortens a line to the width.
func (r *reader) fits(text string, used int) string {
	if r.width == 0 {
		return text
	}
	return ansi.Truncate(text, max(r.width-used, 8), "…")
}

// head writes what the session is.
func (r *reader) head(title string, h *session.Header, tags []string) {
	if title == "" {
		title = "(untitled)"
	}
	r.line(r.talk.paint(bold, r.fits(oneLine(title, 0), 0)))
	facts := []string{h.ID, r.talk.when(h.CreatedAt, r.now)}
	if h.ParentSession != "" {
		facts = append(facts, fmt.Sprintf("%s of %s", orElse(h.Relation, "child"), h.ParentSession))
	}
	if h.CWD != "" {
		facts = append(facts, h.CWD)
	}
	for _, tag := range tags {
		facts = append(facts, "#"+tag)
	}
	for i := range facts {
		facts[i] = oneLine(facts[i], 0)
	}
	r.text("", strings.Join(facts, " · "), dim)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// entry writes an entry after an empty line. Entries that take a single line
// stand together.
func (r *reader) entry(e *session.Entry) {
	dense := !e.Type.IsSaid()
	if !dense || !r.dense {
		r.line()
	}
	r.dense = dense
	switch {
	case e.Compaction != nil:
		r.compaction(e)
	case e.Message != nil:
		r.header(e, render.MessageFacts(e.Message)...)
		for i := range e.Message.Content {
			r.block(&e.Message.Content[i])
		}
	case e.BranchSummary != nil:
		r.header(e, "of the branch left at "+r.id(e.BranchSummary.FromID))
		r.text(indent, e.BranchSummary.Summary, "")
	case e.Merge != nil:
		r.header(e, "of the branch that ends at "+r.id(e.Merge.FromID), counted(len(e.Merge.EntryIDs), "entry", "entries"))
		if e.Merge.Summary != "" {
			r.text(indent, e.Merge.Summary, "")
		}
	default:
		r.setting(e)
	}
}

// setting writes what is not part of the conversation, on one line.
func (r *reader) setting(e *session.Entry) {
	kind := render.Kind(e)
	line := r.talk.paint(kindColour(kind), kind) + indent + r.talk.paint(dim, r.id(e.ID)+" · "+r.talk.when(e.Timestamp, r.now)) + indent
	r.line(strings.TrimRight(line+r.fits(render.GistNaming(e, 0, r.id), ansi.StringWidth(line)), " "))
}

func (r *reader) id(id string) string { return shortened(r.short, id) }

// header writes who speaks, when, and what else is known.
func (r *reader) header(e *session.Entry, facts ...string) {
	kind := render.Kind(e)
	facts = append([]string{r.talk.when(e.Timestamp, r.now)}, facts...)
	line := r.talk.paint(bold+";"+kindColour(kind), kind) + indent + r.talk.paint(dim, r.id(e.ID))
	if label := r.labels[e.ID]; label != "" {
		line += indent + r.talk.paint(yellow, "["+oneLine(label, 0)+"]")
	}
	for _, fact := range facts {
		if fact == "" {
			continue
		}
		longer := line + r.talk.paint(dim, " · "+fact)
		if r.width > 0 && ansi.StringWidth(longer) > r.width {
			break // the rest is less important, and in --json
		}
		line = longer
	}
	r.line(r.fits(line, 0))
}

func (r *reader) block(c *session.Content) {
	switch {
	case c.Text != nil:
		r.text(indent, c.Text.Content, "")
	case c.Thinking != nil:
		r.text(indent+r.talk.paint(dim, "┊ "), orElse(c.Thinking.Content, "(thinking that the provider keeps to itself)"), dim)
	case c.ToolUse != nil:
		r.call(c.ToolUse)
	case c.ToolResult != nil:
		r.result(c.ToolResult)
	default:
		r.line(indent, r.fits(render.MediaGist(c), 2))
	}
}

func (r *reader) call(t *session.ToolUseContent) {
	r.tools[t.ID] = t.Name
	arrow := r.talk.paint(yellow, "→ ")
	if !r.full {
		name, rest, _ := strings.Cut(r.fits(render.CallGist(t), 4), " ")
		r.line(indent, arrow, r.talk.paint(yellow, name), " ", rest)
		return
	}
	r.line(indent, arrow, r.talk.paint(yellow, oneLine(t.Name, 0)))
	input, err := json.MarshalIndent(t.Input, "", "  ")
	if err == nil {
		r.text(indent+indent, string(input), dim)
	}
}

func (r *reader) result(t *session.ToolResultContent) {
	if name := r.tools[t.ToolUseID]; name != "" || t.IsError {
		line := r.talk.paint(yellow, "← "+oneLine(name, 0))
		if t.IsError {
			line += " " + r.talk.paint(red, "error")
		}
		r.line(indent, line)
	}
	rows := strings.Split(strings.Trim(t.Content, "\n"), "\n")
	hidden := 0
	if !r.full && len(rows) > foldedRows+1 {
		hidden = len(rows) - foldedRows
		rows = rows[:foldedRows]
	}
	for _, row := range rows {
		if !r.full {
			row = r.fits(strings.ReplaceAll(plain.Text(row), "\t", "    "), 4)
		}
		if t.Content != "" {
			r.text(indent+r.talk.paint(dim, "│ "), row, "")
		}
	}
	if hidden > 0 {
		r.line(indent, r.talk.paint(dim, "│ "+moreLines(hidden)))
	}
	for i := range t.Parts {
		if t.Parts[i].Text == nil { // its text is in Content
			r.block(&t.Parts[i])
		}
	}
}

// compaction writes a divider: what stands above is no longer sent.
func (r *reader) compaction(e *session.Entry) {
	c := e.Compaction
	text := "compacted"
	if c.TokensBefore > 0 {
		text += " from " + counted(c.TokensBefore, "token", "tokens")
	}
	if c.FirstKeptEntryID != "" && c.FirstKeptEntryID != e.ID {
		text += ", kept from " + r.id(c.FirstKeptEntryID) + " on"
	}
	r.divider(text)
	r.header(e)
	r.text(indent, c.Summary, "")
}

func (r *reader) divider(text string) {
	width := r.width
	if width == 0 {
		width = 80
	}
	text = r.fits("── "+text+" ", 0)
	rule := strings.Repeat("─", max(width-ansi.StringWidth(text), 0))
	r.line(r.talk.paint(blue, text+rule))
}

// branches says what else follows, and how to see it.
func (r *reader) branches(sh *render.Outline, others []*render.Node, name, where string) {
	if len(others) == 0 {
		return
	}
	r.dense = false
	r.line()
	r.line(r.talk.paint(yellow, "╰─ "+counted(len(others), "other branch", "other branches")+" "+where+":"))
	for _, t := range others {
		command := "   " + showCommandFor(name, sh.Names.Name(t.Tip().Entry.ID))
		about := render.Kind(&t.Entry) + ": " + render.Gist(&t.Entry, 200)
		if r.width == 0 {
			about = oneLine(about, 80)
		}
		// Not every shell takes it for a comment when the whole line is pasted.
		about = plain.ShellWord(r.fits(about, ansi.StringWidth(command)+len("  # ''")))
		r.line(command, r.talk.paint(dim, "  # "+about))
	}
}
