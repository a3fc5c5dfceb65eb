package terminal

import (
	"math"
	"slices"
	"strings"
)

// Bar is a bar for n of most that lies in a number of columns. Its end is drawn to an eighth of a
// column, and anything above zero is visible.
func Bar(n, most int64, width int) string {
	eighths := int(8 * float64(width) * share(n, most))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	if text == "" && n > 0 {
		text = "▏"
	}
	return text
}

func share(n, most int64) float64 { return min(max(float64(n)/float64(max(most, 1)), 0), 1) }

// Columns draws an upright bar for each value, one column wide, as a number of rows from the top
// down. Anything above zero is visible.
func Columns(values []int64, rows int) []string {
	most := int64(1)
	if len(values) > 0 {
		most = max(slices.Max(values), 1)
	}
	return ColumnsOf(values, most, rows)
}

// ColumnsOf is Columns in a chart whose top is a given value.
func ColumnsOf(values []int64, most int64, rows int) []string {
	heights := []rune(" ▁▂▃▄▅▆▇█")
	drawn := make([]string, rows)
	for i := range drawn {
		below := 8 * (rows - 1 - i) // the eighths that the rows below this one show
		var row strings.Builder
		for _, n := range values {
			eighths := int(math.Ceil(8 * float64(rows) * share(n, most)))
			row.WriteRune(heights[max(min(eighths-below, 8), 0)])
		}
		drawn[i] = row.String()
	}
	return drawn
}
