package render

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Counted is a number with its noun: "1 entry", "12,345 entries".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Thousands writes a number with separators: 12,345.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// Count is a number in a narrow column: 950, 1.2k, 3.4M, 1.0B, and "-" for none. What is counted has
// the units in which people count: a thousand million is a B, and not a G.
func Count(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1000:
		return strconv.FormatInt(n, 10)
	}
	digits, unit := scaled(n, "kMBT")
	return digits + unit
}

// Bytes is a size as people say it: 950 B, 1.2 kB, 340 MB.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	digits, unit := scaled(n, "kMGTP")
	return digits + " " + unit + "B"
}

// scaled rounds a number of at least 1,000 to three digits at most, and returns which of some units,
// each of a thousand of the one before, it is in.
func scaled(n int64, units string) (digits, unit string) {
	v, i := float64(n)/1000, 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if v >= 99.95 {
		return fmt.Sprintf("%.0f", v), units[i : i+1]
	}
	return fmt.Sprintf("%.1f", v), units[i : i+1]
}

// Money is an amount in millionths of a US dollar: $0, $0.0012, $3.40.
func Money(micro int) string {
	switch {
	case micro == 0:
		return "$0"
	case micro > 0 && micro < 100:
		return "<$0.0001"
	case micro < 10_000:
		return fmt.Sprintf("$%.4f", float64(micro)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// Cost is an amount of money of which a part may be unknown: "$1.20", "at least $1.20", or
// "cost unknown".
func Cost(micro int64, partly bool) string {
	text := Money(int(micro))
	switch {
	case micro == 0 && partly:
		return "cost unknown"
	case partly:
		return "at least " + text
	}
	return text
}

// PercentOf returns how much a part is of a whole that is not 0, rounded to a whole number, but 100
// only if it is all of it.
func PercentOf(part, whole int64) int {
	percent := int(math.Round(100 * float64(part) / float64(whole)))
	if part < whole {
		percent = min(percent, 99)
	}
	return percent
}

// Percent is PercentOf in words, or "" if there is no whole.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return strconv.Itoa(PercentOf(part, whole)) + "%"
}

// ShareOf says how much of a window is full: "31% of 200k", or "" if the window is not known.
func ShareOf(tokens, window int64) string {
	if window <= 0 {
		return ""
	}
	return Percent(tokens, window) + " of " + Count(window)
}

// Duration says how long something took, in one unit or two: "45 s", "4 min", "2 h 5 min", "3 d 4 h".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(n int64, unit string, rest int64, smaller string) string {
		text := fmt.Sprintf("%d %s", n, unit)
		if rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smaller)
		}
		return text
	}
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < day:
		return two(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "min")
	}
	return two(int64(d/day), "d", int64(d%day/time.Hour), "h")
}

// Ago says when something happened, seen from now, in local time: "5 min ago",
// "Mon 15:04", "2 Jan 2006".
func Ago(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < 0:
		return at.Local().Format("2 Jan 2006 15:04")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 7*24*time.Hour:
		return at.Local().Format("Mon 15:04")
	case at.Year() == now.Year():
		return at.Local().Format("2 Jan 15:04")
	}
	return at.Local().Format("2 Jan 2006")
}

// Untitled is the title of a conversation without a name or a prompt.
const Untitled = "Untitled Session"
