package index

import (
	"strings"
	"unicode"

	"github.com/coppice-dev/coppice/session"
)

// maxTitle is the greatest length of a title that is made up from a text.
const maxTitle = 80

// TitleIn returns the title that an entry gives a session without a name: the
// beginning of what its user says in it, or "".
func TitleIn(e *session.Entry) string {
	if e.Message == nil || e.Message.Role != session.RoleUser || isInjected(e) {
		return ""
	}
	var said []string
	for i := range e.Message.Content {
		switch c := &e.Message.Content[i]; {
		case c.Text != nil:
			said = append(said, c.Text.Content)
		case c.File != nil:
			said = append(said, c.File.Name)
		}
	}
	return promptTitle(strings.Join(said, "\n"))
}

// BetterTitle returns the better of two titles, the earlier one unless it only
// commands the program, as "/model" does.
func BetterTitle(earlier, later string) string {
	if earlier == "" || later != "" && IsCommand(earlier) && !IsCommand(later) {
		return later
	}
	return earlier
}

// IsCommand reports whether a title is a command to the program in which it was
// typed. A path is none.
func IsCommand(title string) bool {
	word, _, _ := strings.Cut(title, " ")
	name, ok := strings.CutPrefix(word, "/")
	return ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// isInjected reports whether a program said something in the user's name, as the
// importers mark it: reminders, contexts, notices. It is no title.
func isInjected(e *session.Entry) bool {
	if e.Message == nil {
		return false
	}
	by, marked := e.Message.Metadata["injected"]
	return marked && by != false
}

// promptTitle is titleOf what the user typed, without what a program put before
// it.
func promptTitle(text string) string {
	for {
		rest, ok := afterAddition(strings.TrimSpace(text))
		if !ok {
			return titleOf(text)
		}
		text = rest
	}
}

// afterAddition returns what follows the element with which a program begins a
// prompt. One without an end is all there is.
func afterAddition(text string) (rest string, ok bool) {
	for _, name := range []string{
		"system-reminder", "environment_context", "environment_details", "user_instructions",
		"local-command-caveat", "ide_opened_file", "ide_selection",
	} {
		if inner, ok := strings.CutPrefix(text, "<"+name+">"); ok {
			_, rest, _ := strings.Cut(inner, "</"+name+">")
			return rest, true
		}
	}
	return "", false
}

// titleOf returns the beginning of a text's first line that says something.
func titleOf(text string) string {
	for line := range strings.Lines(clip(text, 4096)) {
		line = strings.Map(printable, strings.ToValidUTF8(line, ""))
		if line = strings.Join(strings.Fields(line), " "); line == "" {
			continue
		}
		runes := []rune(line)
		if len(runes) <= maxTitle {
			return line
		}
		cut := string(runes[:maxTitle-1])
		if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
			cut = cut[:i]
		}
		return cut + "…"
	}
	return ""
}

// printable replaces what would do something to a terminal by a space: control
// characters, and those that turn the direction of writing round.
func printable(r rune) rune {
	if unicode.IsControl(r) || 0x202A <= r && r <= 0x202E || 0x2066 <= r && r <= 0x2069 {
		return ' '
	}
	return r
}
