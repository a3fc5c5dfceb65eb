// Package shape finds out from its beginning what JSON looks like: which members it has, and
// which short texts they hold. The text may be cut off anywhere, and may be several values
// one after the other, as in a file of lines.
package shape

import (
	"bytes"
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
	s := &Shape{paths: make(map[string]bool), texts: make(map[string]bool)}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	var r rawjson.Reader
	for r.Reset(head); r.Kind() != 0 && !s.cut; r.Reset(head) {
		if s.cut = !s.add(&r, "", 0); !s.cut {
			head = head[r.Mark():]
		}
	}
	return s
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

// add reads a value and reports whether it was whole. It stops without an error where the JSON ends
// or is invalid.
func (s *Shape) add(r *rawjson.Reader, path string, depth int) bool {
	if depth > maxDepth {
		return r.Raw() != nil
	}
	switch r.Kind() {
	case '{':
		return s.object(r, path, depth)
	case '[':
		path += "[]"
		s.paths[path] = true
		for more := r.Open('['); more; more = r.More(']') {
			if !s.add(r, path, depth+1) {
				return false
			}
		}
		return r.Mark() >= 0
	case '"':
		s.paths[path+":text"] = true
		raw := r.Raw()
		if len(raw) > 0 && len(raw) <= maxText {
			text, _ := rawjson.String(raw)
			s.texts[path+"\x00"+text] = true
		}
		return raw != nil
	}
	return r.Raw() != nil
}

func (s *Shape) object(r *rawjson.Reader, path string, depth int) bool {
	if path != "" {
		path += "."
	}
	for more := r.Open('{'); more; more = r.More('}') {
		member := path + string(r.Key())
		if r.Mark() < 0 || len(s.paths) >= maxPaths {
			return false
		}
		s.paths[member] = true
		if !s.add(r, member, depth+1) {
			return false
		}
	}
	return r.Mark() >= 0
}
