package render

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/coppice-dev/coppice/session"
)

// Edit is a change to a file that a tool call asks for.
type Edit struct {
	Path  string
	To    string // the path that the file moves to; "" if it stays
	Op    EditOp
	All   bool // every occurrence of the old text changes, not only one
	Hunks []Hunk
}

// EditOp is what an edit does with a file.
type EditOp string

// The kinds of edits.
const (
	Change EditOp = "change" // a part of the file becomes another
	Write  EditOp = "write"  // the file gets new content; what it had is not known
	Delete EditOp = "delete" // the file is deleted
)

// Hunk is a run of changed lines with a few unchanged ones around it. A tool call
// does not say at which line of the file it begins.
type Hunk struct {
	Heading string // what the patch says about the place, such as a function's name; "" for nothing
	Lines   []DiffLine
}

// DiffLine is a line of a hunk, without its end.
type DiffLine struct {
	Op   byte // '+' added, '-' removed, ' ' unchanged
	Text string
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
// else. It recognises a call by its arguments: agents give the same tool different names, but
// nearly the same arguments.
func Edits(t *session.ToolUseContent) []Edit {
	if edits := patched(t); edits != nil {
		return edits
	}
	path := firstString(t.Input, pathKeys...)
	if list, ok := t.Input["edits"].([]any); ok {
		return listedEdits(path, list)
	}
	if path == "" {
		return nil
	}
	if e, ok := replacement(path, t.Input); ok {
		return []Edit{e}
	}
	if text, ok := written(t); ok {
		return []Edit{{Path: path, Op: Write, Hunks: addedLines(text)}}
	}
	return nil
}

var pathKeys = []string{"file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filename"}

// replacedKeys are the names of the old text and of the new one.
var replacedKeys = [][2]string{
	{"old_string", "new_string"}, {"oldString", "newString"}, {"oldText", "newText"}, {"old_str", "new_str"}, {"old", "new"},
}

var contentKeys = []string{"content", "contents", "file_text", "new_source"}

// firstString returns the first of some arguments that is a text.
func firstString(input map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, ok := input[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// listedEdits returns several changes in one call, to one file or several.
func listedEdits(path string, list []any) []Edit {
	var edits []Edit
	for _, item := range list {
		input, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		at := firstString(input, pathKeys...)
		if at == "" {
			at = path
		}
		e, ok := replacement(at, input)
		if !ok || at == "" {
			return nil
		}
		if n := len(edits); n > 0 && edits[n-1].Path == at {
			edits[n-1].Hunks = append(edits[n-1].Hunks, e.Hunks...)
			continue
		}
		edits = append(edits, e)
	}
	return edits
}

func replacement(path string, input map[string]any) (Edit, bool) {
	for _, keys := range replacedKeys {
		before, isOld := input[keys[0]].(string)
		after, isNew := input[keys[1]].(string)
		if !isOld || !isNew {
			continue
		}
		e := Edit{Path: path, Op: Change, Hunks: Diff(before, after)}
		for _, key := range []string{"replace_all", "replaceAll"} {
			if all, _ := input[key].(bool); all {
				e.All = true
			}
		}
		return e, true
	}
	return Edit{}, false
}

// written returns the whole content that a call gives a file. Other tools have a path and a
// content too, so the name of the tool counts here.
func written(t *session.ToolUseContent) (string, bool) {
	name := strings.ToLower(t.Name)
	isWriter := strings.Contains(name, "write") || strings.Contains(name, "create") || strings.Contains(name, "edit")
	for _, key := range contentKeys {
		if text, ok := t.Input[key].(string); ok && isWriter {
			return text, true
		}
	}
	return "", false
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
	// long, and nobody reads the result.
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
