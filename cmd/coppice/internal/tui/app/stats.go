package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// stats shows tokens, cost, tools and hours, of all sessions or of one.
type stats struct {
	listing
	id     string // "" for all sessions
	size   int    // the width that it is drawn for
	period int
	asked  only
	found  *home.StatsResult
	lines  []statsLine
}

// statsLine is a row of the list, or several, and what Enter opens there.
type statsLine struct {
	text func(s style) []string
	open func() room
}

// periods are the times that can be looked at.
var periods = []struct {
	name string
	days int // 0 for all
}{{"7 days", 7}, {"30 days", 30}, {"90 days", 90}, {"a year", 365}, {"all", 0}}

func newStats(a *App, session string) *stats {
	s := &stats{listing: listing{base: newBase(a), head: 1}, id: session, period: 1}
	if session != "" {
		s.period = len(periods) - 1
	}
	s.list = list.New(func(i int) []string {
		st := s.style(s.size)
		rows := s.lines[i].text(st)
		rows[0] = st.selected(rows[0], i == s.list.Cursor())
		return rows
	})
	return s
}

func (s *stats) title() string   { return "stats" }
func (s *stats) session() string { return s.id }

func (s *stats) enter() tea.Cmd {
	r := home.StatsRequest{Session: s.id, Columns: maxColumns}
	if days := periods[s.period].days; days > 0 {
		r.Since = s.Now().AddDate(0, 0, -days)
	}
	return s.callOnly(&s.asked, func(ctx context.Context) tea.Msg {
		found, err := s.Home.Search.Stats(ctx, r)
		if err != nil {
			return err
		}
		return found
	})
}

func (s *stats) update(msg tea.Msg) tea.Cmd {
	found, ok := msg.(*home.StatsResult)
	if !ok {
		return nil
	}
	s.found, s.lines = found, nil
	s.addSummary()
	if len(found.Bins) > 1 {
		s.addDays()
	}
	s.addUsage("By project", "project", found.Projects)
	s.addUsage("By agent", "agent", found.Agents)
	s.addUsage("By model", "model", found.Models)
	s.addSessions()
	s.addTools()
	s.addHours()
	if len(found.Topics) > 0 {
		s.heading("Topics")
		s.add(nil, func(st style) []string { return wrapped(st, "   ", strings.Join(found.Topics, ", ")) })
	}
	s.list.SetCount(len(s.lines))
	return nil
}

func (s *stats) add(open func() room, text func(st style) []string) {
	s.lines = append(s.lines, statsLine{text, open})
}

func (s *stats) heading(text string) {
	s.add(nil, func(st style) []string { return []string{" " + st.Paint(terminal.Bold, text)} })
}

func (s *stats) addSummary() {
	u := s.found.Total
	words := render.Counted(int(s.found.Messages), "message", "messages") + ", " + render.Counted(int(u.Responses), "response", "responses")
	if u.Responses > 0 || u.Recorded > 0 {
		words += ", " + render.Counted(int(u.Tokens()), "token", "tokens") + ", " + home.CostOf(&u)
	}
	s.add(nil, func(st style) []string { return wrapped(st, " ", words) })
	if s.found.Cached != nil && u.CacheRead > 0 {
		cached := fmt.Sprintf("%d%% of the input came from the cache", *s.found.Cached)
		s.add(nil, func(style) []string { return []string{" " + cached} })
	}
}

// maxColumns is how many days, weeks or months are drawn beside each other.
const maxColumns = 60

// addDays draws days, weeks or months as columns: what they cost, or how many tokens they had if
// that is not known.
func (s *stats) addDays() {
	const rows = 6
	what, value := "Cost", func(u *home.Usage) int64 { return u.CostMicroUSD }
	if s.found.Total.CostMicroUSD == 0 {
		what, value = "Tokens", func(u *home.Usage) int64 { return u.Tokens() }
	}
	s.heading(what + " a " + s.found.Bin)
	s.add(nil, func(st style) []string {
		room := max(st.Width-16, 10)
		bins := s.found.Bins[max(len(s.found.Bins)-room, 0):]
		wide := max(min(room/len(bins), 4), 1)
		var values []int64
		for i := range bins {
			values = append(values, slices.Repeat([]int64{value(&bins[i].Usage)}, wide)...)
		}
		first, last := bins[0].Key, bins[len(bins)-1].Key
		most := slices.Max(values)
		top := render.Count(most)
		if value(&s.found.Total) == s.found.Total.CostMicroUSD {
			top = render.Money(int(most))
		}
		drawn := terminal.Columns(values, rows)
		for i := range drawn {
			label := ""
			if i == 0 {
				label = top
			}
			drawn[i] = fmt.Sprintf(" %10s ", label) + st.Paint(terminal.Dim, "│") + st.Paint(terminal.Green, drawn[i])
		}
		space := max(len(values)-len(first)-len(last), 1)
		return append(drawn, strings.Repeat(" ", 13)+st.Paint(terminal.Dim, first+strings.Repeat(" ", space)+last))
	})
}

// maxShown is how many bars a part shows.
const maxShown = 12

func (s *stats) addUsage(title, filter string, sums []home.Usage) {
	if len(sums) == 0 {
		return
	}
	s.heading(title)
	for i := range sums[:min(len(sums), maxShown)] {
		u := &sums[i]
		var open func() room
		if u.Key != "" && s.id == "" {
			open = func() room { return newSessionsFor(s.App, filter+":"+quoted(u.Key)) }
		}
		s.bar(open, cmp.Or(u.Key, "-"), home.CostOf(u), u.Tokens(), sums[0].Tokens())
	}
}

// quoted is a value of a filter, in quotes if it needs them.
func quoted(value string) string {
	if strings.ContainsAny(value, " \t") {
		return `"` + value + `"`
	}
	return value
}

func (s *stats) bar(open func() room, name, words string, n, most int64) {
	s.add(open, func(st style) []string {
		nameWidth := max(min(st.Width/3, 40), 10)
		left := "   " + terminal.Pad(render.OneLine(name, nameWidth), nameWidth) + fmt.Sprintf("  %9s  %-12s ", render.Count(n), words)
		return []string{left + st.Paint(terminal.Green, terminal.Bar(n, most, max(min(st.Width-nameWidth-32, 60), 4)))}
	})
}

func (s *stats) addSessions() {
	if len(s.found.Sessions) == 0 {
		return
	}
	s.heading("The most expensive sessions")
	for i := range s.found.Sessions[:min(len(s.found.Sessions), maxShown)] {
		u := &s.found.Sessions[i]
		name := cmp.Or(s.found.Titles[u.Key], render.ShortID(u.Key))
		s.bar(func() room { return newTranscript(s.App, u.Key, "") }, name, home.CostOf(u), u.Tokens(), s.found.Sessions[0].Tokens())
	}
}

func (s *stats) addTools() {
	if len(s.found.Tools) == 0 {
		return
	}
	s.heading("Calls by tool")
	for _, tool := range s.found.Tools[:min(len(s.found.Tools), maxShown)] {
		var open func() room
		if s.id == "" {
			open = func() room { return newSessionsFor(s.App, "tool:"+quoted(tool.Name)) }
		}
		s.bar(open, tool.Name, "", tool.Count, s.found.Tools[0].Count)
	}
}

func (s *stats) addHours() {
	if slices.Max(s.found.Hours[:]) == 0 {
		return
	}
	s.heading("Messages by the hour")
	s.add(nil, func(st style) []string {
		var wide []int64
		for _, n := range s.found.Hours {
			wide = append(wide, n, n)
		}
		rows := terminal.Columns(wide, 3)
		for i := range rows {
			rows[i] = "   " + st.Paint(terminal.Green, rows[i])
		}
		return append(rows, st.Paint(terminal.Dim, "   0     3     6     9     12    15    18    21"))
	})
}

func (s *stats) keys() []key {
	open := key{keys: []string{"enter"}, help: "show its sessions", do: func() tea.Cmd { return s.open(s.lines[s.list.Cursor()].open()) }}
	if s.list.Count() == 0 || s.lines[s.list.Cursor()].open == nil {
		open.why = "this line is not about sessions that could be listed"
	}
	look := func(n int) func() tea.Cmd {
		return func() tea.Cmd {
			s.period = (s.period + n + len(periods)) % len(periods)
			return s.enter()
		}
	}
	return append(listKeys(s.list), open,
		key{keys: []string{"right", "l", "tab"}, help: "longer", do: look(1)},
		key{keys: []string{"left", "h", "shift+tab"}, help: "shorter", do: look(-1)})
}

func (s *stats) view(width, height int) ([]string, tea.Position) {
	st := s.style(width)
	var tabs []string
	for i, p := range periods {
		if i == s.period {
			tabs = append(tabs, st.Paint(terminal.Bold, "["+p.name+"]"))
		} else {
			tabs = append(tabs, " "+p.name+" ")
		}
	}
	top := " " + strings.Join(tabs, " ")
	if s.found == nil {
		return []string{top, " Counting…"}, tea.Position{}
	}
	s.size = width
	s.list.SetHeight(height - 1)
	rows, y := s.list.View()
	return append([]string{top}, rows...), tea.Position{Y: y + 1}
}
