package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/rawjson"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// lineClass is what a line of a session's file is.
type lineClass int

const (
	lineBlank lineClass = iota
	lineHeader
	lineEntry
	lineDamaged
	lineLong // over the limit: not to be judged, and left alone
)

// rawLine is a line, or a part of one from which an entry can be saved.
type rawLine struct {
	class      lineClass
	pos, next  store.Pos
	id, parent string
	data       []byte // of a header, and of what cannot be copied as it stands in the file
	glued      bool   // it stands in one line with damage
	torn       bool   // its line end is missing
	moves      bool   // it moves the leaf to its parent
	sum        [sha256.Size]byte
}

// leaf is what the leaf is after an entry.
func (l *rawLine) leaf() string {
	if l.moves {
		return l.parent
	}
	return l.id
}

// classify says what a line is. One with damage may yet have an entry at its
// end: what was torn had no line end, and the next line was joined to it.
func classify(line file.RawLine) []rawLine {
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
	if h, ok := rawjson.LenientHead(data); ok && !line.Torn {
		l.id = string(h.ID)
	}
	if line.Cut {
		return []rawLine{l}
	}
	for at := 1; ; at++ {
		next := bytes.Index(data[at:], []byte(`{"type":`))
		if next < 0 {
			return []rawLine{l}
		}
		at += next
		if saved, ok := readLine(data[at:]); ok && saved.class == lineEntry {
			saved.pos, saved.next = l.pos+store.Pos(at), l.next
			saved.data, saved.glued = bytes.Clone(data[at:]), true
			l.torn = false // it is the damage before it
			return []rawLine{l, saved}
		}
	}
}

// readLine reads a line that is whole.
func readLine(data []byte) (rawLine, bool) {
	h, ok := rawjson.ScanHead(data)
	if !ok || !json.Valid(data) {
		return rawLine{}, false
	}
	l := rawLine{class: lineEntry, id: string(h.ID), parent: string(h.Parent), sum: sha256.Sum256(data)}
	l.moves = string(h.Type) == string(session.TypeLeaf)
	if string(h.Type) == string(session.TypeSession) {
		l.class = lineHeader
		return l, json.Unmarshal(data, &session.Header{}) == nil
	}
	return l, l.id != ""
}
