package files

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Change is a change to a file that a call asks for.
type Change struct {
	Path   string
	To     string // the path that the file moves to; "" if it stays
	Op     Op
	All    bool // every occurrence of the old text changes, not only one
	Pieces []Piece
}

// Op is what a change does with a file.
type Op string

// The kinds of changes.
const (
	Edit   Op = "change" // a part of the file becomes another
	Write  Op = "write"  // the file gets new content; what it had is not known
	Delete Op = "delete" // the file is deleted
)

// Piece is one place of a change: an old text and the new one, or the lines of a patch.
type Piece struct {
	Old, New string
	Patch    []string
}

// replacedKeys are the names of the old text and of the new one.
var replacedKeys = [][2]string{
	{"old_string", "new_string"}, {"oldString", "newString"}, {"oldText", "newText"}, {"old_str", "new_str"}, {"old", "new"},
}

var contentKeys = []string{"content", "contents", "file_text", "new_source"}

// Changes returns the changes to files that a call describes in full, or nil if it does
// something else. It recognises a call by its arguments.
func Changes(t *session.ToolUseContent) []Change {
	if changes := patched(t); changes != nil {
		return changes
	}
	path := Text(t.Input, pathKeys...)
	if list, ok := t.Input["edits"].([]any); ok {
		return listed(path, list)
	}
	if path == "" {
		return nil
	}
	if c, ok := replacement(path, t.Input); ok {
		return []Change{c}
	}
	if text, ok := written(t); ok {
		return []Change{{Path: path, Op: Write, Pieces: []Piece{{New: text}}}}
	}
	return nil
}

// listed returns several changes in one call, to one file or several.
func listed(path string, list []any) []Change {
	var changes []Change
	for _, item := range list {
		input, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		at := Text(input, pathKeys...)
		if at == "" {
			at = path
		}
		c, ok := replacement(at, input)
		if !ok || at == "" {
			return nil
		}
		if n := len(changes); n > 0 && changes[n-1].Path == at {
			changes[n-1].Pieces = append(changes[n-1].Pieces, c.Pieces...)
			continue
		}
		changes = append(changes, c)
	}
	return changes
}

func replacement(path string, input map[string]any) (Change, bool) {
	for _, keys := range replacedKeys {
		before, isOld := input[keys[0]].(string)
		after, isNew := input[keys[1]].(string)
		if !isOld || !isNew {
			continue
		}
		c := Change{Path: path, Op: Edit, Pieces: []Piece{{Old: before, New: after}}}
		for _, key := range []string{"replace_all", "replaceAll"} {
			if all, _ := input[key].(bool); all {
				c.All = true
			}
		}
		return c, true
	}
	return Change{}, false
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
