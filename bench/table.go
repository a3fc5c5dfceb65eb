package main

import (
	"fmt"
	"io"
	"time"
)

// row is a line of the table. A row without a goal is there to be looked at.
type row struct {
	work      string
	raw, ours string
	ratio     string
	goal      string
	met       bool
}

// atMost is a row whose time may be at most limit times the raw time; zero means no
// limit.
func atMost(work string, raw, ours time.Duration, limit float64) row {
	ratio := float64(ours) / float64(raw)
	r := row{work: work, raw: show(raw), ours: show(ours), ratio: fmt.Sprintf("%.2f ×", ratio)}
	if limit > 0 {
		r.goal, r.met = fmt.Sprintf("≤ %v ×", limit), ratio <= limit
	}
	return r
}

// durable is a row for an append that is on the disk when it returns. The raw time is nearly all
// the disk's: where that is slow the goal is a ratio, and where it is fast, so that a ratio would
// measure the disk, what the append adds.
func durable(work string, raw, ours time.Duration) row {
	const slow, most = 200 * time.Microsecond, 15 * time.Microsecond
	if raw >= slow {
		return atMost(work, raw, ours, 1.2)
	}
	r := atMost(work, raw, ours, 0)
	r.goal, r.met = "≤ +"+show(most), ours-raw <= most
	return r
}

// within is a row whose time has a limit of its own.
func within(work string, ours, limit time.Duration) row {
	return row{work: work, ours: show(ours), goal: "≤ " + show(limit), met: ours <= limit}
}

// beside is within with the raw limit of the same run beside it.
func beside(work string, raw, ours, limit time.Duration) row {
	r := within(work, ours, limit)
	r.raw, r.ratio = show(raw), fmt.Sprintf("%.2f ×", float64(ours)/float64(raw))
	return r
}

// show writes a duration with three digits.
func show(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

func digits(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// perSecond writes a rate.
func perSecond(n int, d time.Duration) string {
	return fmt.Sprintf("%.0f/s", float64(n)/d.Seconds())
}

// widths are those of the columns: each row is written as soon as it was measured,
// before the lengths of the others are known.
var widths = []int{62, 9, 9, 7, 9, 6}

// printHead writes the head of the table, which is also Markdown.
func printHead(w io.Writer) {
	printCells(w, "work", "raw limit", "ours", "ratio", "goal", "")
	printCells(w, "---", "---", "---", "---", "---", "---")
}

func printRow(w io.Writer, r row) {
	verdict := ""
	if r.goal != "" {
		verdict = "met"
		if !r.met {
			verdict = "MISSED"
		}
	}
	printCells(w, r.work, r.raw, r.ours, r.ratio, r.goal, verdict)
}

func printCells(w io.Writer, cells ...string) {
	for i, cell := range cells {
		fmt.Fprintf(w, "| %-*s ", widths[i], cell)
	}
	fmt.Fprintln(w, "|")
}
