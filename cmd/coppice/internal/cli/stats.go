package cli

import (
	"cmp"
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
	cmd := &cobra.Command{
		Use:   "stats [ID]",
		Short: "Tokens, cost, hours, tools and topics",
		Long: "Shows tokens and cost over time, the busiest hours, the tools and models used, and\n" +
			"the topics, for all sessions or for one. A response that several sessions share,\n" +
			"because one was forked from another, is counted once.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r := home.StatsRequest{Session: strings.Join(args, "")}
			if r.Since, r.Until, err = timesIn(since, until, time.Now()); err != nil {
				return err
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error {
				s, err := h.Search.Stats(cmd.Context(), r)
				if err != nil || a.flags.json {
					return a.asJSON(s, err)
				}
				return a.printStats(s)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only since: 2026-03-01, or 7d ago")
	cmd.Flags().StringVar(&until, "until", "", "only before")
	return a.withJSON(cmd)
}

// printStats draws the numbers.
func (a *app) printStats(s *home.StatsResult) error {
	lines := []string{a.wrap(a.statsSummary(s), "")}
	byDay := "Tokens a day"
	days := make([]index.Count, 0, len(s.Days))
	for _, d := range s.Days {
		days = append(days, index.Count{Name: d.Key, Count: d.Tokens()})
	}
	if len(days) > maxDays {
		trend, err := a.trendLines(s.Days)
		if err != nil {
			return err
		}
		lines = append(lines, trend...)
	}
	if a.isTerminal() && len(days) > maxDays {
		byDay = fmt.Sprintf("Tokens a day, on the last %d of %d days with any", maxDays, len(days))
		days = days[len(days)-maxDays:]
	}
	for _, c := range []struct {
		title string
		bars  []index.Count
	}{
		{byDay, days},
		{"Tokens by project", compared(usageBars(s.Projects))},
		{"Tokens by agent", compared(usageBars(s.Agents))},
		{"Tokens by model", usageBars(s.Models)},
		{"Tokens of the most expensive sessions", sessionBars(s, a.width())},
		{"Calls by tool", s.Tools},
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
	maxDays = 14
	maxBars = 15 // of a chart on a terminal

	maxSessions = 5
	barWidth    = 40
	minBar      = 6 // on a narrow terminal

	trendWidth = 76 // columns
)

// usageBars has a bar for each of some sums, and says what each cost.
func usageBars(sums []home.Usage) []index.Count {
	bars := make([]index.Count, len(sums))
	for i, u := range sums {
		bars[i] = index.Count{Name: fmt.Sprintf("%s  %s", cmp.Or(u.Key, "-"), home.CostOf(&u)), Count: u.Tokens()}
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

// trendLines draws the tokens of all days as one line, those without any
// included. A character stands for one day, or for several.
func (a *app) trendLines(days []home.Usage) ([]string, error) {
	room := trendWidth
	if width := a.width(); width > 0 {
		room = min(room, width-2)
	}
	sums, each, err := home.Trend(days, func(u *home.Usage) int64 { return u.Tokens() }, room)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("Tokens from %s to %s", days[0].Key, days[len(days)-1].Key)
	if each > 1 {
		title += fmt.Sprintf(", %d days a column", each)
	}
	return []string{"", a.paint(bold, title), "  " + a.paint(green, terminal.Columns(sums, 1)[0])}, nil
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
