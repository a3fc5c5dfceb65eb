// Package line edits what a person types: one message, which may have several lines. It
// reads keys and says how its rows look. It does not draw, and knows no terminal.
package line

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// Kind says which key was pressed.
type Kind int

// The keys, by what they do. strokes says which they are.
const (
	Unknown Kind = iota
	Text         // a character, or several that came together
	Paste        // text from the clipboard, as a whole
	Enter        // ends the message
	NewLine
	Tab
	Backspace
	Delete
	Left
	Right
	Up
	Down
	Home
	End
	WordLeft
	WordRight
	CutWord
	CutWordRight
	CutRight // to the end of the line
	CutLeft  // to the beginning of the line
	Yank     // what was cut last
	Escape
	Interrupt
	EOF
	Wipe
	Suspend
	Search
	Edit
)

// Key is a key that was pressed.
type Key struct {
	Kind Kind
	Text string // of Text and Paste
}

// strokes are the keys by the names that ultraviolet and bubbletea give them.
var strokes = map[string]Kind{
	"enter": Enter, "alt+enter": NewLine, "shift+enter": NewLine, "ctrl+j": NewLine, "ctrl+alt+j": NewLine, "tab": Tab,
	"left": Left, "ctrl+b": Left, "right": Right, "ctrl+f": Right, "up": Up, "ctrl+p": Up, "down": Down, "ctrl+n": Down,
	"home": Home, "ctrl+a": Home, "end": End, "ctrl+e": End,
	"alt+left": WordLeft, "ctrl+left": WordLeft, "alt+b": WordLeft, "alt+right": WordRight, "ctrl+right": WordRight, "alt+f": WordRight,
	"backspace": Backspace, "ctrl+h": Backspace, "delete": Delete,
	"alt+backspace": CutWord, "ctrl+backspace": CutWord, "ctrl+w": CutWord,
	"alt+delete": CutWordRight, "ctrl+delete": CutWordRight, "alt+d": CutWordRight,
	"ctrl+k": CutRight, "ctrl+u": CutLeft, "ctrl+y": Yank,
	"esc": Escape, "ctrl+c": Interrupt, "ctrl+d": EOF, "ctrl+l": Wipe, "ctrl+z": Suspend, "ctrl+r": Search, "ctrl+g": Edit,
}

// Pressed returns the key with the name of a stroke, or the text that it types.
func Pressed(stroke, text string) Key {
	if text != "" {
		return Key{Text, text}
	}
	return Key{Kind: strokes[stroke]}
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// Decoder turns what a terminal sends into keys. A sequence may arrive in pieces. The
// zero value is ready.
//
// ultraviolet says what a sequence means, and the decoder where it ends. ultraviolet's own reader
// gives up on a sequence after a while, in a paste as well: if the end of a paste arrives in two
// pieces, as it may over a slow connection, that reader never finds it.
type Decoder struct {
	pending []byte
	pasting bool
}

// Add takes the next bytes and returns the keys that they complete.
func (d *Decoder) Add(b []byte) []Key {
	d.pending = append(d.pending, b...)
	var keys []Key
	for len(d.pending) > 0 {
		k, n := d.next()
		if n == 0 {
			break // more is needed
		}
		d.pending = d.pending[n:]
		if last := len(keys) - 1; k.Kind == Text && last >= 0 && keys[last].Kind == Text {
			keys[last].Text += k.Text
		} else if k.Kind != Unknown {
			keys = append(keys, k)
		}
	}
	return keys
}

// EscapeTime is how long after an escape the rest of its sequence may take. Terminals send
// a sequence at once.
const EscapeTime = 50 * time.Millisecond

// Waits reports whether an escape waits for the rest of its sequence.
func (d *Decoder) Waits() bool { return !d.pasting && len(d.pending) > 0 && d.pending[0] == 0x1b }

// Idle says that nothing came for EscapeTime: an escape was the key itself. It returns the
// keys that this completes.
func (d *Decoder) Idle() []Key {
	if !d.Waits() {
		return nil
	}
	isKey := len(d.pending) == 1
	d.pending = nil // or it was Alt with a bracket, which means nothing here
	if isKey {
		return []Key{{Kind: Escape}}
	}
	return nil
}

// next returns the key at the beginning of what is pending and its length: 0 if it is not
// complete.
func (d *Decoder) next() (Key, int) {
	b := d.pending
	if d.pasting {
		at := bytes.Index(b, []byte(pasteEnd))
		if at < 0 {
			return Key{}, 0
		}
		d.pasting = false
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(b[:at]))
		return Key{Paste, strings.ToValidUTF8(text, "\uFFFD")}, at + len(pasteEnd)
	}
	if b[0] == 0x1b {
		return d.escape(b)
	}
	if b[0] < ' ' || b[0] == 0x7f {
		return decode(b[:1]), 1
	}
	if !utf8.FullRune(b) {
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 {
		return Key{}, 1
	}
	return Key{Text, string(b[:n])}, n
}

// escape reads a sequence. An escape alone waits for what follows, as long as Idle is not
// called: terminals send Alt with a key as an escape and the key.
func (d *Decoder) escape(b []byte) (Key, int) {
	if len(b) < 2 {
		return Key{}, 0
	}
	n := 2
	switch b[1] {
	case '[':
		for n < len(b) && b[n] >= 0x20 && b[n] < 0x40 {
			n++
		}
		if n == len(b) {
			return Key{}, 0
		}
		n++
	case 'O':
		if len(b) < 3 {
			return Key{}, 0
		}
		n = 3
	case 0x1b:
		return Key{Kind: Escape}, 1
	}
	if string(b[:n]) == pasteBegin {
		d.pasting = true
		return Key{}, n
	}
	return decode(b[:n]), n
}

// decode returns the key of a whole sequence.
func decode(sequence []byte) Key {
	var d uv.EventDecoder
	if n, e := d.Decode(sequence); n == len(sequence) {
		if k, ok := e.(uv.KeyPressEvent); ok {
			return Pressed(k.Keystroke(), k.Text)
		}
	}
	return Key{}
}
