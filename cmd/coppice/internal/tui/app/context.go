package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/window"
)

// contextRoom shows what a model would be sent: how much of its window that takes and what for, what
// is left out and why, and where the last requests missed the provider's cache.
type contextRoom struct {
	listing
	id, leaf string
	size     int // the width that it is drawn for
	lines    []contextLine
	found    *home.ContextResult
	sent     *home.WhyResult
}

// contextLine is a row of the list, and the entry that it is about, if it is about one.
type contextLine struct {
	text  func(s style) []string
	entry string
}

func newContext(a *App, session, leaf string) *contextRoom {
	c := &contextRoom{listing: listing{base: newBase(a)}, id: session, leaf: leaf}
	c.list = list.New(func(i int) []string {
		st := c.style(c.size)
		rows := c.lines[i].text(st)
		rows[0] = st.selected(rows[0], i == c.list.Cursor())
		return rows
	})
	return c
}

func (c *contextRoom) title() string   { return "context" }
func (c *contextRoom) session() string { return c.id }

func (c *contextRoom) enter() tea.Cmd {
	return tea.Batch(
		c.call(func(ctx context.Context) tea.Msg {
			found, err := c.Home.Entries.Context(ctx, home.ContextRequest{Session: c.id, Leaf: c.leaf, Brief: true})
			if err != nil {
				return err
			}
			return found
		}),
		c.call(func(ctx context.Context) tea.Msg {
			sent, err := c.Home.Entries.Why(ctx, home.WhyRequest{Session: c.id})
			if err != nil {
				return err
			}
			return sent
		}))
}

func (c *contextRoom) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *home.ContextResult:
		c.found = msg
	case *home.WhyResult:
		c.sent = msg
	default:
		return nil
	}
	c.lines = nil
	if c.found != nil {
		c.addSize()
		c.addLeftOut()
	}
	if c.sent != nil && len(c.sent.Requests) > 0 {
		c.addRequests()
	}
	if c.found != nil {
		c.addEntries()
	}
	c.list.SetCount(len(c.lines))
	return nil
}

func (c *contextRoom) add(entry string, text func(s style) []string) {
	c.lines = append(c.lines, contextLine{text, entry})
}

func (c *contextRoom) heading(text string) {
	c.add("", func(s style) []string { return []string{" " + s.Paint(terminal.Bold, text)} })
}

// addSize shows how full the window is, and with what.
func (c *contextRoom) addSize() {
	f := c.found
	model := cmp.Or(render.ModelName(f.Provider, f.Model), "no model chosen")
	if f.ThinkingLevel != "" {
		model += ", thinking " + f.ThinkingLevel
	}
	c.heading(model)
	size := render.Counted(f.Measured.Entries, "entry", "entries") + ", " + render.Counted(f.Measured.Tokens, "token", "tokens")
	most := int64(f.Measured.Tokens)
	if room := f.Measured.Room; room > 0 {
		size += fmt.Sprintf(" of %s, %d%%", render.Thousands(room), 100*f.Measured.Tokens/room)
		most = int64(room)
	}
	c.add("", func(style) []string { return []string{" " + size} })
	if f.Tokens > f.Measured.Tokens {
		reported := "the provider counted " + render.Thousands(f.Tokens) + ", with what is not in the session, such as the descriptions of tools"
		c.add("", func(s style) []string { return wrapped(s, " ", reported) })
	}
	for _, part := range f.Measured.Categories {
		if part.Entries == 0 {
			continue
		}
		c.add("", func(s style) []string {
			numbers := fmt.Sprintf("%9s  %s", render.Thousands(part.Tokens), render.Counted(part.Entries, "entry", "entries"))
			bar := terminal.Bar(int64(part.Tokens), most, max(min(s.Width-50, 60), 8))
			return []string{fmt.Sprintf("   %-14s", inWords(part.Category)) + numbers + "  " + s.Paint(terminal.Green, bar)}
		})
	}
}

// inWords is the name of a category as people write it.
func inWords(c window.Category) string {
	return strings.ReplaceAll(strings.ToLower(c.String()), "_", " ")
}

func (c *contextRoom) addLeftOut() {
	if len(c.found.LeftOut) == 0 {
		return
	}
	c.heading("Left out, or sent in another form")
	for _, l := range c.found.LeftOut {
		words := string(l.Reason)
		if l.Count > 0 {
			words += ": " + render.Counted(l.Count, "entry", "entries")
		}
		if l.Detail != "" {
			words += " (" + render.OneLine(l.Detail, 0) + ")"
		}
		c.add(l.EntryID, func(s style) []string { return wrapped(s, "   ", words) })
	}
}

// addRequests shows what the last requests took from the provider's cache.
func (c *contextRoom) addRequests() {
	c.heading("The last requests, and where they missed the cache")
	for i := range c.sent.Requests {
		r := &c.sent.Requests[len(c.sent.Requests)-1-i]
		c.add(r.ID, func(s style) []string {
			line := "   " + terminal.Pad(s.When(r.Time), 14)
			if u := r.Usage; u != nil {
				line += render.Counted(u.Sent(), "token", "tokens") + " sent"
			}
			if r.Cached != nil {
				line += fmt.Sprintf(", %d%% from the cache", *r.Cached)
			}
			rows := []string{line}
			for _, why := range []string{r.Why, r.Error} {
				if why != "" {
					rows = append(rows, wrapped(s, strings.Repeat(" ", 17), why)...)
				}
			}
			return rows
		})
	}
}

func (c *contextRoom) addEntries() {
	c.heading("What is sent")
	for i := range c.found.Lines {
		l := &c.found.Lines[i]
		c.add(l.Entry, func(s style) []string {
			edited := ""
			if c.found.Edited[l.Entry] != "" {
				edited = s.Paint(terminal.Yellow, "(edited) ")
			}
			return []string{fmt.Sprintf("%9s  ", render.Thousands(l.Tokens)) +
				s.Paint(terminal.KindColour(l.Kind), terminal.Pad(l.Kind, render.KindWidth)) + "  " + edited + render.OneLine(l.Gist, 0)}
		})
	}
}

func (c *contextRoom) keys() []key {
	open := key{keys: []string{"enter"}, help: "open", do: func() tea.Cmd {
		return c.open(newTranscript(c.App, c.id, c.lines[c.list.Cursor()].entry))
	}}
	if c.list.Count() == 0 || c.lines[c.list.Cursor()].entry == "" {
		open.why = "this line is not about an entry"
	}
	return append(listKeys(c.list), open)
}

func (c *contextRoom) view(width, height int) ([]string, tea.Position) {
	if c.found == nil {
		return []string{" Reading…"}, tea.Position{}
	}
	c.size = width
	c.list.SetHeight(height)
	rows, y := c.list.View()
	return rows, tea.Position{Y: y}
}

// wrapped breaks a text into rows that begin with something.
func wrapped(s style, before, text string) []string {
	rows := terminal.Wrap(render.OneLine(text, 0), max(s.Width-len(before)-1, 16))
	for i := range rows {
		rows[i] = before + rows[i]
	}
	return rows
}
