// Package typed reads the markup that programs record in place of a typed command.
//
// When a person types "/clear", Claude Code keeps
//
//	<command-name>/clear</command-name>
//	<command-message>clear</command-message>
//	<command-args></command-args>
//
// and what the command printed, in another message, as <local-command-stdout>. A
// person wants to read "/clear" and what it printed.
package typed

import (
	"strings"
	"unicode"
)

// Kind is what a part of a message is.
type Kind int

const (
	Prose   Kind = iota // what is neither of the others
	Command             // as a person typed it: "/init now", "! git status"
	Output              // what a command printed
)

// Part is a part of a message.
type Part struct {
	Kind Kind
	Text string
}

// Read splits a message at the elements that it begins with. A message that begins
// with none is a single part, as it is.
func Read(text string) []Part {
	if !IsWrapped(text) {
		return []Part{{Prose, text}}
	}
	var parts []Part
	add := func(kind Kind, text string) {
		if strings.TrimSpace(text) != "" {
			parts = append(parts, Part{kind, text})
		}
	}
	rest := text
	for {
		if command, after, ok := cutCommand(rest); ok {
			add(Command, command)
			rest = after
			continue
		}
		name := ElementName(strings.TrimSpace(rest))
		inner, after, closed := CutElement(strings.TrimSpace(rest), name)
		switch {
		case !closed:
		case outputs[name]:
			add(Output, inner)
			rest = after
			continue
		case name == "local-command-caveat":
			add(Prose, inner)
			rest = after
			continue
		}
		break
	}
	add(Prose, rest)
	return parts
}

var outputs = map[string]bool{"local-command-stdout": true, "local-command-stderr": true, "bash-stdout": true, "bash-stderr": true}

// IsWrapped reports whether a message may begin with an element that Read knows. It
// looks at no more than the beginning.
func IsWrapped(text string) bool {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	return strings.HasPrefix(text, "<command-") || strings.HasPrefix(text, "<bash-") || strings.HasPrefix(text, "<local-command-")
}

// CommandIn returns the command that a message begins with; "" if it begins with none.
func CommandIn(text string) string {
	command, _, _ := cutCommand(text)
	return command
}

// cutCommand cuts the elements of a command off a text. They come in any order. What
// a person typed into a shell may be nothing; then the command is "".
func cutCommand(text string) (command, rest string, ok bool) {
	text = strings.TrimSpace(text)
	if shell, rest, ok := CutElement(text, "bash-input"); ok {
		if shell = strings.TrimSpace(shell); shell != "" {
			shell = "! " + shell
		}
		return shell, rest, true
	}
	found := make(map[string]string)
	rest = text
	for {
		name := ElementName(rest)
		inner, after, closed := CutElement(rest, name)
		_, again := found[name]
		if !closed || again || name != "command-name" && name != "command-args" && name != "command-message" {
			break
		}
		found[name] = strings.TrimSpace(inner)
		rest = strings.TrimSpace(after)
	}
	name := strings.TrimLeft(found["command-name"], "/")
	if name == "" {
		return "", text, false
	}
	return strings.TrimSpace("/" + name + " " + found["command-args"]), rest, true
}

// ElementName returns the name of the element that a text begins with, or "".
func ElementName(text string) string {
	inner, ok := strings.CutPrefix(text, "<")
	end := strings.IndexFunc(inner, func(r rune) bool {
		return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if !ok || end < 1 || inner[end] != '>' && inner[end] != ' ' {
		return ""
	}
	return inner[:end]
}

// CutElement splits a text that begins with an element into what is in it and what
// follows. The element may have attributes. ok is false if it does not end.
func CutElement(text, name string) (inner, rest string, ok bool) {
	if name == "" || ElementName(text) != name {
		return "", "", false
	}
	_, inner, _ = strings.Cut(text, ">")
	inner, rest, ok = strings.Cut(inner, "</"+name)
	_, rest, _ = strings.Cut(rest, ">")
	return inner, rest, ok
}
