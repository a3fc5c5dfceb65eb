// Package line edits what a person types: one message, which may have several lines. It
// reads keys and says how its rows look. It does not draw, and knows no terminal.
package line

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says which key was pressed.
type Kind int

// The keys, by what they do.
const (
	Unknown      Kind = iota
	Text              // a character, or several that came together
	Paste             // text from the clipboard, as a whole
	Enter             // ends the message
	NewLine           // Alt-Enter, Shift-Enter, Ctrl-J
	Tab               //
	Backspace         //
	Delete            //
	Left              //
	Right             //
	Up                //
	Down              //
	Home              //
	End               //
	WordLeft          // Alt-Left, Ctrl-Left, Alt-B
	WordRight         // Alt-Right, Ctrl-Right, Alt-F
	CutWord           // Ctrl-W, Alt-Backspace
	CutWordRight      // Alt-D, Alt-Delete
	CutRight          // Ctrl-K: to the end of the line
	CutLeft           // Ctrl-U: to the beginning of the line
	Yank              // Ctrl-Y: what was cut last
	Escape            // Esc
	Interrupt         // Ctrl-C
	EOF               // Ctrl-D
	Wipe              // Ctrl-L
	Suspend           // Ctrl-Z
	Search            // Ctrl-R
	Edit              // Ctrl-G
)

// Key is a key that was pressed.
type Key struct {
	Kind Kind
	Text string // of Text and Paste
}

// controls are the keys that send a single byte.
var controls = map[byte]Kind{
	'\r': Enter, '\n': NewLine, '\t': Tab, 0x7f: Backspace, 0x08: Backspace,
	0x01: Home, 0x02: Left, 0x03: Interrupt, 0x04: EOF, 0x05: End, 0x06: Right, 0x07: Edit, 0x0b: CutRight, 0x0c: Wipe,
	0x0e: Down, 0x10: Up, 0x12: Search, 0x15: CutLeft, 0x17: CutWord, 0x19: Yank, 0x1a: Suspend,
}

// sequences are the keys that send more, without the escape.
var sequences = map[string]Kind{
	"[A": Up, "[B": Down, "[C": Right, "[D": Left, "[H": Home, "[F": End,
	"OA": Up, "OB": Down, "OC": Right, "OD": Left, "OH": Home, "OF": End,
	"[1~": Home, "[7~": Home, "[4~": End, "[8~": End, "[3~": Delete,
	"[1;3C": WordRight, "[1;5C": WordRight, "[1;3D": WordLeft, "[1;5D": WordLeft,
	"b": WordLeft, "f": WordRight, "d": CutWordRight, "[3;3~": CutWordRight, "\x7f": CutWord, "\r": NewLine, "\n": NewLine,
	"[13;2u": NewLine, "[13;3u": NewLine, "[27;2;13~": NewLine, "[27;3;13~": NewLine,
}

const (
	pasteBegin = "[200~"
	pasteEnd   = "\x1b[201~"
)

// Decoder turns what a terminal sends into keys. A sequence may arrive in pieces. The
// zero value is ready.
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
	if kind, ok := controls[b[0]]; ok {
		return Key{Kind: kind}, 1
	}
	if b[0] < ' ' {
		return Key{}, 1
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
	name := string(b[1:n])
	if name == pasteBegin {
		d.pasting = true
		return Key{}, n
	}
	return Key{Kind: sequences[name]}, n
}
