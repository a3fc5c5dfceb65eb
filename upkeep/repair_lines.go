package upkeep

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// lineClass is the class of a line in a session's file.
type lineClass int

const (
	lineBlank lineClass = iota
	lineHeader
	lineEntry
	lineDamaged
	lineLong // over the limit, so it cannot be judged and is left alone
)

// rawLine is a line, or the part of one from which an entry can be saved.
type rawLine struct {
	class      lineClass
	kind       session.EntryType // of the entry, if it shows
	pos, next  store.Pos
	id, parent string
	data       []byte         // for a header, and for what cannot be copied from the file unchanged
	record     *session.Entry // if it may name a continuation: see session.ContinuedTo
	glued      bool           // it shares its line with damage
	torn       bool           // its line end is missing
	moves      bool           // it moves the leaf to its parent
	sum        [sha256.Size]byte
}

// leaf returns the leaf after an entry.
func (l *rawLine) leaf() string {
	if l.moves {
		return l.parent
	}
	return l.id
}

// classify returns the class of a line. A damaged line may still have an entry at its end:
// if a line was torn, it had no line end, and the next line was joined to it.
func classify(line store.RawLine) []rawLine {
	data := bytes.TrimSpace(bytes.TrimPrefix(line.Data, []byte("\xef\xbb\xbf")))
	l := rawLine{pos: line.Pos, next: line.Next, torn: line.Torn}
	switch {
	case line.Cut && !line.Torn:
		l.class = lineLong
		return []rawLine{l}
	case len(data) == 0:
		return []rawLine{l}
	}
	if whole, ok := readLine(data); ok && !line.Cut {
		whole.pos, whole.next, whole.torn = l.pos, l.next, l.torn
		if whole.class == lineHeader || l.torn {
			whole.data = bytes.Clone(data)
		}
		return []rawLine{whole}
	}
	l.class = lineDamaged
	l.torn = l.torn && !store.IsLine(data) // otherwise the rest of the line is lost
	h, ok := rawjson.LenientHead(data)
	if l.kind = session.EntryType(h.Type); ok && !l.torn {
		l.id = string(h.ID)
	}
	if line.Cut {
		return []rawLine{l}
	}
	if at := gluedEntry(data); at > 0 {
		saved, _ := readLine(data[at:])
		saved.pos, saved.next = l.pos+store.Pos(at), l.next
		saved.data, saved.glued = bytes.Clone(data[at:]), true
		l.torn = false // the damage before it is torn, not the entry
		return []rawLine{l, saved}
	}
	return []rawLine{l}
}

var entryStart = []byte(`{"type":`)

// gluedEntry returns where the entry at the end of a damaged line begins, or 0 if
// there is none.
//
// A line may have thousands of places where an entry could begin, one for each block,
// and trying each up to the line's end would take quadratic time. But if reading from
// one place stops at a syntax error, it stops at the same byte for every object that is
// still open there, and an object that was closed before does not reach the end of the
// line. So the next place worth trying is at the error. It may be the very text that
// caused it, because a torn string swallows the first two bytes.
func gluedEntry(data []byte) int {
	for at := 1; at < len(data); {
		next := bytes.Index(data[at:], entryStart)
		if next < 0 {
			return 0
		}
		at += next
		if isEntry(data[at:]) {
			return at
		}
		var syntax *json.SyntaxError
		err := json.Unmarshal(data[at:], &json.RawMessage{})
		switch {
		case !errors.As(err, &syntax):
			return 0 // it is complete, and not an entry
		case int(syntax.Offset) == len(data)-at:
			if last := at + lastObject(data[at:]); last > at && isEntry(data[last:]) {
				return last
			}
			return 0
		}
		at += max(1, int(syntax.Offset)-3)
	}
	return 0
}

// lastObject returns where the object at the end of an unfinished text begins, or 0
// if the text does not end with one.
func lastObject(data []byte) int {
	var open []int
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			open = append(open, i)
		case c == '}' && len(open) > 0:
			if i == len(data)-1 {
				return open[len(open)-1]
			}
			open = open[:len(open)-1]
		}
	}
	return 0
}

func isEntry(data []byte) bool {
	l, ok := readLine(data)
	return ok && l.class == lineEntry && bytes.HasPrefix(data, entryStart)
}

// readLine reads a line that is whole.
func readLine(data []byte) (rawLine, bool) {
	h, ok := rawjson.ScanHead(data)
	if !ok || !json.Valid(data) {
		return rawLine{}, false
	}
	l := rawLine{class: lineEntry, id: string(h.ID), parent: string(h.Parent), sum: sha256.Sum256(data)}
	l.kind = session.EntryType(h.Type)
	l.moves = l.kind == session.TypeLeaf
	if string(h.Type) == string(session.TypeSession) {
		l.class = lineHeader
		return l, json.Unmarshal(data, &session.Header{}) == nil
	}
	if bytes.Contains(data, []byte(session.CustomContinuedTo)) {
		var e session.Entry
		if e.UnmarshalJSON(bytes.Clone(data)) == nil {
			l.record = &e
		}
	}
	return l, l.id != ""
}
