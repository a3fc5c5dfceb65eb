package summary

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

const (
	// A title is made from the first and the last messages, shortened: they say what a
	// conversation is about, and reading all of it would cost too much.
	titleFirst, titleLast = 6, 4
	maxTitleTurn          = 500 // characters
	// maxTitleAnswer is the length above which an answer is not a long title, but
	// something else.
	maxTitleAnswer = 200
)

// Title writes a title for a conversation: one line of at most digest.MaxTitle characters,
// as Text. After an error, the summary has no text but may have a Log.
func Title(ctx context.Context, model provider.Model, entries []session.Entry, o Options) (*Summary, error) {
	w := newWriter(ctx, model, digest.Title, o)
	s := serialise(entries, w.o.Files)
	var said []digest.Turn
	for _, unit := range s.units {
		for _, t := range unit {
			if t.Who == digest.User || t.Who == digest.Assistant {
				t.Text, _ = window.Shorten(t.Text, maxTitleTurn, utf8.RuneCountInString)
				said = append(said, t)
			}
		}
	}
	if len(said) > titleFirst+titleLast {
		said = append(said[:titleFirst:titleFirst], said[len(said)-titleLast:]...)
	}
	w.task.Previous, _ = window.Shorten(s.previous, 4*maxTitleTurn, utf8.RuneCountInString)
	if len(said) == 0 && w.task.Previous == "" {
		return w.failed(ErrNothing)
	}
	if len(said) > 0 {
		// If the window is too small even for this, use as much as fits.
		said, _ = w.piece([][]digest.Turn{said}, max(minRoom, w.tokensThatFit()))
	}
	w.task.Turns, w.task.More = said, false
	answer, err := w.ask(&w.task)
	if err == nil {
		w.sum.Text, err = titleIn(answer)
	}
	if err != nil {
		return w.failed(err)
	}
	w.sum.Tokens = w.counter.CountText(w.sum.Text)
	return &w.sum, nil
}

// titleIn returns the title in an answer.
func titleIn(answer string) (string, error) {
	var title string
	for line := range strings.Lines(answer) {
		if title = plainTitle(line); title != "" {
			break
		}
	}
	switch n := utf8.RuneCountInString(title); {
	case n == 0:
		return "", unusable("it is empty")
	case n > maxTitleAnswer:
		return "", unusable("it is not a title: %q", clipped(title, 60))
	}
	return clipped(title, digest.MaxTitle), nil
}

// plainTitle removes what models put around a title.
func plainTitle(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	for before := ""; before != line; {
		before = line
		line = strings.TrimSpace(strings.Trim(line, "#*_`\"'“”„‘’«»‹›「」『』"))
		if label, rest, ok := strings.Cut(line, ":"); ok && strings.EqualFold(label, "title") {
			line = rest
		}
	}
	return strings.TrimRight(line, ".")
}

// clipped returns the beginning of a text, with whole words if there are any.
func clipped(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	head := string([]rune(text)[:most-1])
	if at := strings.LastIndexByte(head, ' '); at > len(head)/2 {
		head = head[:at]
	}
	return strings.TrimRight(head, " ,;:-–—") + "…"
}
