package home

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index"
)

// StatsBin is what was used in a day, a week or a month.
type StatsBin struct {
	Usage          // its key is the first day
	Until  string  `json:"until"`       // the day after the last one
	Tokens []int64 `json:"part_tokens"` // of each of StatsResult.Parts
	Costs  []int64 `json:"part_costs"`  // in micro-dollars
}

// ActiveDay is a day on which something was said.
type ActiveDay struct {
	Day      string `json:"day"`
	Messages int64  `json:"messages"`
	// Level says how busy it was beside the others: 1 is a day of the quieter quarter of them, and 4 one of the
	// busiest.
	Level int `json:"level"`
}

// activeDays finds out how busy each day was.
func activeDays(days []index.Count) []ActiveDay {
	counts := make([]int64, len(days))
	for i := range days {
		counts[i] = days[i].Count
	}
	slices.Sort(counts)
	active := make([]ActiveDay, len(days))
	for i, d := range days {
		active[i] = ActiveDay{Day: d.Name, Messages: d.Count, Level: 1}
		for _, quarter := range []int{1, 2, 3} {
			if d.Count >= counts[quarter*len(counts)/4] && d.Count > counts[0] {
				active[i].Level = quarter + 1
			}
		}
	}
	return active
}

// The lengths of bins.
const (
	BinDay   = "day"
	BinWeek  = "week"
	BinMonth = "month"
)

const (
	defaultColumns = 60
	maxBins        = 10_000 // of days or weeks: nobody looks at more, and a caller may ask for all since the year 1
	maxParts       = 6      // more cannot be told apart
)

// dividers are what bins can be divided by.
var dividers = map[string]index.StatsBy{"": index.PartModel, "model": index.PartModel, "project": index.PartDir, "agent": index.PartAgent}

func (r *StatsRequest) checkBins() error {
	if _, known := dividers[r.By]; !known {
		return wrong("by", "{by} is %q; it must be model, project or agent", r.By)
	}
	if bins := []string{"", BinDay, BinWeek, BinMonth}; !slices.Contains(bins, r.Bin) {
		return wrong("bin", "{bin} is %q; it must be one of %s", r.Bin, strings.Join(bins[1:], ", "))
	}
	return notNegative("columns", r.Columns)
}

// divide fills in the bins.
func (c *counting) divide(stats *index.Stats) error {
	r := c.result
	r.Bins, r.Parts = []StatsBin{}, []Usage{}
	first, last, ok := c.span(stats.Days)
	if !ok {
		r.Bin = cmp.Or(c.asked.Bin, BinDay)
		return nil
	}
	r.Bin = cmp.Or(c.asked.Bin, binThatFits(first, last, min(cmp.Or(c.asked.Columns, defaultColumns), maxBins)))
	if r.Bin != BinMonth && !binsFit(r.Bin, first, last, maxBins) {
		return wrong("bin", "{bin} is %s, of which there are more than %d from %s to %s; choose a longer one, or less time",
			r.Bin, maxBins, first.Format(time.DateOnly), last.Format(time.DateOnly))
	}
	part := c.chooseParts(stats)
	for from := binOf(r.Bin, first); !from.After(last); {
		until := afterBin(r.Bin, from)
		r.Bins = append(r.Bins, StatsBin{
			Usage: Usage{Key: from.Format(time.DateOnly)}, Until: until.Format(time.DateOnly),
			Tokens: make([]int64, len(r.Parts)), Costs: make([]int64, len(r.Parts)),
		})
		from = until
	}
	at := 0
	for i := range stats.Parts {
		p := &stats.Parts[i]
		for at < len(r.Bins)-1 && p.Day >= r.Bins[at].Until {
			at++
		}
		bin, n := &r.Bins[at], part[p.Key]
		bin.Add(p.Usage)
		bin.Tokens[n] += p.Tokens()
		bin.Costs[n] += p.CostMicroUSD
	}
	return nil
}

// span returns the first and the last day that have a place in a bin: those that were asked for, as
// far as there are any, and else those with usage.
func (c *counting) span(days []Usage) (first, last time.Time, ok bool) {
	if len(days) == 0 {
		return first, last, false
	}
	first, errFirst := time.Parse(time.DateOnly, days[0].Key)
	last, errLast := time.Parse(time.DateOnly, days[len(days)-1].Key)
	dayOf := func(t time.Time) time.Time {
		y, m, d := t.In(c.opts.Location).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	if !c.asked.Since.IsZero() {
		if since := dayOf(c.asked.Since); since.Before(first) {
			first = since
		}
		end := time.Now()
		if !c.asked.Until.IsZero() {
			end = c.asked.Until.Add(-time.Nanosecond)
		}
		if day := dayOf(end); day.After(last) {
			last = day
		}
	}
	return first, last, errFirst == nil && errLast == nil
}

// binThatFits returns the shortest bin of which there is room for all, or else a month.
func binThatFits(first, last time.Time, columns int) string {
	for _, bin := range []string{BinDay, BinWeek} {
		if binsFit(bin, first, last, columns) {
			return bin
		}
	}
	return BinMonth
}

// binsFit reports whether there are at most so many bins.
func binsFit(bin string, first, last time.Time, most int) bool {
	n := 0
	for from := binOf(bin, first); !from.After(last) && n <= most; from = afterBin(bin, from) {
		n++
	}
	return n <= most
}

// binOf returns the first day of the bin of a day.
func binOf(bin string, day time.Time) time.Time {
	switch bin {
	case BinWeek:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case BinMonth:
		return day.AddDate(0, 0, 1-day.Day())
	}
	return day
}

func afterBin(bin string, from time.Time) time.Time {
	switch bin {
	case BinWeek:
		return from.AddDate(0, 0, 7)
	case BinMonth:
		return from.AddDate(0, 1, 0)
	}
	return from.AddDate(0, 0, 1)
}

// chooseParts finds the parts that are worth a colour, and returns which part each key belongs to.
func (c *counting) chooseParts(stats *index.Stats) (part map[string]int) {
	sums := make(map[string]*Usage)
	for i := range stats.Parts {
		p := &stats.Parts[i]
		if sums[p.Key] == nil {
			sums[p.Key] = &Usage{Key: p.Key}
		}
		sums[p.Key].Add(p.Usage)
	}
	all := make([]Usage, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[key])
	}
	slices.SortStableFunc(all, func(a, b Usage) int { return cmp.Compare(b.Tokens(), a.Tokens()) })
	keys := make([]string, len(all))
	for i := range all {
		keys[i] = all[i].Key
	}
	if c.opts.By == index.PartDir {
		all = byProject(all)
	}
	r := c.result
	if r.Parts = all; len(all) > maxParts {
		r.Rest = len(all) - maxParts + 1
		rest := Usage{}
		for i := range all[maxParts-1:] {
			rest.Add(all[maxParts-1+i])
		}
		r.Parts = append(slices.Clip(all[:maxParts-1]), rest)
	}
	part = make(map[string]int, len(keys))
	for i, key := range keys {
		part[key] = min(i, len(r.Parts)-1)
	}
	return part
}
