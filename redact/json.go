package redact

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// SyntaxError says where bytes stop being JSON.
type SyntaxError struct{ Offset int }

func (e *SyntaxError) Error() string { return fmt.Sprintf("not JSON at byte %d", e.Offset) }

// JSON replaces the secrets in the strings of a JSON value and in the names of its
// members. All other bytes stay as they are; without findings, it returns what it was
// given. If the value is not JSON, it returns a *SyntaxError.
func JSON(value []byte) ([]byte, []Finding, error) { return new(Scanner).JSON(value) }

// JSON is the function JSON.
func (s *Scanner) JSON(value []byte) ([]byte, []Finding, error) {
	var found []Finding
	var out []byte
	done := 0
	err := walk(value, func(w *walker, start, end int, isName bool) {
		at := offsets{body: value[start:end]}
		for _, f := range s.inString(w, at.body, isName) {
			found = append(found, f)
			from := start + at.raw(f.Start)
			to := start + at.raw(f.End)
			out = append(out, value[done:from]...)
			out = append(out, s.replacement(f.Kind, to-from)...)
			done = to
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return value, nil, nil
	}
	return append(out, value[done:]...), found, nil
}

// Bytes replaces the secrets in what may be JSON; if it is not, it is treated as text.
func (s *Scanner) Bytes(data []byte) ([]byte, []Finding) {
	if out, found, err := s.JSON(data); err == nil {
		return out, found
	}
	found := s.Find(data)
	if len(found) == 0 {
		return data, nil
	}
	return s.replace(data, found), found
}

// Bytes replaces the secrets in what may be JSON; if it is not, it is treated as text.
func Bytes(data []byte) ([]byte, []Finding) { return new(Scanner).Bytes(data) }

// Strings calls visit with the path and text of each string of a JSON value, except the
// names of members. The text is valid only during the call.
func Strings(value []byte, visit func(path string, text []byte)) error {
	var scratch []byte
	return walk(value, func(w *walker, start, end int, isName bool) {
		if !isName {
			visit(w.path(), decode(value[start:end], &scratch))
		}
	})
}

// AllStrings is Strings with the names of members and without paths.
func AllStrings(value []byte, visit func(text []byte)) error {
	var scratch []byte
	return walk(value, func(_ *walker, start, end int, _ bool) { visit(decode(value[start:end], &scratch)) })
}

// inString finds the secrets in a string, given as it is between its quotes.
func (s *Scanner) inString(w *walker, body []byte, isName bool) []Finding {
	name := ""
	if !isName {
		name = w.name()
	}
	if slices.Contains(opaque, name) {
		return nil
	}
	text := decode(body, &w.scratch)
	found := s.find(name, text)
	if len(found) == 0 {
		return nil
	}
	if s.Keep != nil && s.Keep(w.path()) {
		return nil
	}
	s.report(text, found)
	path := s.cleanPath(w)
	for i := range found {
		found[i].Path = path
	}
	return found
}

// opaque are the names of members that only the provider can read, and needs back unchanged.
var opaque = []string{
	"signature", "redacted", "encrypted_content", "thoughtSignature", "thought_signature", "thinkingSignature", "textSignature",
	"reasoning_opaque", "reasoning_encrypted",
}

// walker walks through a JSON value and knows where it is. It is not the reader of
// internal/rawjson, which is strict: a secret behind an escape must be found, too, if its
// string, or another one beside it, has an escape or a control character that JSON forbids.
type walker struct {
	b       []byte
	i       int
	steps   []step
	each    func(w *walker, start, end int, isName bool)
	scratch []byte
}

// step is one level of a path.
type step struct {
	name  []byte // of the current member: the bytes between its quotes
	shown []byte // the name in a path; nil until it is needed
	clean []byte // that without the secrets in it; nil until it is needed
	plain bool   // shown is the name itself
	index int    // of the current element
	array bool
}

// maxDepth is how deep values may be nested: as deep as encoding/json goes.
const maxDepth = 10_000

// walk calls each with the place of every string, between its quotes.
func walk(b []byte, each func(w *walker, start, end int, isName bool)) error {
	w := &walker{b: b, each: each}
	if !w.value() {
		return &SyntaxError{min(w.i, len(b))}
	}
	if w.space(); w.i < len(b) {
		return &SyntaxError{w.i}
	}
	return nil
}

func (w *walker) space() {
	for w.i < len(w.b) && (w.b[w.i] == ' ' || w.b[w.i] == '\n' || w.b[w.i] == '\t' || w.b[w.i] == '\r') {
		w.i++
	}
}

// next passes over a byte if it is the wanted one.
func (w *walker) next(c byte) bool {
	w.space()
	if w.i < len(w.b) && w.b[w.i] == c {
		w.i++
		return true
	}
	return false
}

func (w *walker) value() bool {
	w.space()
	if w.i >= len(w.b) || len(w.steps) > maxDepth {
		return false
	}
	switch w.b[w.i] {
	case '{':
		w.i++
		return w.members()
	case '[':
		w.i++
		return w.elements()
	case '"':
		start, end := w.str()
		if end < 0 {
			return false
		}
		w.each(w, start, end, false)
		return true
	}
	return w.scalar()
}

func (w *walker) members() bool {
	if w.next('}') {
		return true
	}
	w.steps = append(w.steps, step{})
	at := len(w.steps) - 1
	for {
		if w.space(); w.i >= len(w.b) || w.b[w.i] != '"' {
			return false
		}
		start, end := w.str()
		if end < 0 {
			return false
		}
		w.steps[at] = step{name: w.b[start:end]}
		w.each(w, start, end, true)
		if !w.next(':') || !w.value() {
			return false
		}
		if !w.next(',') {
			break
		}
	}
	w.steps = w.steps[:at]
	return w.next('}')
}

func (w *walker) elements() bool {
	if w.next(']') {
		return true
	}
	at := len(w.steps)
	for index := 0; ; index++ {
		w.steps = append(w.steps[:at], step{index: index, array: true})
		if !w.value() {
			return false
		}
		if !w.next(',') {
			break
		}
	}
	w.steps = w.steps[:at]
	return w.next(']')
}

// str passes over a string and returns where it is between its quotes.
func (w *walker) str() (start, end int) {
	start = w.i + 1
	for at := start; ; {
		n := bytes.IndexByte(w.b[at:], '"')
		if n < 0 {
			w.i = len(w.b)
			return start, -1
		}
		at += n
		slashes := 0
		for at-1-slashes >= start && w.b[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			w.i = at + 1
			return start, at
		}
		at++
	}
}

// scalar passes over a number, true, false or null.
func (w *walker) scalar() bool {
	from := w.i
	for w.i < len(w.b) && (letterDigits[w.b[w.i]] || w.b[w.i] == '-' || w.b[w.i] == '+' || w.b[w.i] == '.') {
		w.i++
	}
	switch text := w.b[from:w.i]; {
	case len(text) == 0:
		return false
	case text[0] == '-' || digits[text[0]]:
		return numberBytes.has(text) // -ghp_… is a line of a patch
	default:
		return string(text) == "true" || string(text) == "false" || string(text) == "null"
	}
}

// name returns the name of the current member.
func (w *walker) name() string {
	if len(w.steps) == 0 || w.steps[len(w.steps)-1].array {
		return ""
	}
	var scratch []byte
	return string(decode(w.steps[len(w.steps)-1].name, &scratch))
}

// Limits on what a path shows: a hostile value may have names as long as the value, or
// thousands of levels, around thousands of strings.
const (
	maxPathSteps = 32 // half of them from the beginning, half from the end
	maxPathName  = 256
)

// path returns where the walker is: members are joined by dots, elements have
// their index in brackets. What is too long is replaced by an ellipsis.
func (w *walker) path() string { return w.join((*step).text) }

// cleanPath is path without the secrets in names, spared or not. Each name is searched once,
// however many strings are below it.
func (s *Scanner) cleanPath(w *walker) string {
	all := *s
	all.Spare = nil
	return w.join(func(st *step) []byte {
		if st.clean == nil {
			text := st.text()
			st.clean = new(Scanner).replace(text, all.find("", text))
		}
		return st.clean
	})
}

func (w *walker) join(text func(*step) []byte) string {
	var out []byte
	for i := 0; i < len(w.steps); i++ {
		if left := len(w.steps) - maxPathSteps; left > 0 && i == maxPathSteps/2 {
			out = append(out, "[…]"...)
			i += left
		}
		st := &w.steps[i]
		if st.array {
			out = append(strconv.AppendInt(append(out, '['), int64(st.index), 10), ']')
			continue
		}
		name := text(st)
		if len(out) > 0 && st.plain {
			out = append(out, '.')
		}
		if len(name) > maxPathName {
			name = append(bytes.ToValidUTF8(name[:maxPathName], nil), "…"...)
		}
		out = append(out, name...)
	}
	return string(out)
}

// text returns a name as it appears in a path: in brackets and quotes if it is odd. The
// result is kept, because there may be many strings below a long name.
func (st *step) text() []byte {
	if st.shown == nil {
		var scratch []byte
		st.shown = slices.Clone(decode(st.name, &scratch))
		st.plain = len(st.shown) > 0 && wordDash.has(st.shown)
		if !st.plain {
			st.shown = append(strconv.AppendQuote([]byte{'['}, string(st.shown)), ']')
		}
	}
	return st.shown
}
