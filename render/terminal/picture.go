package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
)

const (
	pictureRows  = 6  // of the contexts
	pictureLabel = 14 // columns before a chart
	widestPoint  = 3  // columns
)

// Picture draws how a conversation went, request by request: how full the context was, what happened,
// and what it cost. Without a width, it is a table of all requests.
func (s Style) Picture(p *render.Picture) []string {
	if len(p.Points) == 0 {
		return nil
	}
	lines := []string{s.Paint(Bold, "How it went")}
	for _, fact := range pictureFacts(p) {
		if s.Width > 0 {
			fact = ansi.Wrap(fact, max(s.Width-4, 20), "")
		}
		lines = append(lines, strings.Split("  "+strings.ReplaceAll(fact, "\n", "\n    "), "\n")...)
	}
	if s.Width == 0 {
		return append(lines, pictureTable(p)...)
	}
	room := max(s.Width-pictureLabel-1, 10)
	points := render.Fit(p.Points, room)
	wide := max(min(room/len(points), widestPoint), 1)
	draw := func(of func(*render.Point) int64) (values []int64) {
		for i := range points {
			values = append(values, slices.Repeat([]int64{of(&points[i])}, wide)...)
		}
		return values
	}
	full := p.Full()
	contexts := ColumnsOf(draw(func(at *render.Point) int64 { return at.Context }), full, pictureRows)
	for i, row := range contexts {
		text := ""
		switch i {
		case 0:
			text = render.Count(full)
		case pictureRows / 2:
			text = render.Count(full / 2)
		}
		lines = append(lines, labelled(text)+s.Paint(Green, row))
	}
	lines = append(lines, s.happenings(points, wide)...)
	if p.Sum.CostMicroUSD > 0 {
		lines = append(lines, labelled("cost so far")+s.Paint(Green, Columns(draw(func(at *render.Point) int64 { return at.SoFar }), 1)[0]))
	}
	return lines
}

// happenings draws what happened before each request, a row for each kind of it.
func (s Style) happenings(points []render.Point, wide int) (lines []string) {
	for _, row := range []struct {
		name, sign string
		colour     Colour
		of         func(*render.Point) render.Mark
	}{
		{"compacted", "▼", Blue, func(at *render.Point) render.Mark { return at.Compactions }},
		{"missed cache", "○", Yellow, func(at *render.Point) render.Mark { return at.Misses }},
		{"errors", "×", Red, func(at *render.Point) render.Mark { return at.Errors }},
		{"branches", "Y", Cyan, func(at *render.Point) render.Mark { return at.Branches }},
	} {
		text, some := "", false
		for i := range points {
			sign := " "
			if row.of(&points[i]).N > 0 {
				sign, some = row.sign, true
			}
			text += sign + strings.Repeat(" ", wide-1)
		}
		if some {
			lines = append(lines, labelled(row.name)+s.Paint(row.colour, strings.TrimRight(text, " ")))
		}
	}
	return lines
}

// labelled is what is before a row of a chart.
func labelled(text string) string { return fmt.Sprintf("%*s ", pictureLabel-1, text) }

// pictureFacts says in words what a picture shows.
func pictureFacts(p *render.Picture) []string {
	sum := &p.Sum
	about := ""
	if p.Estimated {
		about = "about "
	}
	context := render.Counted(sum.Requests, "request", "requests") + ", at most " + about + render.Count(sum.Context) + " tokens in the context"
	if share := render.ShareOf(sum.Context, p.Window); share != "" {
		context += " (" + share + ")"
	}
	facts := []string{context}
	var more []string
	if cached := render.Percent(p.Cached, p.Sent); cached != "" {
		more = append(more, cached+" of what was sent came from the cache")
	}
	for _, m := range []struct {
		n         int
		one, many string
	}{
		{sum.Misses.N, "request missed it", "requests missed it"},
		{sum.Compactions.N, "compaction", "compactions"},
		{sum.Errors.N, "error", "errors"},
		{sum.Branches.N, "other branch", "other branches"},
	} {
		if m.n > 0 {
			more = append(more, render.Counted(m.n, m.one, m.many))
		}
	}
	if len(more) > 0 {
		facts = append(facts, strings.Join(more, ", "))
	}
	if sum.Spent != (render.Elapsed{}) {
		facts = append(facts, "time: "+TimeWords(sum.Spent))
	}
	var failed []string
	for _, tool := range p.Failed {
		failed = append(failed, fmt.Sprintf("%s %d of %d", render.OneLine(tool.Name, 40), tool.Errors, tool.Calls))
	}
	if len(failed) > 0 {
		facts = append(facts, "calls that failed: "+strings.Join(failed, ", "))
	}
	return facts
}

// TimeWords says where time went.
func TimeWords(t render.Elapsed) string {
	duration := func(ms int64) string { return render.Duration(time.Duration(ms) * time.Millisecond) }
	return fmt.Sprintf("the model %s, tools %s, waiting for a person %s", duration(t.Model), duration(t.Tools), duration(t.Person))
}

// pictureTable is a picture in numbers.
func pictureTable(p *render.Picture) []string {
	lines := []string{"  request\tcontext\tcached\tnot cached\tanswered\tcost\tso far\tentry"}
	for i := range p.Points {
		at := &p.Points[i]
		lines = append(lines, fmt.Sprintf("  %d\t%d\t%d\t%d\t%d\t%s\t%s\t%s", i+1, at.Context, at.CacheRead, at.Sent()-at.CacheRead, at.Output,
			render.Cost(at.CostMicroUSD, at.Unpriced > 0), render.Cost(at.SoFar, false), render.OneLine(at.Entry, 0)))
	}
	return lines
}

// shades tell the parts of a bar apart without colours.
const shades = "█▓▒░▚╱"

// Shade returns what the n-th part of a bar is drawn with.
func Shade(n int) string {
	all := []rune(shades)
	return string(all[n%len(all)])
}

// Stack is a bar of several parts beside each other, for a whole of most that lies in a number of columns.
// A bar that is not empty has a column at least.
func Stack(parts []int64, most int64, width int) string {
	var b strings.Builder
	sum, drawn := int64(0), 0
	for i, n := range parts {
		sum += n
		end := int(float64(width)*share(sum, most) + 0.5)
		if sum > 0 && end == 0 {
			end = 1
		}
		b.WriteString(strings.Repeat(Shade(i), max(end-drawn, 0)))
		drawn = max(end, drawn)
	}
	return b.String()
}

// levels draw how busy a day was.
const levels = "·░▒▓█"

// Year draws the last weeks up to a day, a row for each day of the week, as far as there is
// room for them. level says how busy a day was, from 0 to 4.
func (s Style) Year(today time.Time, level func(day string) int) []string {
	const left, most = 6, 53
	wide := 1
	if s.Width >= left+2*most {
		wide = 2
	}
	weeks := min((s.Width-left)/wide, most)
	if weeks < 4 {
		return nil
	}
	shown := []rune(levels)
	back := (int(today.Weekday()) + 6) % 7
	first := today.AddDate(0, 0, -back-7*(weeks-1))
	months := []rune(strings.Repeat(" ", weeks*wide+4))
	last := -4
	for w := range weeks {
		day := first.AddDate(0, 0, 7*w)
		if at := w * wide; (w == 0 || day.Month() != day.AddDate(0, 0, -7).Month()) && at >= last+4 {
			copy(months[at:], []rune(day.Format("Jan")))
			last = at
		}
	}
	lines := []string{strings.Repeat(" ", left) + s.Paint(Dim, strings.TrimRight(string(months), " "))}
	for d, name := range []string{"Mon", "", "Wed", "", "Fri", "", ""} {
		var row strings.Builder
		for w := range weeks {
			if day := first.AddDate(0, 0, 7*w+d); !day.After(today) {
				row.WriteString(strings.Repeat(string(shown[min(max(level(day.Format(time.DateOnly)), 0), len(shown)-1)]), wide))
			}
		}
		lines = append(lines, fmt.Sprintf("  %-3s ", name)+s.Paint(Green, row.String()))
	}
	return lines
}
