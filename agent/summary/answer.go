package summary

import (
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
)

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnusable, fmt.Sprintf(format, args...))
}

// usable returns the text of an answer that is complete.
func usable(r *provider.Response) (string, error) {
	switch {
	case r.Message == nil:
		return "", unusable("it is empty")
	case r.Partial:
		return "", unusable("it broke off (%s)", r.Message.StopReason)
	case len(r.Calls()) > 0:
		return "", unusable("it calls the tool %s", r.Calls()[0].Name)
	}
	switch stop := r.Message.StopReason; stop {
	case "", provider.StopEndTurn, provider.StopSequence:
	case provider.StopMaxTokens:
		return "", unusable("it was cut off because it was too long")
	default:
		return "", unusable("the model stopped early (%s)", stop)
	}
	text := unwrapped(session.TextOf(r.Message.Content))
	if text == "" {
		return "", unusable("it is empty")
	}
	return text, nil
}

// unwrapped removes what some models put around an answer: their thoughts, as text, and a
// code block.
func unwrapped(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if strings.HasPrefix(text, "<think>") {
		if _, after, ok := strings.Cut(text, "</think>"); ok {
			text = strings.TrimSpace(after)
		}
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(first, "```") {
		if inner, ok := strings.CutSuffix(rest, "```"); ok && !strings.Contains(inner, "\n```") {
			text = strings.TrimSpace(inner)
		}
	}
	return text
}

// checked returns a summary that has the requested form and size. A model that answers the
// conversation instead, apologises or reports an error does not write our headings.
func (w *writer) checked(text string) (string, error) {
	at := firstHeading(text)
	if at < 0 {
		return "", unusable("it has none of the headings of a summary: %q", clipped(text, 60))
	}
	text = withoutFiles(strings.TrimSpace(text[at:]))
	if n := w.counter.CountText(text); n > w.o.MaxTokens {
		return "", unusable("it has %d tokens, and may have %d", n, w.o.MaxTokens)
	}
	return text, nil
}

// firstHeading returns where the first heading of a summary begins, however it is marked, or
// -1.
func firstHeading(text string) int {
	at := 0
	for line := range strings.Lines(text) {
		name := strings.Trim(strings.TrimSpace(line), "#*_: ")
		for _, heading := range digest.Headings {
			if strings.EqualFold(name, heading) {
				return at
			}
		}
		at += len(line)
	}
	return -1
}
