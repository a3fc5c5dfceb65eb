package line

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// Editor holds a message that is being typed. The zero value is empty and has no history.
type Editor struct {
	text string
	at   int    // where the cursor is, in bytes
	cut  string // what was cut last

	history []string
	place   int    // in history; len(history) is the message that is being typed
	draft   string // that message, while another one is shown
}

// maxHistory is how many messages are remembered.
const maxHistory = 1000

// Text returns what was typed.
func (e *Editor) Text() string { return e.text }

// Before returns what was typed before the cursor.
func (e *Editor) Before() string { return e.text[:e.at] }

// Replace puts a text in place of the last n bytes before the cursor.
func (e *Editor) Replace(n int, text string) {
	e.remove(e.at-n, e.at)
	e.insert(text)
}

// Set replaces the message and puts the cursor behind it.
func (e *Editor) Set(text string) { e.text, e.at = text, len(text) }

// Remember adds messages to the history, the latest last. One that repeats the one before
// is left out.
func (e *Editor) Remember(messages ...string) {
	for _, m := range messages {
		if last := len(e.history) - 1; strings.TrimSpace(m) != "" && (last < 0 || e.history[last] != m) {
			e.history = append(e.history, m)
		}
	}
	e.history = e.history[max(0, len(e.history)-maxHistory):]
	e.place = len(e.history)
}

// Precede adds messages that are older than those in the history, the latest last.
func (e *Editor) Precede(messages ...string) {
	e.history = slices.Concat(messages, e.history)
	e.place += len(messages)
}

// Find returns the latest message of the history that is before a place, or anywhere for -1,
// and has a text in it, in any case of its letters; -1 if there is none.
func (e *Editor) Find(text string, before int) (place int, message string) {
	if before < 0 {
		before = len(e.history)
	}
	for i, m := range slices.Backward(e.history[:before]) {
		if text != "" && strings.Contains(strings.ToLower(m), strings.ToLower(text)) {
			return i, m
		}
	}
	return -1, ""
}

// Forget empties the history.
func (e *Editor) Forget() { e.history, e.place = nil, 0 }

// Submit returns the message and starts a new one. The message goes into the history.
func (e *Editor) Submit() string {
	text := e.text
	e.Set("")
	e.Remember(text)
	return text
}

// Drop starts a new message. What was typed can be yanked.
func (e *Editor) Drop() {
	e.cutOut(0, len(e.text))
	e.place = len(e.history)
}

// Press does what a key asks for. It returns false if the key is not about the text:
// Enter, Tab, Interrupt, and EOF, Up and Down where there is nothing to delete or to go to.
func (e *Editor) Press(k Key) bool {
	switch k.Kind {
	case Text, Paste:
		e.insert(k.Text)
	case NewLine:
		e.insert("\n")
	case Enter: // a backslash at the end of a line asks for another line
		if e.at != len(e.text) || !strings.HasSuffix(e.text, `\`) {
			return false
		}
		e.remove(e.at-1, e.at)
		e.insert("\n")
	case Backspace:
		e.remove(e.before(e.at), e.at)
	case Delete:
		e.remove(e.at, e.after(e.at))
	case EOF:
		if e.text == "" {
			return false
		}
		e.remove(e.at, e.after(e.at))
	case Up, Down:
		return e.vertical(k.Kind)
	default:
		return e.move(k.Kind)
	}
	return true
}

// move handles the keys that move within a line, or cut.
func (e *Editor) move(k Kind) bool {
	switch k {
	case Left:
		e.at = e.before(e.at)
	case Right:
		e.at = e.after(e.at)
	case Home:
		e.at = e.lineStart(e.at)
	case End:
		e.at = e.lineEnd(e.at)
	case WordLeft:
		e.at = e.wordLeft()
	case WordRight:
		e.at = e.wordRight()
	case CutWord:
		e.cutOut(e.wordLeft(), e.at)
	case CutWordRight:
		e.cutOut(e.at, e.wordRight())
	case CutLeft:
		e.cutOut(e.lineStart(e.at), e.at)
	case CutRight:
		e.cutOut(e.at, e.lineEnd(e.at))
	case Yank:
		e.insert(e.cut)
	default:
		return false
	}
	return true
}

func (e *Editor) insert(text string) {
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
}

func (e *Editor) remove(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.at = from
}

func (e *Editor) cutOut(from, to int) {
	if from < to {
		e.cut = e.text[from:to]
		e.remove(from, to)
	}
}

// before and after return the neighbours of a place: what a person sees as one character
// may be several runes.
func (e *Editor) before(at int) int {
	start := e.lineStart(at)
	if start == at {
		return max(at-1, 0) // the newline
	}
	last := start
	for next := start; next < at; next = e.after(next) {
		last = next
	}
	return last
}

func (e *Editor) after(at int) int {
	if at >= len(e.text) {
		return len(e.text)
	}
	if e.text[at] == '\n' {
		return at + 1
	}
	return at + len(firstCluster(e.text[at:]))
}

// firstCluster returns what a person sees as the first character of a text.
func firstCluster(text string) string {
	if len(text) > 1 && text[0] < utf8.RuneSelf && text[1] < utf8.RuneSelf {
		return text[:1]
	}
	cluster, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	if cluster == "" || strings.HasPrefix(cluster, "\n") {
		return text[:1]
	}
	return cluster
}

func (e *Editor) lineStart(at int) int { return strings.LastIndexByte(e.text[:at], '\n') + 1 }

func (e *Editor) lineEnd(at int) int {
	if n := strings.IndexByte(e.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(e.text)
}

func (e *Editor) wordLeft() int {
	left := strings.TrimRightFunc(e.text[:e.at], unicode.IsSpace)
	at := strings.LastIndexFunc(left, unicode.IsSpace)
	if at < 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(left[at:])
	return at + n
}

func (e *Editor) wordRight() int {
	right := strings.TrimLeftFunc(e.text[e.at:], unicode.IsSpace)
	if at := strings.IndexFunc(right, unicode.IsSpace); at >= 0 {
		right = right[at:]
	} else {
		right = ""
	}
	return len(e.text) - len(right)
}

// vertical moves to the line above or below, or through the history.
func (e *Editor) vertical(k Kind) bool {
	start, end := e.lineStart(e.at), e.lineEnd(e.at)
	switch column := width(e.text[start:e.at]); {
	case k == Up && start > 0:
		e.at = e.atColumn(e.lineStart(start-1), column)
	case k == Down && end < len(e.text):
		e.at = e.atColumn(end+1, column)
	case k == Up && e.place > 0:
		e.recall(e.place - 1)
	case k == Down && e.place < len(e.history):
		e.recall(e.place + 1)
	default:
		return false
	}
	return true
}

// atColumn returns the place in a line that is nearest to a column.
func (e *Editor) atColumn(start, column int) int {
	at := start
	for end := e.lineEnd(start); at < end && width(e.text[start:e.after(at)]) <= column; {
		at = e.after(at)
	}
	return at
}

func (e *Editor) recall(place int) {
	if e.place == len(e.history) {
		e.draft = e.text
	}
	e.place = place
	if place == len(e.history) {
		e.Set(e.draft)
	} else {
		e.Set(e.history[place])
	}
}

// shown is how a character looks: nothing that is typed or pasted acts on the terminal.
func shown(cluster string) string {
	if cluster == "\t" {
		return "    "
	}
	return plain.Flat(cluster)
}

func width(text string) int {
	n := 0
	for text != "" {
		c := firstCluster(text)
		n += ansi.StringWidth(shown(c))
		text = text[len(c):]
	}
	return n
}

// Rows returns the message as rows of at most columns, with prompt before the first and
// spaces before the others, and where the cursor is. If there are more than max rows, those
// around the cursor are returned.
func (e *Editor) Rows(prompt string, columns, most int) (rows []string, row, column int) {
	lead := ansi.StringWidth(prompt)
	indent := strings.Repeat(" ", lead)
	var b strings.Builder
	b.WriteString(prompt)
	used := lead
	next := func() {
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(indent)
		used = lead
	}
	for at := 0; ; {
		if at == e.at {
			row, column = len(rows), used
		}
		if at >= len(e.text) {
			break
		}
		c := firstCluster(e.text[at:])
		if c == "\n" {
			next()
			at++
			continue
		}
		look := shown(c)
		if n := ansi.StringWidth(look); used+n > columns-1 && used > lead {
			next()
			if at == e.at {
				row, column = len(rows), used
			}
			used += n
		} else {
			used += n
		}
		b.WriteString(look)
		at += len(c)
	}
	rows = append(rows, b.String())
	from := max(0, min(row-most/2, len(rows)-most))
	return slices.Clone(rows[from:min(from+most, len(rows))]), row - from, column
}
