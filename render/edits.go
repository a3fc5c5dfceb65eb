package render

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// Edit is a change to a file that a tool call asks for.
type Edit struct {
	Path  string `json:"path"`
	To    string `json:"to,omitempty"`  // the path that the file moves to; "" if it stays
	Op    EditOp `json:"op"`            // change, write or delete
	All   bool   `json:"all,omitempty"` // every occurrence of the old text changes, not only one
	Hunks []Hunk `json:"hunks,omitempty"`
}

// EditOp is what an edit does with a file.
type EditOp = files.Op

// The kinds of edits.
const (
	Change = files.Edit   // a part of the file becomes another
	Write  = files.Write  // the file gets new content; what it had is not known
	Delete = files.Delete // the file is deleted
)

// Hunk is a run of changed lines with a few unchanged ones around it.
type Hunk struct {
	Heading string `json:"heading,omitempty"` // what the patch says about the place, such as a function's name; "" for nothing
	// Before and After are the numbers of its first line in the file, before and after the
	// change. A tool call does not say: they are 0 then.
	Before int        `json:"before,omitempty"`
	After  int        `json:"after,omitempty"`
	Lines  []DiffLine `json:"lines"`
}

// DiffLine is a line of a hunk, without its end. In JSON it is a string, as in a patch: Op, and
// then Text.
type DiffLine struct {
	Op   byte // '+' added, '-' removed, ' ' unchanged
	Text string
}

// MarshalText implements encoding.TextMarshaler.
func (l DiffLine) MarshalText() ([]byte, error) { return append([]byte{l.Op}, l.Text...), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *DiffLine) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return session.Invalidf("a line of a change begins with +, - or a space")
	}
	l.Op, l.Text = text[0], string(text[1:])
	return nil
}

// Counts returns how many lines an edit adds and removes.
func (e *Edit) Counts() (added, removed int) {
	for _, h := range e.Hunks {
		for _, line := range h.Lines {
			switch line.Op {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

// Edits returns the changes to files that a tool call asks for, or nil if it does something
// else: see files.Changes.
func Edits(t *session.ToolUseContent) []Edit {
	var edits []Edit
	for _, c := range files.Changes(t) {
		e := Edit{Path: c.Path, To: c.To, Op: c.Op, All: c.All}
		for _, piece := range c.Pieces {
			switch {
			case piece.Patch != nil:
				e.Hunks = append(e.Hunks, patchHunks(piece.Patch)...)
			case c.Op == Write:
				e.Hunks = append(e.Hunks, addedLines(piece.New)...)
			default:
				for _, h := range Diff(piece.Old, piece.New) {
					h.Before, h.After = 0, 0 // they are those of the piece
					e.Hunks = append(e.Hunks, h)
				}
			}
		}
		edits = append(edits, e)
	}
	return edits
}

// patchHunks reads the lines of a patch to one file.
func patchHunks(lines []string) []Hunk {
	var hunks []Hunk
	for _, line := range lines {
		if heading, ok := strings.CutPrefix(line, "@@"); ok {
			hunks = append(hunks, Hunk{Heading: strings.TrimSpace(heading)})
			continue
		}
		if len(hunks) == 0 {
			hunks = append(hunks, Hunk{})
		}
		l := DiffLine{Op: ' ', Text: line}
		if line != "" && strings.IndexByte(" +-", line[0]) >= 0 {
			l = DiffLine{Op: line[0], Text: line[1:]}
		}
		h := &hunks[len(hunks)-1]
		h.Lines = append(h.Lines, l)
	}
	return hunks
}

func addedLines(text string) []Hunk {
	h := Hunk{Lines: diffLines('+', text)}
	if len(h.Lines) == 0 {
		return nil
	}
	return []Hunk{h}
}

// diffLines are the lines of a text, all with one mark.
func diffLines(op byte, text string) []DiffLine {
	var lines []DiffLine
	for line := range strings.Lines(text) {
		lines = append(lines, DiffLine{op, withoutEnd(line)})
	}
	return lines
}

func withoutEnd(line string) string { return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") }

const (
	contextLines = 3
	// maxDiffed is the size of texts up to which lines are compared. Beyond that it takes
	// long, and the result is too long to read.
	maxDiffed = 512 << 10
)

// Diff returns how a text differs from another, line by line, with three unchanged
// lines around each change.
func Diff(before, after string) []Hunk {
	if before == after {
		return nil
	}
	if len(before)+len(after) > maxDiffed {
		return []Hunk{{Lines: append(diffLines('-', before), diffLines('+', after)...)}}
	}
	before, after = ended(before), ended(after)
	unified, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), contextLines)
	if err != nil { // cannot happen: the edits were made from this text
		return []Hunk{{Lines: append(diffLines('-', before), diffLines('+', after)...)}}
	}
	hunks := make([]Hunk, len(unified.Hunks))
	for i, h := range unified.Hunks {
		hunks[i].Before, hunks[i].After = h.FromLine, h.ToLine
		for _, line := range h.Lines {
			op := byte(' ')
			switch line.Kind {
			case udiff.Insert:
				op = '+'
			case udiff.Delete:
				op = '-'
			}
			hunks[i].Lines = append(hunks[i].Lines, DiffLine{op, withoutEnd(line.Content)})
		}
	}
	return hunks
}

// ended adds a line end to the last line. The texts of a replacement are parts of a file, and
// one that stops before a line end does not differ from one that includes it.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Rows returns all lines of an edit in order. A line with the mark '@' and the hunk's heading
// shows where lines of the file are left out, and where the patch names a place.
func (e *Edit) Rows() []DiffLine {
	var rows []DiffLine
	for i, h := range e.Hunks {
		if i > 0 || h.Heading != "" {
			rows = append(rows, DiffLine{'@', h.Heading})
		}
		rows = append(rows, h.Lines...)
	}
	return rows
}
