package terminal

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// reader writes a conversation so that a person can read it.
type reader struct {
	Style
	w        io.Writer // nil keeps all in buf
	o        ShowOptions
	names    render.Names
	alone    *EntryOptions // how an entry is drawn by itself; nil in a conversation
	labels   map[string]string
	notes    []session.TagNote                    // why the session was rated, the latest first
	subagent func(*session.ToolUseContent) string // the session that a call started
	started  map[string]bool                      // the calls that were shown with it
	key      string                               // of the session
	tags     []string                             // of the session
	tools    map[string]string                    // the names of the tools by the ids of calls
	dense    bool                                 // the last entry took one line
	pointAt  string                               // the entry that was asked for, or ""
	first    bool                                 // nothing is written yet
	lead     string                               // what the next line begins with, instead of leadFor
	leadFor  string
	coloured int  // how many more bytes of code to colour by their grammar, which is slow
	goesOn   bool // the text begins within a code block that is partly drawn
	buf      bytes.Buffer
	err      error // of writing
}

const (
	indent     = "  "
	foldedRows = 6        // of a tool's output
	foldedDiff = 16       // of a diff: it says more than output does
	enough     = 64 << 10 // to be written before an entry is drawn: one may be as large as memory
)

// Measure is how wide a conversation is drawn at most: longer lines are hard to follow.
const Measure = 110

func newReader(w io.Writer, s Style, o ShowOptions) *reader {
	s.Width = min(s.Width, Measure)
	return &reader{Style: s, w: w, o: o, tools: make(map[string]string), started: make(map[string]bool), subagent: render.Conversation{}.Subagent}
}

// flush writes what was collected.
func (r *reader) flush() error {
	if r.err == nil {
		_, r.err = r.w.Write(r.buf.Bytes())
	}
	r.buf.Reset()
	return r.err
}

func (r *reader) line(parts ...string) {
	line := strings.Join(parts, "")
	if r.lead != "" {
		line = r.lead + strings.TrimPrefix(line, r.leadFor)
		r.lead = ""
	}
	r.buf.WriteString(line)
	r.buf.WriteByte('\n')
	if r.buf.Len() >= enough && r.w != nil {
		_ = r.flush() // the next one returns its error
	}
}

// blankLine leaves a line empty, unless nothing is above it.
func (r *reader) blankLine() {
	if !r.first {
		r.line()
	}
	r.first = false
}

// text writes text of several lines, broken to the width. Each line is painted by
// itself, so that a pager that begins in the middle has the colour.
func (r *reader) text(before, text string, c Colour) {
	text = strings.ReplaceAll(plain.Text(strings.Trim(text, "\n")), "\t", "    ")
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range r.rows(line, ansi.StringWidth(before)) {
			words := strings.TrimLeft(row, " ")
			r.line(strings.TrimRight(before+row[:len(row)-len(words)]+r.Paint(c, words), " "))
		}
	}
}

// rows breaks a line that is printed beside something else.
func (r *reader) rows(line string, beside int) []string {
	if r.Width == 0 {
		return []string{strings.TrimRight(line, " ")}
	}
	return wrap(line, max(r.Width-beside, 16))
}

// fitLine shortens a line to the width.
func (r *reader) fitLine(text string, used int) string {
	if r.Width == 0 {
		return text
	}
	return ansi.Truncate(text, max(r.Width-used, 8), "…")
}

// head writes what the session is.
func (r *reader) head(c render.Conversation, tags []string) {
	h := c.Header()
	r.line(r.Paint(Bold, r.fitLine(cmp.Or(render.OneLine(c.Title, 0), render.Untitled), 0)))
	facts := []string{h.ID, "created " + r.When(h.CreatedAt)}
	if h.ParentSession != "" {
		facts = append(facts, fmt.Sprintf("%s of %s", cmp.Or(h.Relation, "child"), h.ParentSession))
	}
	if h.CWD != "" {
		facts = append(facts, h.CWD)
	}
	for _, tag := range tags {
		facts = append(facts, "#"+tag)
	}
	for i := range facts {
		facts[i] = render.OneLine(facts[i], 0)
	}
	r.text("", strings.Join(facts, " · "), Dim)
	if c.Working != "" {
		r.text("", render.OneLine(c.Working, 0)+" works on it now", Yellow)
	}
	r.tagNote("", tags)
	r.tags = tags
}

// tagNote writes why tags were given, if they still count: to an entry, or to the whole
// session.
func (r *reader) tagNote(about string, tags []string) {
	for _, note := range r.notes {
		if note.About == about && slices.ContainsFunc(note.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) {
			before := ""
			if about != "" {
				before = indent
			}
			r.text(before, render.OneLine(strings.Join(note.Tags, " "), 0)+": "+render.OneLine(note.Text, 0), Yellow)
			return
		}
	}
}

// entry writes an entry after an empty line. Entries of a single line have no empty
// line between them.
func (r *reader) entry(e *session.Entry) {
	dense := !e.Type.IsSaid()
	if !dense || !r.dense {
		r.blankLine()
	}
	r.dense = dense
	switch {
	case e.Compaction != nil:
		r.compaction(e)
	case e.Message != nil:
		r.message(e)
	case e.BranchSummary != nil:
		r.header(e, "of the branch left at "+r.id(e.BranchSummary.FromID))
		r.prose(e.BranchSummary.Summary)
	case e.Merge != nil:
		r.header(e, "of the branch that ends at "+r.id(e.Merge.FromID), render.Counted(len(e.Merge.EntryIDs), "entry", "entries"))
		if e.Merge.Summary != "" {
			r.prose(e.Merge.Summary)
		}
	default:
		r.setting(e)
	}
}

func (r *reader) message(e *session.Entry) {
	m := e.Message
	if r.alone == nil || !r.alone.Continues || r.labels[e.ID] != "" {
		r.header(e, render.MessageFacts(m)...)
	}
	content := m.Content
	if text, ok := e.NoteText(); ok {
		content = []session.Content{session.Text(text)} // the header says whose words these are
	}
	for i := range content {
		r.block(&content[i])
	}
	if key := r.subagentOf(m); key != "" {
		r.line(indent, r.Paint(Dim, subagentMark+key))
	}
	if words := render.StopWords(m); words != "" {
		r.text(indent, "■ "+words, Red)
	}
}

// subagentOf is the key of the session that a tool's result came from, if the
// message says so and its call did not.
func (r *reader) subagentOf(m *session.MessageEntry) string {
	for i := range m.Content {
		if t := m.Content[i].ToolResult; t != nil && r.started[t.ToolUseID] {
			return ""
		}
	}
	return render.OneLine(render.SubagentKey(r.key, m), 0)
}

// setting writes what is not part of the conversation, on one line.
func (r *reader) setting(e *session.Entry) {
	kind := render.Kind(e)
	line := r.Paint(KindColour(kind), kind) + indent + r.Paint(Dim, r.id(e.ID))
	gist := render.GistNaming(e, 0, r.id)
	when := r.Paint(Dim, " · "+r.When(e.Timestamp))
	if room := min(ansi.StringWidth(gist), 16); r.Width == 0 || ansi.StringWidth(line+when+indent)+room <= r.Width {
		line += when // what it says matters more
	}
	line += indent
	r.line(strings.TrimRight(line+r.fitLine(gist, ansi.StringWidth(line)), " "))
}

func (r *reader) id(id string) string {
	if r.alone != nil {
		return render.OneLine(render.ShortID(id), 0)
	}
	return r.names.Shown(id)
}

// header writes who speaks, when, and what else is known.
func (r *reader) header(e *session.Entry, facts ...string) {
	kind := render.Kind(e)
	facts = append([]string{r.When(e.Timestamp)}, facts...)
	speaker := kind
	if by, isNote := e.NoteBy(); isNote {
		speaker += " by " + render.OneLine(by, 60)
	}
	line := r.Paint(Bold+";"+KindColour(kind), speaker) + indent + r.Paint(Dim, r.id(e.ID))
	if e.ID == r.pointAt {
		line = r.Paint(Bold+";"+Yellow, "▶ ") + line
	}
	if label := r.labels[e.ID]; label != "" {
		line += indent + r.Paint(Yellow, "["+render.OneLine(label, 0)+"]")
	}
	for _, fact := range facts {
		longer := line + r.Paint(Dim, " · "+fact)
		if r.Width > 0 && ansi.StringWidth(longer) > r.Width {
			break // the rest matters less
		}
		line = longer
	}
	r.line(r.fitLine(line, 0))
	r.tagNote(e.ID, r.tags)
}

// compaction writes a divider: what is above is no longer sent to a model.
func (r *reader) compaction(e *session.Entry) {
	c := e.Compaction
	text := "compacted"
	if c.TokensBefore > 0 {
		text += " from " + render.Counted(c.TokensBefore, "token", "tokens")
	}
	if c.FirstKeptEntryID != "" && c.FirstKeptEntryID != e.ID {
		text += ", kept from " + r.id(c.FirstKeptEntryID) + " on"
	}
	text = r.fitLine("── "+text+" ", 0)
	rule := strings.Repeat("─", max(cmp.Or(r.Width, 80)-ansi.StringWidth(text), 0))
	r.line(r.Paint(Blue, text+rule))
	r.header(e)
	r.prose(c.Summary)
}

// branches says what other branches begin here, and how to see them.
func (r *reader) branches(others []*render.Node) {
	r.listChoices(others, render.Counted(len(others), "other branch", "other branches")+" here:")
}

// afterLeaf says how the conversation continues below the leaf.
func (r *reader) afterLeaf(children []*render.Node) {
	switch len(children) {
	case 0:
	case 1:
		r.listChoices(children, "goes on with "+render.Counted(children[0].Length, "entry", "entries")+":")
	default:
		r.listChoices(children, "goes on in "+render.Counted(len(children), "branch", "branches")+":")
	}
}

// listChoices lists where else a reader can go, under a title.
func (r *reader) listChoices(nodes []*render.Node, title string) {
	if len(nodes) == 0 {
		return
	}
	r.dense = false
	r.line()
	r.line(r.Paint(Yellow, "╰─ "+title))
	for _, n := range nodes {
		tip := n.Tip().Entry.ID
		about := render.Kind(&n.Entry) + ": " + render.Gist(&n.Entry, 200)
		if r.Width == 0 {
			about = render.OneLine(about, 80)
		}
		if r.o.Hints.Branch == nil {
			id := "   " + r.id(tip) + "  "
			r.line(id, r.Paint(Dim, r.fitLine(about, ansi.StringWidth(id))))
			continue
		}
		command := "   " + r.o.Hints.Branch(r.names.Name(tip))
		// Not every shell treats # as a comment when the whole line is pasted.
		used := ansi.StringWidth(command) + len("  # ''")
		if r.Width > 0 && r.Width-used < 8 {
			r.line(command)
			continue
		}
		r.line(command, r.Paint(Dim, "  # "+plain.ShellWord(r.fitLine(about, used))))
	}
}
