// Package shape finds out from its beginning what JSON looks like: which members it has, and
// which short texts they hold. The text may be cut off anywhere, and may be several values
// one after the other, as in a file of lines.
package shape

import (
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/transcript"
)

// Shape is the members that were seen. A path names a member from the outside in:
// "messages[].role" is the role of an element of messages, "[].from" is a member
// of an element of an array that is the whole text. "model:text" is a model that is a text.
type Shape struct {
	paths map[string]bool
	texts map[string]bool // path, NUL, text
	cut   bool
}

const (
	maxDepth = 8    // deeper members are not looked at
	maxPaths = 4096 // further members are not remembered
	maxText  = 64   // longer texts are not remembered
)

// OfFile looks at the head of a file, once.
func OfFile(f *transcript.File) *Shape {
	return transcript.Seen(f, func(f *transcript.File) *Shape { return Of(f.Head()) })
}

// Of looks at the beginning of a text.
func Of(head []byte) *Shape {
	s := &scanner{text: head, shape: Shape{paths: make(map[string]bool), texts: make(map[string]bool)}}
	if len(head) >= 3 && string(head[:3]) == "\xef\xbb\xbf" {
		s.at = 3
	}
	for s.next() != 0 && !s.shape.cut {
		s.shape.cut = !s.value("", 0)
	}
	return &s.shape
}

// IsCut reports whether the JSON ended in the middle of a value, so that there may be members
// that were not seen.
func (s *Shape) IsCut() bool { return s.cut }

// Has reports whether one of the paths was seen.
func (s *Shape) Has(paths ...string) bool {
	for _, path := range paths {
		if s.paths[path] {
			return true
		}
	}
	return false
}

// Is reports whether one of the texts was seen at a path.
func (s *Shape) Is(path string, texts ...string) bool {
	for _, text := range texts {
		if s.texts[path+"\x00"+text] {
			return true
		}
	}
	return false
}

// Begins reports whether a text with that beginning was seen at a path.
func (s *Shape) Begins(path, beginning string) bool {
	for seen := range s.texts {
		if strings.HasPrefix(seen, path+"\x00"+beginning) {
			return true
		}
	}
	return false
}

// scanner walks over JSON, and stops without an error where the JSON ends or is invalid.
type scanner struct {
	text  []byte
	at    int
	shape Shape
}

// next returns the next byte that is not white space, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value walks over a value and reports whether it was whole.
func (s *scanner) value(path string, depth int) bool {
	if depth > maxDepth {
		return s.skip()
	}
	switch s.next() {
	case 0:
		return false
	case '{':
		return s.object(path, depth)
	case '[':
		return s.array(path, depth)
	case '"':
		s.shape.paths[path+":text"] = true
		from := s.at
		if !s.skip() {
			return false
		}
		if s.at-from <= maxText {
			text, _ := rawjson.String(s.text[from:s.at])
			s.shape.texts[path+"\x00"+text] = true
		}
		return true
	}
	return s.skip()
}

// skip passes over a value without looking.
func (s *scanner) skip() bool {
	end := rawjson.Skip(s.text, s.at)
	if end < 0 {
		s.at = len(s.text)
		return false
	}
	s.at = end
	return true
}

func (s *scanner) object(path string, depth int) bool {
	s.at++
	if path != "" {
		path += "."
	}
	for {
		switch s.next() {
		case '}':
			s.at++
			return true
		case ',':
			s.at++
			continue
		case '"':
		default:
			return false
		}
		from := s.at
		if !s.skip() {
			return false
		}
		name, _ := rawjson.String(s.text[from:s.at])
		if s.next() != ':' {
			return false
		}
		s.at++
		member := path + name
		if len(s.shape.paths) >= maxPaths {
			return false
		}
		s.shape.paths[member] = true
		if !s.value(member, depth+1) {
			return false
		}
	}
}

func (s *scanner) array(path string, depth int) bool {
	s.at++
	path += "[]"
	s.shape.paths[path] = true
	for {
		switch s.next() {
		case ']':
			s.at++
			return true
		case ',':
			s.at++
			continue
		}
		if !s.value(path, depth+1) {
			return false
		}
	}
}
