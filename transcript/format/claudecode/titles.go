package claudecode

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// titles are the names that a session was given, the strongest first.
type titles struct {
	Custom  string `json:"custom,omitempty"`
	Renamed string `json:"renamed,omitempty"`
	AI      string `json:"ai,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// best returns the name to use, or "".
func (t *titles) best() string {
	for _, name := range []string{t.Custom, t.Renamed, t.AI, t.Summary} {
		if name != "" {
			return name
		}
	}
	return ""
}

// rename handles a /rename that the user typed.
func (t *titles) rename(text string) {
	if !strings.Contains(text, "<command-name>/rename</command-name>") {
		return
	}
	if name := strings.TrimSpace(between(text, "<command-args>", "</command-args>")); name != "" {
		t.Renamed = name
	}
}

func between(text, begin, end string) string {
	_, rest, ok := strings.Cut(text, begin)
	if !ok {
		return ""
	}
	inner, _, ok := strings.Cut(rest, end)
	if !ok {
		return ""
	}
	return inner
}

// injectedBy are the beginnings of texts that the program puts in the user's name.
var injectedBy = []struct{ begin, by string }{
	{"<system-reminder>", "system-reminder"},
	{"<command-name>", "command"},
	{"<command-message>", "command"},
	{"<command-args>", "command"},
	{"<local-command-stdout>", "local-command"},
	{"<local-command-stderr>", "local-command"},
	{"<local-command-caveat>", "local-command"},
	{"<task-notification>", notification},
	{"<bash-stdout>", "local-command"},
	{"<bash-input>", "local-command"},
	{"<ide_opened_file>", "ide"},
	{"<ide_selection>", "ide"},
	{"[Request interrupted", "interruption"},
	{"Caveat:", "caveat"},
	{"Stop hook feedback:", "hook"},
}

// injected returns what put a text in the user's name, or "" if the user did.
func injected(text string) string {
	text = strings.TrimLeft(text, " \t\r\n")
	for _, i := range injectedBy {
		if !strings.HasPrefix(text, i.begin) {
			continue
		}
		if i.by == "ide" { // it may come before what the user typed
			_, rest, ok := strings.Cut(text, "</"+i.begin[1:])
			if ok && strings.TrimSpace(rest) != "" {
				return ""
			}
		}
		return i.by
	}
	return ""
}

// Members of a message's metadata that describe its line.
const (
	metaMarked = "meta"    // whether the line is marked as the program's own, where that is not usual
	metaCopyOf = "copy_of" // the line of another session that it was forked from
	metaOrigin = "origin"  // who spoke in the user's name, as the line says it
	metaQueued = "queued"  // it was typed while the model worked
	metaLocal  = "local"   // the line is one of the program's own: a command to it, or its answer
)

// notification is what the program sends in the user's name when a background task has
// ended. It sends more around it, so that the model does not take it for the user's
// words.
const notification = "task-notification"

// isNotice reports whether a message's origin makes it a notification.
func isNotice(m *session.MessageEntry) bool {
	origin, _ := m.Metadata[metaOrigin].(map[string]any)
	return origin["kind"] == notification
}

// usuallyMeta reports whether the program marks a line as its own, given what put
// it there.
func usuallyMeta(by, text string) bool {
	return by == "meta" || by == "caveat" || strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<local-command-caveat>")
}

// firstText returns the first text of a message, or "".
func firstText(content []session.Content) string {
	for i := range content {
		if content[i].Text != nil {
			return content[i].Text.Content
		}
	}
	return ""
}
