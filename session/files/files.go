// Package files recognises what a tool call does with files. Agents give the same tool
// different names, but nearly the same arguments; this is the one place that knows them.
package files

import (
	"slices"
	"strings"
	"unicode"

	"github.com/coppice-dev/coppice/session"
)

// pathKeys are the arguments that name a file, listKeys those that name several, and
// targetKeys those that say where a file moves to.
var (
	pathKeys   = []string{"file_path", "filePath", "path", "absolute_path", "notebook_path", "target_file", "filename"}
	listKeys   = []string{"paths", "files", "file_paths"}
	sourceKeys = []string{"source", "source_path", "src"}
	targetKeys = []string{"destination", "destination_path", "dest", "new_path", "target"}
)

// Touched returns the files that a call reads and changes, according to its name and
// arguments. What a command of a shell does with files is not known, except for a patch
// that it applies.
func Touched(t *session.ToolUseContent) (read, changed []string) {
	changes := Changes(t)
	for i := range changes {
		changed = append(changed, changes[i].Path)
		if to := changes[i].To; to != "" {
			changed = append(changed, to)
		}
	}
	if len(changes) > 0 {
		return nil, changed
	}
	words := wordsIn(t.Name)
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(word string) bool { return slices.Contains(words, word) })
	}
	command, _ := t.Input["command"].(string) // of a tool that reads and writes
	switch {
	case has("dir", "dirs", "directory", "folder"):
	case command == "view" || has("read", "view") || has("file", "files") && has("cat", "open", "get", "load"):
		read = named(t.Input)
	case has("write", "edit", "editor", "create", "update", "insert", "append", "replace", "delete", "remove", "move", "rename"):
		changed = named(t.Input)
		if from, to := Text(t.Input, sourceKeys...), Text(t.Input, targetKeys...); has("move", "rename") && to != "" {
			if from != "" {
				changed = append(changed, from)
			}
			changed = append(changed, to)
		}
	}
	return read, changed
}

// named returns the files that the arguments of a call name.
func named(input map[string]any) []string {
	var paths []string
	if path := Text(input, pathKeys...); path != "" {
		paths = append(paths, path)
	}
	for _, key := range listKeys {
		list, _ := input[key].([]any)
		for _, item := range list {
			switch item := item.(type) {
			case string:
				paths = append(paths, item)
			case map[string]any:
				if path := Text(item, pathKeys...); path != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}

// wordsIn returns the words of a tool's name in lower case: "mcp__fs__readFile" is a tool
// that reads a file.
func wordsIn(name string) []string {
	if at := strings.LastIndex(name, "__"); at >= 0 { // the name of a server comes before
		name = name[at+2:]
	}
	var spaced strings.Builder
	small := false
	for _, r := range name {
		if unicode.IsUpper(r) && small {
			spaced.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		if !unicode.IsLetter(r) {
			r = ' '
		}
		spaced.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(spaced.String())
}

// Text returns the first of some arguments that is a text, or "".
func Text(input map[string]any, keys ...string) string {
	for _, key := range keys {
		if text, ok := input[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
