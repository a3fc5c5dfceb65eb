package app

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/render/terminal"
)

// keyNames are how keys are written that have no letter.
var keyNames = map[string]string{
	"up": "↑", "down": "↓", "enter": "Enter", "esc": "Esc", "space": "Space", "tab": "Tab", "delete": "Del",
	"pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End", "left": "←", "right": "→", "backspace": "Backspace",
}

func keyName(k string) string {
	if name, ok := keyNames[k]; ok {
		return name
	}
	for _, held := range []string{"Ctrl", "Alt", "Shift"} {
		if other, ok := strings.CutPrefix(k, strings.ToLower(held)+"+"); ok {
			if len(other) == 1 {
				other = strings.ToUpper(other)
			}
			return held + "-" + keyName(other)
		}
	}
	return k
}

// barKey is a key in the bar, and its columns there.
type barKey struct {
	key
	from, to int
}

func (k *barKey) text() string { return keyName(k.keys[0]) + " " + k.help }

// bar returns the keys that fit into the last row: the first of the room, and always those of all
// rooms. The others are in the help.
func (a *App) bar() []barKey {
	all := a.keys()
	if types, ok := a.room().(typist); ok && types.typing() {
		all = typable(all)
	}
	var always []key
	for _, k := range all {
		if isAlways(k) {
			always = append(always, k)
		}
	}
	room := a.width - 1
	for _, k := range always {
		room -= ansi.StringWidth(k.help) + ansi.StringWidth(keyName(k.keys[0])) + 3
	}
	var shown []barKey
	at := 1
	add := func(k key) {
		b := barKey{key: k, from: at}
		b.to = at + ansi.StringWidth(b.text())
		at = b.to + 2
		shown = append(shown, b)
	}
	for _, k := range all {
		isUndo := strings.HasPrefix(k.help, "undo")
		if k.help == "" || k.rare || k.keys[0] == ":" || isAlways(k) || isUndo && k.why != "" {
			continue
		}
		if width := ansi.StringWidth(k.help) + ansi.StringWidth(keyName(k.keys[0])) + 3; width > room {
			continue
		} else {
			room -= width
		}
		add(k)
	}
	for _, k := range always {
		add(k)
	}
	return shown
}

// isAlways reports whether the bar has a key in every room: there is nothing to remember about how
// to find, to get help and to go back.
func isAlways(k key) bool {
	return k.keys[0] == "?" || k.keys[0] == "/" || k.help == "back" || k.help == "quit"
}

// typable leaves out the keys that are text while a text is typed.
func typable(all []key) (usable []key) {
	for _, k := range all {
		if len([]rune(k.keys[0])) > 1 && k.keys[0] != "space" && k.keys[0] != "backspace" && k.keys[0] != "delete" {
			usable = append(usable, k)
		}
	}
	return usable
}

func (a *App) barRow() string {
	s := a.style(a.width)
	var b strings.Builder
	at := 0
	for _, k := range a.bar() {
		b.WriteString(strings.Repeat(" ", k.from-at))
		at = k.to
		if k.why != "" {
			b.WriteString(s.Paint(terminal.Dim, k.text()))
			continue
		}
		b.WriteString(s.Paint(terminal.Bold, keyName(k.keys[0])) + " " + k.help)
	}
	return b.String()
}

// listKeys are the keys that move in a list. The bar does not show them.
func listKeys(l *list.List) []key {
	move := func(f func()) func() tea.Cmd {
		return func() tea.Cmd { f(); return nil }
	}
	return moving.in([]key{
		{keys: []string{"up", "k"}, help: "up", rare: true, do: move(func() { l.Move(-1) })},
		{keys: []string{"down", "j"}, help: "down", rare: true, do: move(func() { l.Move(1) })},
		{keys: []string{"pgup", "ctrl+b"}, help: "a page up", rare: true, do: move(func() { l.Page(-1) })},
		{keys: []string{"pgdown", "ctrl+f"}, help: "a page down", rare: true, do: move(func() { l.Page(1) })},
		{keys: []string{"home", "g"}, help: "first", rare: true, do: move(l.First)},
		{keys: []string{"end", "G"}, help: "last", rare: true, do: move(l.Last)},
	}...)
}
