package offline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider/digest"
)

const (
	// bytesPerToken is cautious: the caller that set a limit may count more tokens than
	// we do.
	bytesPerToken = 2
	maxExtract    = 160 // characters of a line that is quoted
)

// digestOf answers a request for a summary or a title with an extract. It obeys the
// user's own instructions, so that they can make it fail, but nothing in the
// conversation.
func (p *plan) digestOf(t *digest.Task) {
	for line := range strings.Lines(t.Instructions) {
		p.follow(strings.TrimSpace(line), nil)
	}
	if len(p.text) > 0 {
		return // they said what to answer
	}
	if t.Kind == digest.Title {
		p.text = []string{titleOf(t)}
		return
	}
	p.text = []string{extract(t)}
}

// titleOf returns the first words of the first request. If there is a summary, that request
// is in it.
func titleOf(t *digest.Task) string {
	if goal, _ := extracted(t.Previous); goal != "" {
		return clip(goal, digest.MaxTitle)
	}
	for _, who := range []string{digest.User, digest.Assistant} {
		for i := range t.Turns {
			if line := firstLine(t.Turns[i].Text, digest.MaxTitle); t.Turns[i].Who == who && line != "" {
				return line
			}
		}
	}
	return "A conversation"
}

const (
	goalHeading     = "## Goal"
	progressHeading = "## Progress"
)

// extract returns the first line of everything that the user and the model said, below
// what an earlier extract has. If that is too long, or not shorter than the
// conversation, the oldest lines go.
func extract(t *digest.Task) string {
	goal, points := extracted(t.Previous)
	size := len(t.Previous)
	for _, turn := range t.Turns {
		size += len(turn.Text) / 2
		line := firstLine(turn.Text, maxExtract)
		if line == "" || turn.Who != digest.User && turn.Who != digest.Assistant && turn.Who != digest.Note {
			continue
		}
		if goal == "" {
			goal = line
			continue
		}
		points = append(points, "- "+turn.Who+": "+line)
	}
	if goal == "" {
		goal = "Not known."
	}
	head := goalHeading + "\n" + goal
	room := min(t.MaxTokens*bytesPerToken, size) - len(head)
	return head + progress(points, room)
}

// progress lists as many of the last points as there is room for.
func progress(points []string, room int) string {
	left := 0
	if len(points) > 0 {
		if n, err := fmt.Sscanf(points[0], leftOut, &left); n == 1 && err == nil {
			points = points[1:]
		}
	}
	room -= len("\n\n"+progressHeading) + len(leftOut) + 10
	first := len(points)
	for first > 0 && room >= len(points[first-1])+1 {
		first--
		room -= len(points[first]) + 1
	}
	if room < 0 || len(points)+left == 0 {
		return ""
	}
	if left += first; left > 0 {
		points = append([]string{fmt.Sprintf(leftOut, left)}, points[first:]...)
	}
	return "\n\n" + progressHeading + "\n" + strings.Join(points, "\n")
}

const leftOut = "- Earlier lines left out: %d"

// extracted returns what an earlier summary has. In a summary that another model wrote,
// every line below the goal is a point.
func extracted(summary string) (goal string, points []string) {
	for line := range strings.Lines(summary) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case goal == "":
			goal = clip(line, maxExtract)
		case strings.HasPrefix(line, "- "):
			points = append(points, line)
		default:
			points = append(points, "- "+clip(line, maxExtract))
		}
	}
	return goal, points
}

// firstLine returns the first line of a text that is not blank, shortened.
func firstLine(text string, most int) string {
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return clip(line, most)
		}
	}
	return ""
}

func clip(line string, most int) string {
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return strings.TrimSpace(string([]rune(line)[:most-1])) + "…"
}
