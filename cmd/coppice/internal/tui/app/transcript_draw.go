package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// near is how far from a call its answer may be to be drawn with it.
const near = 32

// item draws an entry. The answers of tools are drawn with their calls, and have no rows of their
// own.
func (r *transcript) item(i int) []string {
	if rows, ok := r.drawn[i]; ok {
		return rows
	}
	row := r.pages.at(i)
	if row == nil {
		return []string{r.style(r.drawnFor).Paint(terminal.Dim, "⋮")}
	}
	rows := r.rowsOf(row)
	r.drawn[i] = rows
	return rows
}

func (r *transcript) rowsOf(row *home.Row) []string {
	i := row.Index
	if r.owner(i) >= 0 {
		return nil
	}
	return r.framed(row, terminal.Entry(r.inner().Style, &row.Entry, r.options(row)))
}

// inner is how to draw beside the gutter.
func (r *transcript) inner() style { return r.style(r.drawnFor - 2) }

// options say how an entry is drawn now.
func (r *transcript) options(row *home.Row) terminal.EntryOptions {
	tools, thinking := r.folds(row)
	return terminal.EntryOptions{
		Tools: tools, Thinking: thinking, Label: row.Label, Continues: r.continues(row), Subagents: row.Subagents,
		Answer: func(call string) *session.ToolResultContent { return r.answer(row.Index, call) },
		Media:  func(c *session.Content) []string { return r.pictureOf(row.Index, c) },
	}
}

// framed adds to a drawn entry what is known about its place: what was cut off, and branches.
func (r *transcript) framed(row *home.Row, rows []string) []string {
	s, i := r.inner(), row.Index
	tools, _ := r.folds(row)
	if r.isCut(i) && tools != terminal.Folded {
		rows = append(rows, s.Paint(terminal.Dim, "  ⋮ there is more; o exports all of it"))
	} else if row.Cut && !hasCalls(row) {
		rows = append(rows, s.Paint(terminal.Dim, "  ⋮ there is more; Space shows it"))
	}
	if i == 0 {
		rows = append(r.forkRows(s, r.forkAt(-1), "beginnings"), rows...)
	}
	rows = append(rows, r.forkRows(s, r.forkOf(i), "branches here")...)
	if i > 0 && row.Entry.Type.IsSaid() && (!r.continues(row) || !beginsWithCall(row)) {
		rows = append([]string{""}, rows...)
	}
	return rows
}

// folds returns how an entry is folded.
func (r *transcript) folds(row *home.Row) (tools, thinking terminal.Fold) {
	open, is := r.open[row.Entry.ID]
	switch {
	case !is:
		return r.tools, r.thinking
	case open:
		return terminal.Whole, terminal.Whole
	}
	return terminal.Folded, terminal.Folded
}

// isOpen reports whether more than a line of what can be folded is shown.
func (r *transcript) isOpen(row *home.Row) bool {
	tools, thinking := r.folds(row)
	return tools != terminal.Folded && hasCalls(row) || thinking != terminal.Folded && hasThinking(row)
}

func blocks(row *home.Row) []session.Content {
	if row == nil || row.Entry.Message == nil {
		return nil
	}
	return row.Entry.Message.Content
}

func hasThinking(row *home.Row) bool {
	return slices.ContainsFunc(blocks(row), func(c session.Content) bool { return c.Thinking != nil })
}

func hasCalls(row *home.Row) bool {
	return slices.ContainsFunc(blocks(row), func(c session.Content) bool { return c.ToolUse != nil || c.ToolResult != nil })
}

// beginsWithCall reports whether an entry begins with what takes a line when it is folded.
func beginsWithCall(row *home.Row) bool {
	all := blocks(row)
	return len(all) > 0 && (all[0].ToolUse != nil || all[0].ToolResult != nil || all[0].Thinking != nil)
}

// continues reports whether an entry goes on with what the model said before.
func (r *transcript) continues(row *home.Row) bool {
	if row.Kind != session.RoleAssistant {
		return false
	}
	before := row.Index - 1
	for owner := r.owner(before); owner >= 0; owner = r.owner(before) {
		before = owner
	}
	last := r.pages.at(before)
	return last != nil && last.Kind == session.RoleAssistant
}

// owner returns the index of the entry whose calls the answers of an entry belong to, or -1.
func (r *transcript) owner(i int) int {
	row := r.pages.at(i)
	all := blocks(row)
	if len(all) == 0 || all[0].ToolResult == nil || row.Label != "" {
		return -1
	}
	for _, c := range all {
		if c.ToolResult == nil {
			return -1
		}
	}
	for j := i - 1; j >= max(i-near, 0); j-- {
		for _, c := range blocks(r.pages.at(j)) {
			if c.ToolUse != nil && c.ToolUse.ID == all[0].ToolResult.ToolUseID {
				return j
			}
		}
	}
	return -1
}

// answer returns the answer to a call of an entry.
func (r *transcript) answer(i int, call string) *session.ToolResultContent {
	for j := i + 1; j < min(i+near, r.pages.total); j++ {
		for _, c := range blocks(r.pages.at(j)) {
			if c.ToolResult != nil && c.ToolResult.ToolUseID == call && r.owner(j) == i {
				return c.ToolResult
			}
		}
	}
	return nil
}

// lastOf returns the index of the last entry that is drawn with another.
func (r *transcript) lastOf(i int) int {
	last := i
	for last+1 < r.pages.total && r.owner(last+1) == i {
		last++
	}
	return last
}

// last returns the index of the last entry that is drawn with the selected one.
func (r *transcript) last() int { return r.lastOf(r.list.Cursor()) }

// forkRows say which of several branches is shown.
func (r *transcript) forkRows(s style, b *branches, what string) []string {
	switch {
	case b == nil:
		return nil
	case b.now < 0:
		return []string{s.Paint(terminal.Yellow, "╰─ goes on in "+render.Counted(len(b.ids), "branch", "branches")+", ] shows it")}
	}
	words := fmt.Sprintf("╰─ %d of %d %s, [ and ] show the others", b.now+1, len(b.ids), what)
	return []string{s.Paint(terminal.Yellow, words)}
}

// fold opens what is folded in the selected entry, or folds it.
func (r *transcript) fold() tea.Cmd {
	row := r.pages.at(r.list.Cursor())
	if row == nil {
		return nil
	}
	isOpen := r.isOpen(row)
	r.open[row.Entry.ID] = !isOpen
	r.forget(row.Index, row.Index+1)
	r.list.Reveal()
	if isOpen {
		return nil
	}
	return r.fetch(row.Index)
}

// isCut reports whether an entry, or an answer that is drawn with it, has more text.
func (r *transcript) isCut(i int) bool {
	for j := i; j <= r.lastOf(i); j++ {
		if row := r.pages.at(j); row != nil && row.Cut {
			return true
		}
	}
	return false
}

// whole has entries with all of their text.
type whole struct {
	path   int
	result *home.RowsResult
	width  int
	drawn  []string // the first of them, for that width
}

// wholeText is how much of an entry is shown at most.
const wholeText = 2 << 20

// fetch reads what was cut off of an entry and of the answers that are drawn with it.
func (r *transcript) fetch(i int) tea.Cmd {
	if !r.isCut(i) {
		return nil
	}
	path, q := r.path, r.request(i)
	q.Count, q.Limit = r.lastOf(i)+1-i, wholeText
	s, width, o := r.inner().Style, r.drawnFor, r.options(r.pages.at(i))
	return r.call(func(ctx context.Context) tea.Msg {
		result, err := r.Home.Entries.Rows(ctx, q)
		if err != nil {
			return err
		}
		if len(result.Rows) == 0 {
			return nil
		}
		o.Answer, o.Media = func(call string) *session.ToolResultContent { return answerIn(result.Rows, call) }, nil
		// It may be so long that drawing it takes a while.
		return whole{path, result, width, terminal.Entry(s, &result.Rows[0].Entry, o)}
	})
}

func answerIn(rows []home.Row, call string) *session.ToolResultContent {
	for i := range rows {
		for _, c := range blocks(&rows[i]) {
			if c.ToolResult != nil && c.ToolResult.ToolUseID == call {
				return c.ToolResult
			}
		}
	}
	return nil
}

// putWhole shows an entry that was read as a whole.
func (r *transcript) putWhole(w *whole) {
	r.keepRows(w.result)
	row := r.pages.at(w.result.From)
	if open := r.open[row.Entry.ID]; open && w.width == r.drawnFor && !r.hasImages(row.Index) {
		r.drawn[row.Index] = r.framed(row, w.drawn)
	}
	r.arrive()
	r.going = nil
	r.list.Reveal()
}

// foldWords say how all tools, or all thinking, is drawn.
var foldWords = map[terminal.Fold]string{terminal.Folded: "folded", terminal.Shortened: "shortened", terminal.Whole: "whole"}

// foldAll draws all tools in another way.
func (r *transcript) foldAll() tea.Cmd {
	next := map[terminal.Fold]terminal.Fold{
		terminal.Folded: terminal.Shortened, terminal.Shortened: terminal.Whole, terminal.Whole: terminal.Folded,
	}
	r.tools = next[r.tools]
	r.redraw()
	r.say("tools are " + foldWords[r.tools])
	return nil
}

// foldThinking shows all thinking, or folds it.
func (r *transcript) foldThinking() tea.Cmd {
	if r.thinking == terminal.Folded {
		r.thinking = terminal.Whole
	} else {
		r.thinking = terminal.Folded
	}
	r.redraw()
	r.say("thinking is " + foldWords[r.thinking])
	return nil
}

func (r *transcript) redraw() {
	r.list.Keep(func() {
		clear(r.open)
		clear(r.drawn)
	})
}

// ends puts a text at either end of a row.
func (s style) ends(left, right string) string {
	room := s.Width - ansi.StringWidth(right)
	if room < 20 {
		return s.Paint(terminal.Dim, ansi.Truncate(left, s.Width, "…"))
	}
	return s.Paint(terminal.Dim, terminal.Pad(ansi.Truncate(left, room-1, "…"), room)) + s.Paint(terminal.Dim, right)
}

// copyEntry copies the selected entry, or something of the session.
func (r *transcript) copyEntry() tea.Cmd {
	cmd := r.copy([]string{r.id})
	row := r.pages.at(r.list.Cursor())
	if row == nil || r.prompt == nil {
		return cmd
	}
	text := textOf(row, func(call string) *session.ToolResultContent { return r.answer(row.Index, call) })
	this := answer{"e", "this entry", func() tea.Cmd { return r.clip("the entry", text) }}
	r.prompt.answers = append([]answer{this}, r.prompt.answers...)
	return cmd
}

// textOf returns what an entry says as it was written, with its calls and their answers.
func textOf(row *home.Row, answer func(call string) *session.ToolResultContent) string {
	var parts []string
	for _, c := range blocks(row) {
		switch {
		case c.Text != nil:
			parts = append(parts, c.Text.Content)
		case c.ToolUse != nil:
			parts = append(parts, render.CallGist(c.ToolUse))
			if result := answer(c.ToolUse.ID); result != nil {
				parts = append(parts, result.Content)
			}
		case c.ToolResult != nil:
			parts = append(parts, c.ToolResult.Content)
		}
	}
	if len(parts) == 0 {
		return row.Gist
	}
	return strings.Join(parts, "\n\n")
}
