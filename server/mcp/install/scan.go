package install

import (
	"bytes"
	"encoding/json"
)

// scanner finds positions in JSON with comments. It does not validate: the text was decoded
// before, and the result will be.
type scanner struct {
	text   []byte
	at     int
	depth  int
	failed bool
}

// maxDepth is how deep values may be in one another.
const maxDepth = 1000

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	s.failed = true
	return 0
}

// space skips space and comments.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			s.at++
		case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
			s.comment()
		default:
			return
		}
	}
}

// comment skips a comment. The end of a line is not part of it.
func (s *scanner) comment() {
	end, skip := "\n", 0
	if s.text[s.at+1] == '*' {
		end, skip = "*/", 2
		s.at += 2
	}
	if n := bytes.Index(s.text[s.at:], []byte(end)); n >= 0 {
		s.at += n + skip
		if skip == 0 && s.text[s.at-1] == '\r' {
			s.at--
		}
	} else {
		s.at = len(s.text)
	}
}

// object reads an object, or returns nil if there is none.
func (s *scanner) object() *object {
	if s.depth++; s.depth > maxDepth || s.peek() != '{' {
		s.failed = true
		return nil
	}
	o := &object{open: s.at}
	s.at++
	for s.space(); s.peek() == '"' && !s.failed; s.space() {
		m := member{start: s.at, comma: -1}
		s.string()
		_ = json.Unmarshal(s.text[m.start:s.at], &m.key) // it was decoded before
		s.space()
		s.at++ // the colon
		s.space()
		m.value = s.at
		s.value()
		m.end = s.at
		if s.space(); s.peek() == ',' {
			m.comma = s.at
			s.at++
		}
		o.members = append(o.members, m)
	}
	s.failed = s.failed || s.peek() != '}'
	s.at++
	s.depth--
	o.end = s.at
	return o
}

func (s *scanner) value() {
	switch s.peek() {
	case '{':
		s.object()
	case '[':
		if s.depth++; s.depth > maxDepth {
			s.failed = true
		}
		s.at++
		for s.space(); !s.failed && s.peek() != ']'; s.space() {
			s.value()
			if s.space(); s.peek() == ',' {
				s.at++
			}
		}
		s.at++
		s.depth--
	case '"':
		s.string()
	default:
		from := s.at
		for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n,]}/"), s.text[s.at]) < 0 {
			s.at++
		}
		s.failed = s.failed || s.at == from
	}
}

func (s *scanner) string() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.failed = true
}

// plainJSON blanks out comments, and commas before a closing bracket.
func plainJSON(text []byte) []byte {
	plain := bytes.Clone(text)
	s := &scanner{text: text}
	s.at = len(text) - len(bytes.TrimPrefix(text, bom))
	blank(plain[:s.at])
	comma := -1
	for s.at < len(text) {
		from := s.at
		if s.space(); s.at > from {
			blank(plain[from:s.at])
			continue
		}
		switch c := text[s.at]; c {
		case '"':
			s.string()
			comma = -1
			continue
		case ',':
			comma = s.at
		case '}', ']':
			if comma >= 0 {
				plain[comma] = ' '
			}
			comma = -1
		default:
			comma = -1
		}
		s.at++
	}
	return plain
}

func blank(text []byte) {
	for i := range text {
		if text[i] != '\n' && text[i] != '\r' {
			text[i] = ' '
		}
	}
}
