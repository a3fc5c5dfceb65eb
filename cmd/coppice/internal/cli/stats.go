package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// statsCommand is one command for all sessions and for one, because the questions are the same.
func statsCommand(a *app) *cobra.Command {
	var since, until string
	r := home.StatsRequest{Columns: maxBins}
	cmd := &cobra.Command{
		Use:   "stats [ID]",
		Short: "Tokens, cost, hours, tools and topics",
		Long: "Shows when you worked, tokens and cost over time, the busiest hours, the tools and\n" +
			"models used, and the topics, for all sessions or for one. A response that several\n" +
			"sessions share, because one was forked from another, is counted once.\n\n" +
			"Of one session it also draws how it went, request by request: how full the context was,\n" +
			"compactions, requests that missed the cache, errors, branches, cost, and where the time\n" +
			"went. In a pipe that is a table.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Session = strings.Join(args, "")
			if r.Since, r.Until, err = timesIn(since, until, time.Now()); err != nil {
				return err
			}
			if r.Bin == "" && !a.isTerminal() && !a.flags.json {
				r.Bin = home.BinDay // there is room for all of them
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error {
				s, err := h.Search.Stats(cmd.Context(), r)
				if err != nil || a.flags.json {
					return a.asJSON(s, err)
				}
				picture, err := a.picture(cmd.Context(), h, s.Session)
				if err != nil {
					return err
				}
				return a.printStats(&r, s, picture)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only since: 2026-03-01, or 7d ago")
	cmd.Flags().StringVar(&until, "until", "", "only before")
	cmd.Flags().StringVar(&r.By, "by", "model", "divide the bars by model, project or agent")
	cmd.Flags().StringVar(&r.Bin, "bin", "", "how long a bar is: day, week or month (default: what fits)")
	return a.withJSON(cmd)
}

// picture returns how a session went, or nil if all of them are counted.
func (a *app) picture(ctx context.Context, h *home.Home, session string) (*home.PictureResult, error) {
	if session == "" {
		return nil, nil
	}
	return h.Entries.Picture(ctx, home.PictureRequest{Session: session, Points: -1})
}

// printStats draws the numbers.
func (a *app) printStats(r *home.StatsRequest, s *home.StatsResult, picture *home.PictureResult) error {
	lines := []string{a.wrap(a.statsSummary(s), "")}
	if picture != nil {
		if drawn := a.style().Picture(&picture.Picture); len(drawn) > 0 {
			lines = append(append(lines, ""), drawn...)
		}
	} else {
		lines = append(lines, a.yearLines(r, s)...)
	}
	lines = append(lines, a.binLines(r, s)...)
	for _, c := range []struct {
		title string
		bars  []index.Count
	}{
		{"Tokens by project", compared(usageBars(s.Projects))},
		{"Tokens by agent", compared(usageBars(s.Agents))},
		{"Tokens by model", usageBars(s.Models)},
		{"Tokens of the most expensive sessions", sessionBars(s, a.width())},
		{"Calls by tool", failures(s)},
	} {
		lines = append(lines, a.barLines(c.title, c.bars)...)
	}
	lines = append(lines, a.hourLines(s.Hours[:])...)
	if len(s.Topics) > 0 {
		lines = append(lines, "", a.paint(bold, "Topics"), a.wrap(plain.Flat(strings.Join(s.Topics, ", ")), "  "))
	}
	return a.printText(strings.Join(lines, "\n"))
}

const (
	maxBins = 16 // on a terminal
	maxBars = 15 // of a chart on a terminal

	maxSessions = 5
	barWidth    = 40
	widestBar   = 100
	minBar      = 6 // on a narrow terminal
)

// usageBars has a bar for each of some sums, and says what each cost.
func usageBars(sums []home.Usage) []index.Count {
	bars := make([]index.Count, len(sums))
	for i, u := range sums {
		bars[i] = index.Count{Name: fmt.Sprintf("%s  %s", cmp.Or(u.Key, "-"), home.CostOf(&u)), Count: u.Tokens()}
	}
	return bars
}

// failures has a bar for the calls of each tool, and says how many of them failed.
func failures(s *home.StatsResult) []index.Count {
	failed := make(map[string]int64, len(s.Failed))
	for _, f := range s.Failed {
		failed[f.Name] = f.Count
	}
	bars := slices.Clone(s.Tools)
	for i := range bars {
		if n := failed[bars[i].Name]; n > 0 {
			bars[i].Name = cmp.Or(bars[i].Name, "-") + "  " + render.Counted(int(n), "error", "errors")
		}
	}
	return bars
}

// compared leaves out a chart with nothing to compare.
func compared(bars []index.Count) []index.Count {
	if len(bars) < 2 {
		return nil
	}
	return bars
}

// sessionBars cuts titles so that the cost still fits beside them.
func sessionBars(s *home.StatsResult, width int) []index.Count {
	room := 30
	if width > 0 {
		room = max(min(room, width/3), 8)
	}
	var bars []index.Count
	for _, u := range s.Sessions[:min(len(s.Sessions), maxSessions)] {
		title := render.OneLine(cmp.Or(s.Titles[u.Key], render.ShortID(u.Key)), room)
		bars = append(bars, index.Count{Name: fmt.Sprintf("%s  %s", title, home.CostOf(&u)), Count: u.Tokens()})
	}
	return bars
}

// statsSummary says the totals, and what they leave out: a cost that is not complete must not
// look like one that is.
func (a *app) statsSummary(s *home.StatsResult) string {
	u := s.Total
	lines := []string{strings.Join([]string{
		render.Counted(int(s.Messages), "message", "messages"), render.Counted(int(u.Responses), "response", "responses"),
		tokensSpent(u),
	}, ", ")}
	if u.Responses > 0 {
		lines = append(lines, tokenKinds(s))
	}
	if u.Recorded > 0 {
		lines = append(lines, "recorded with messages, and reported by no provider: "+render.Counted(int(u.Recorded), "token", "tokens"))
	}
	if s.Shared > 0 {
		lines = append(lines, "also "+render.Counted(int(s.Shared), "token", "tokens")+" of responses that were made in an older session, and count there")
	}
	if t := s.Spent; s.Session == "" && t != (render.Elapsed{}) { // of one session, its picture says so
		lines = append(lines, "time: "+terminal.TimeWords(t))
	}
	if s.Context != nil {
		lines = append(lines, "in the context at the last response, as its provider reported: "+render.Counted(int(*s.Context), "token", "tokens"))
	}
	if u.Unpriced > 0 {
		lines = append(lines, "the cost of "+render.Counted(int(u.Unpriced), "response", "responses")+" is not known")
	}
	return strings.Join(lines, "\n")
}

// tokenKinds tells what kinds of tokens there were.
func tokenKinds(s *home.StatsResult) string {
	u := s.Total
	parts := []string{"input " + render.Thousands(int(u.Input))}
	if u.CacheRead > 0 && s.Cached != nil {
		parts = append(parts, fmt.Sprintf("from the cache %s (%d%% of what was sent)", render.Thousands(int(u.CacheRead)), *s.Cached))
	}
	if u.CacheWrite > 0 {
		parts = append(parts, "into the cache "+render.Thousands(int(u.CacheWrite)))
	}
	output := "output " + render.Thousands(int(u.Output))
	if u.Reasoning > 0 {
		output += " (including reasoning " + render.Thousands(int(u.Reasoning)) + ")"
	}
	return strings.Join(append(parts, output), ", ")
}

// tokensSpent says how many tokens there were and what they cost, if they were counted.
func tokensSpent(u home.Usage) string {
	if u.Responses == 0 && u.Recorded == 0 {
		return "tokens not counted"
	}
	return render.Counted(int(u.Tokens()), "token", "tokens") + ", " + home.CostOf(&u)
}

// barLines draws a horizontal bar for each count. On a terminal a long chart is
// cut: what comes last says least.
func (a *app) barLines(title string, bars []index.Count) []string {
	if len(bars) == 0 {
		return nil
	}
	more := 0
	if a.isTerminal() && len(bars) > maxBars+1 {
		more, bars = len(bars)-maxBars, bars[:maxBars]
	}
	lines := []string{"", a.paint(bold, title)}
	most, widest := int64(1), 0
	for _, b := range bars {
		most = max(most, b.Count)
		widest = max(widest, ansi.StringWidth(render.OneLine(b.Name, 0)))
	}
	room := barWidth
	if width := a.width(); width > 0 {
		beside := len("     ") + len(render.Thousands(int(most)))
		widest = min(widest, max(width-beside-minBar, minElastic))
		room = max(min(room, width-beside-widest), minBar)
	}
	for _, b := range bars {
		name := cmp.Or(render.OneLine(b.Name, widest), "-")
		lines = append(lines, "  "+terminal.Pad(name, widest)+"  "+a.paint(green, terminal.Bar(b.Count, most, room))+" "+render.Thousands(int(b.Count)))
	}
	if more > 0 {
		lines = append(lines, "  "+a.paint(dim, fmt.Sprintf("and %d more; --json has all", more)))
	}
	return lines
}

// yearLines draws when something was said, on a terminal.
func (a *app) yearLines(r *home.StatsRequest, s *home.StatsResult) []string {
	if a.width() == 0 || len(s.Active) == 0 {
		return nil
	}
	levels := make(map[string]int, len(s.Active))
	for _, day := range s.Active {
		levels[day.Day] = day.Level
	}
	today := time.Now()
	if !r.Until.IsZero() {
		today = r.Until.Add(-time.Nanosecond)
	}
	drawn := a.style().Year(today, func(day string) int { return levels[day] })
	if drawn == nil {
		return nil
	}
	return append([]string{"", a.paint(bold, "Messages by the day, on "+render.Counted(len(s.Active), "day", "days"))}, drawn...)
}

// binLines draws a bar for each day, week or month, divided by model, project or agent.
func (a *app) binLines(r *home.StatsRequest, s *home.StatsResult) []string {
	if len(s.Bins) == 0 {
		return nil
	}
	bins, title := s.Bins, "Tokens a "+s.Bin
	if a.isTerminal() && len(bins) > maxBins {
		title += fmt.Sprintf(", the last %d of %d", maxBins, len(bins))
		bins = bins[len(bins)-maxBins:]
	}
	if len(s.Parts) > 1 {
		title += ", by " + r.By
	}
	lines := []string{"", a.paint(bold, title)}
	most := int64(1)
	for i := range bins {
		most = max(most, bins[i].Usage.Tokens())
	}
	room, number := barWidth, len(render.Thousands(int(most)))
	if width := a.width(); width > 0 {
		room = max(min(width-len("  2026-01-02    $1,000.00+")-number, widestBar), minBar)
	}
	for i := range bins {
		b := &bins[i]
		if b.Usage.Tokens() == 0 && !a.isTerminal() {
			continue
		}
		line := "  " + b.Key
		if n := b.Usage.Tokens(); n > 0 {
			line += "  " + a.paint(green, terminal.Stack(b.Tokens, most, room)) + " " + render.Thousands(int(n)) + "  " + home.ShortCost(&b.Usage)
		}
		lines = append(lines, line)
	}
	if len(s.Parts) < 2 {
		return lines
	}
	for i := range s.Parts {
		u := &s.Parts[i]
		if u.Tokens() == 0 {
			continue // no bar shows it
		}
		name := cmp.Or(u.Key, "-")
		if s.Rest > 0 && i == len(s.Parts)-1 {
			name = fmt.Sprintf("%d others", s.Rest)
		}
		lines = append(lines, "  "+a.paint(green, strings.Repeat(terminal.Shade(i), 2))+" "+render.OneLine(name, 40)+"  "+render.Thousands(int(u.Tokens()))+"  "+home.CostOf(u))
	}
	return lines
}

// hourLines draws the hours of a day as one line.
func (a *app) hourLines(hours []int64) []string {
	if slices.Max(hours) == 0 {
		return nil
	}
	each, scale := 2, "0     3     6     9     12    15    18    21"
	if width := a.width(); width > 0 && width < 2+each*len(hours) {
		each, scale = 1, "0     6     12    18"
	}
	var wide []int64
	for _, n := range hours {
		wide = append(wide, slices.Repeat([]int64{n}, each)...)
	}
	return []string{"", a.paint(bold, "Messages by the hour"), "  " + a.paint(green, terminal.Columns(wide, 1)[0]), "  " + scale}
}
