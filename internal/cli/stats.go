package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

type statsFlags struct{ since, until string }

func statsCommand(a *app) *cobra.Command {
	var f statsFlags
	cmd := &cobra.Command{
		Use:   "stats [ID]",
		Short: "Tokens, cost, hours, tools and topics",
		Long: "Tokens and cost over time, when most was said, which tools and models, and what\n" +
			"it was about: of all sessions, or of one. A response that is in several sessions,\n" +
			"because one was forked from the other, is counted once.",
		GroupID:           "read",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runStats(cmd, &f, args) },
	}
	cmd.Flags().StringVar(&f.since, "since", "", "only since: 2026-03-01, or 7d ago")
	cmd.Flags().StringVar(&f.until, "until", "", "only before")
	return a.withJSON(cmd)
}

// stats is everything that the command tells.
type stats struct {
	total    index.Usage
	days     []index.Usage
	models   []index.Usage
	sessions []index.Usage     // the dearest first; none if one session was asked for
	titles   map[string]string // of the first of them
	context  *int64            // of the session that was asked for
	shared   int64             // tokens of responses that count in older sessions
	activity *index.Activity
	topics   []index.Topic
}

const mostTopics = 12

func (a *app) runStats(cmd *cobra.Command, f *statsFlags, args []string) error {
	o := index.StatsOptions{Location: time.Local}
	var err error
	now := time.Now()
	if o.Since, err = parseWhen("--since", f.since, now); err != nil {
		return err
	}
	if o.Until, err = parseWhen("--until", f.until, now); err != nil {
		return err
	}
	return a.withIndex(cmd.Context(), func(ix *index.Index) error {
		var context *int64
		var shared int64
		if len(args) == 1 {
			s, err := a.sessionIn(cmd.Context(), ix, args[0])
			if err != nil {
				return err
			}
			o.Session, context = s.ID, &s.Context
			if f.since == "" && f.until == "" {
				shared = s.Tokens
			}
		}
		s, err := gatherStats(cmd.Context(), ix, o)
		if err != nil {
			return err
		}
		s.context = context
		s.shared = max(shared-s.total.Tokens(), 0)
		if a.flags.json {
			return a.printStatsJSON(o.Session, s)
		}
		return a.printStats(s)
	})
}

// sessionIn finds the conversation that a user means in the index: by any of its
// sessions, also by one that is missing.
func (a *app) sessionIn(ctx context.Context, ix *index.Index, id string) (index.Session, error) {
	var name string
	err := a.withStore(func(st *file.Store) (err error) {
		name, err = resolveSession(ctx, st, id)
		return err
	})
	if errors.Is(err, store.ErrNotExist) {
		if lost, lostErr := ix.Lost(ctx, id); lostErr == nil && len(lost) == 1 {
			name, err = lost[0], nil
		}
	}
	if err != nil {
		return index.Session{}, err
	}
	s, err := ix.Conversation(ctx, name)
	if !errors.Is(err, store.ErrNotExist) {
		return s, err
	}
	return index.Session{}, &store.Error{Op: "find session", Name: name, Kind: store.ErrNotExist, Hint: "coppice fsck tells whether it can be read"}
}

func gatherStats(ctx context.Context, ix *index.Index, o index.StatsOptions) (*stats, error) {
	s := &stats{}
	usage := index.UsageOptions{Since: o.Since, Until: o.Until, Session: o.Session, Location: o.Location}
	sums, err := ix.Usage(ctx, usage)
	if err != nil {
		return nil, err
	}
	if len(sums) > 0 {
		s.total = sums[0]
	}
	usage.By = index.ByDay
	if s.days, err = ix.Usage(ctx, usage); err != nil {
		return nil, err
	}
	usage.By = index.ByModel
	if s.models, err = ix.Usage(ctx, usage); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.models, func(a, b index.Usage) int { return cmp.Compare(b.Tokens(), a.Tokens()) })
	if o.Session == "" {
		usage.By = index.BySession
		if err := s.gatherSessions(ctx, ix, usage); err != nil {
			return nil, err
		}
	}
	if s.activity, err = ix.Activity(ctx, o); err != nil {
		return nil, err
	}
	s.topics, err = ix.Topics(ctx, o, mostTopics)
	return s, err
}

// gatherSessions finds the sessions that cost most.
func (s *stats) gatherSessions(ctx context.Context, ix *index.Index, usage index.UsageOptions) (err error) {
	if s.sessions, err = ix.Usage(ctx, usage); err != nil {
		return err
	}
	slices.SortStableFunc(s.sessions, func(a, b index.Usage) int {
		return cmp.Or(cmp.Compare(b.CostMicroUSD, a.CostMicroUSD), cmp.Compare(b.Tokens(), a.Tokens()))
	})
	s.titles = make(map[string]string)
	for _, u := range s.sessions[:min(len(s.sessions), mostSessions)] {
		found, err := ix.Conversation(ctx, u.Key)
		if err != nil {
			return err
		}
		s.titles[u.Key] = found.Title
	}
	return nil
}

// printStats draws the numbers.
func (a *app) printStats(s *stats) error {
	if err := a.printText(a.wrap(a.statsSummary(s), "")); err != nil {
		return err
	}
	if err := a.printTrend(s.days); err != nil {
		return err
	}
	days := make([]index.Count, 0, len(s.days))
	for _, d := range s.days {
		days = append(days, index.Count{Name: d.Key, Count: d.Tokens()})
	}
	if len(days) > mostDays {
		days = days[len(days)-mostDays:]
	}
	models := make([]index.Count, 0, len(s.models))
	for _, m := range s.models {
		models = append(models, index.Count{Name: fmt.Sprintf("%s  %s", m.Key, cost(m)), Count: m.Tokens()})
	}
	for _, c := range []struct {
		title string
		bars  []index.Count
	}{
		{"Tokens a day", days},
		{"Tokens by model", models},
		{"Tokens of the dearest sessions", s.sessionBars()},
		{"Calls by tool", s.activity.Tools[:min(len(s.activity.Tools), mostTools)]},
	} {
		if err := a.printBars(c.title, c.bars); err != nil {
			return err
		}
	}
	if err := a.printHours(s.activity.Hours[:]); err != nil {
		return err
	}
	return a.printTopics(s.topics)
}

const (
	mostDays  = 14
	mostTools = 10

	mostSessions = 5
	barWidth     = 40

	trendWidth = 76 // columns
)

func (s *stats) sessionBars() []index.Count {
	var bars []index.Count
	for _, u := range s.sessions[:min(len(s.sessions), mostSessions)] {
		title := oneLine(orElse(s.titles[u.Key], halfUUID(u.Key)), 30)
		bars = append(bars, index.Count{Name: fmt.Sprintf("%s  %s", title, cost(u)), Count: u.Tokens()})
	}
	return bars
}

func (a *app) statsSummary(s *stats) string {
	u := s.total
	lines := []string{strings.Join([]string{
		counted(int(s.activity.Messages), "message", "messages"), counted(int(u.Responses), "response", "responses"),
		counted(int(u.Tokens()), "token", "tokens"), cost(u),
	}, ", ")}
	if u.Responses > 0 {
		lines = append(lines, tokenKinds(u))
	}
	if u.Recorded > 0 {
		lines = append(lines, "recorded with messages, and reported by no provider: "+counted(int(u.Recorded), "token", "tokens"))
	}
	if s.shared > 0 {
		lines = append(lines, "also "+counted(int(s.shared), "token", "tokens")+" of responses that were made in an older session, and count there")
	}
	if s.context != nil && *s.context > 0 {
		lines = append(lines, "in the context at the last response, as its provider reported: "+counted(int(*s.context), "token", "tokens"))
	}
	if u.Unpriced > 0 {
		lines = append(lines, "the cost of "+counted(int(u.Unpriced), "response", "responses")+" is not known")
	}
	return strings.Join(lines, "\n")
}

// tokenKinds tells what kinds of tokens there were.
func tokenKinds(u index.Usage) string {
	parts := []string{"input " + grouped(u.Input)}
	if u.CacheRead > 0 {
		parts = append(parts, "from the cache "+grouped(u.CacheRead))
	}
	if u.CacheWrite > 0 {
		parts = append(parts, "into the cache "+grouped(u.CacheWrite))
	}
	output := "output " + grouped(u.Output)
	if u.Reasoning > 0 {
		output += " (of which reasoning " + grouped(u.Reasoning) + ")"
	}
	return strings.Join(append(parts, output), ", ")
}

// cost tells money, and says so when some of it is not known.
func cost(u index.Usage) string {
	digits := 2
	if u.CostMicroUSD < 1_000_000 {
		digits = 4 // single responses cost fractions of a cent
	}
	text := fmt.Sprintf("$%.*f", digits, float64(u.CostMicroUSD)/1e6)
	switch {
	case u.Unpriced == u.Responses && (u.Responses > 0 || u.Recorded > 0):
		return "cost unknown"
	case u.Unpriced > 0 || u.Recorded > 0:
		return "at least " + text
	}
	return text
}

// grouped writes a number with a thin mark at every thousand.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// printBars draws a horizontal bar for each count.
func (a *app) printBars(title string, bars []index.Count) error {
	if len(bars) == 0 {
		return nil
	}
	if err := a.print("\n%s", a.paint(bold, title)); err != nil {
		return err
	}
	most, widest := int64(1), 0
	for _, b := range bars {
		most = max(most, b.Count)
		widest = max(widest, ansi.StringWidth(oneLine(b.Name, 0)))
	}
	room := barWidth
	if width := a.width(); width > 0 {
		room = max(min(room, width-widest-len("      ")-len(grouped(most))), 8)
	}
	for _, b := range bars {
		name := oneLine(b.Name, 0)
		if name == "" {
			name = "-"
		}
		if err := a.print("  %s  %s %s", pad(name, widest), a.paint(green, bar(b.Count, most, room)), grouped(b.Count)); err != nil {
			return err
		}
	}
	return nil
}

// bar is a bar whose end is drawn to an eighth of a column.
func bar(n, most int64, width int) string {
	share := min(max(float64(n)/float64(max(most, 1)), 0), 1)
	eighths := int(8 * float64(width) * share)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	if text == "" && n > 0 {
		text = "▏"
	}
	return text
}

// height is a bar of one character that stands upright. What is not nothing is
// drawn.
func height(n, most int64) rune {
	heights := []rune(" ▁▂▃▄▅▆▇█")
	share := min(max(float64(n)/float64(max(most, 1)), 0), 1)
	return heights[int(math.Ceil(share*8))]
}

// printTrend draws the tokens of all days as one line, those without any
// included, if the bars of single days cannot show all of them. A character
// stands for one day, or for several.
func (a *app) printTrend(days []index.Usage) error {
	if len(days) <= mostDays {
		return nil
	}
	first, err := time.Parse(time.DateOnly, days[0].Key)
	last, err2 := time.Parse(time.DateOnly, days[len(days)-1].Key)
	if err != nil || err2 != nil {
		return errors.Join(err, err2)
	}
	const day = 24 * time.Hour
	span := int(last.Sub(first)/day) + 1
	room := trendWidth
	if width := a.width(); width > 0 {
		room = min(room, width-2)
	}
	each := (span + room - 1) / room
	sums := make([]int64, (span+each-1)/each)
	for _, d := range days {
		if at, err := time.Parse(time.DateOnly, d.Key); err == nil {
			sums[int(at.Sub(first)/day)/each] += d.Tokens()
		}
	}
	most := max(slices.Max(sums), 1)
	var line strings.Builder
	for _, sum := range sums {
		line.WriteRune(height(sum, most))
	}
	title := fmt.Sprintf("Tokens from %s to %s", days[0].Key, days[len(days)-1].Key)
	if each > 1 {
		title += fmt.Sprintf(", %d days a column", each)
	}
	return a.print("\n%s\n  %s", a.paint(bold, title), a.paint(green, line.String()))
}

// printHours draws the hours of a day as one line.
func (a *app) printHours(hours []int64) error {
	most := slices.Max(hours)
	if most == 0 {
		return nil
	}
	var line strings.Builder
	for _, n := range hours {
		line.WriteString(strings.Repeat(string(height(n, most)), 2))
	}
	return a.print("\n%s\n  %s\n  0     3     6     9     12    15    18    21", a.paint(bold, "Messages by the hour"), a.paint(green, line.String()))
}

func (a *app) printTopics(topics []index.Topic) error {
	if len(topics) == 0 {
		return nil
	}
	words := make([]string, len(topics))
	for i, t := range topics {
		words[i] = t.Word
	}
	return a.printText("\n" + a.paint(bold, "Topics") + "\n" + a.wrap(plain.Flat(strings.Join(words, ", ")), "  "))
}
