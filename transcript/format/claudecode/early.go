package claudecode

import (
	"bytes"

	"github.com/coppice-dev/coppice/transcript"
)

// # Lines that come before their parents
//
// Several threads write lines, and the result of a quick tool may be in the file before
// its call. The tree says what comes first: such a line waits for its parent, and what
// follows the line waits with it. Parents may also be missing for good, because the
// file was cut. So nothing waits long; after that, the order of the file counts.

// earlyLine is a line that waits for its parent.
type earlyLine struct {
	text   transcript.Line
	id     key
	parent key
}

// maxEarly is how many lines wait.
const maxEarly = 64

// isEarly reports whether a line has to wait for its parent.
func (r *reader) isEarly(l *line) bool {
	if l.parent == nil || r.main == nil || len(r.main.nodes) == 0 {
		return false
	}
	parent := keyOf(l.parent)
	if _, ok := r.lines[parent]; ok {
		return false
	}
	for i := range r.early {
		if r.early[i].id == parent {
			return true
		}
	}
	return string(l.typ) == "user" && bytes.Contains(l.message, []byte(`"tool_result"`))
}

// wait keeps a line until its parent has come, or for some lines.
func (r *reader) wait(l *line, text *transcript.Line) error {
	kept := *text
	kept.Data = bytes.Clone(text.Data)
	r.early = append(r.early, earlyLine{kept, keyOf(l.uuid), keyOf(l.parent)})
	if len(r.early) > maxEarly {
		return r.admit(true)
	}
	return nil
}

// admit takes in the lines whose parents have come, or all that wait.
func (r *reader) admit(all bool) error {
	for i := 0; i < len(r.early); i++ {
		e := r.early[i]
		if _, ok := r.lines[e.parent]; !ok && !all {
			continue
		}
		r.early = append(r.early[:i:i], r.early[i+1:]...)
		var l line
		if err := l.parse(e.text.Data); err != nil {
			return err
		}
		if err := r.addLine(&l, &e.text); err != nil {
			return err
		}
		i = -1 // others may wait for this one
	}
	return nil
}
