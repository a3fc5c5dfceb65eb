package files

import (
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// The patch format of Codex, which other agents have adopted:
//
//	*** Begin Patch
//	*** Update File: a.go
//	*** Move to: b.go
//	@@ func main() {
//	 unchanged
//	-removed
//	+added
//	*** Add File: c.go
//	+all of it
//	*** Delete File: d.go
//	*** End Patch
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
)

// patched returns the changes of a call with a patch, wherever it is among the arguments:
// as one of its own, or in a command that passes it to apply_patch.
func patched(t *session.ToolUseContent) []Change {
	for _, key := range slices.Sorted(maps.Keys(t.Input)) {
		for _, text := range texts(t.Input[key]) {
			before, patch, ok := strings.Cut(text, beginPatch)
			patch, after, _ := strings.Cut(patch, "\n"+endPatch)
			if !ok || !isPatching(t.Name, before, after) {
				continue
			}
			if changes := parsePatch(patch); len(changes) > 0 {
				return changes
			}
		}
	}
	return nil
}

// isPatching reports whether a call applies a patch and does nothing else: around the
// patch there is nothing, or the command that applies it. A text with an example, or a
// script that does more, does not count.
func isPatching(tool, before, after string) bool {
	const maxCommand, maxEnd = 200, 16 // enough for a change of directory, and for EOF and quotes
	before, after = strings.TrimSpace(before), strings.TrimSpace(after)
	applied := before == "" || strings.Contains(before, "apply_patch") || strings.Contains(tool, "patch")
	return applied && len(before) <= maxCommand && len(after) <= maxEnd
}

// texts returns a value that is a text, or the texts of a list of nothing else.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		words := make([]string, len(v))
		for i, item := range v {
			word, ok := item.(string)
			if !ok {
				return nil
			}
			words[i] = word
		}
		return words
	}
	return nil
}

func parsePatch(text string) []Change {
	var changes []Change
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if c, ok := patchedFile(line); ok {
			changes = append(changes, c)
			continue
		}
		if len(changes) > 0 {
			changes[len(changes)-1].patchLine(line)
		}
	}
	return changes
}

// patchedFile reads a line that begins the part of another file.
func patchedFile(line string) (Change, bool) {
	for _, begin := range []struct {
		words string
		op    Op
	}{{"*** Update File: ", Edit}, {"*** Add File: ", Write}, {"*** Delete File: ", Delete}} {
		if path, ok := strings.CutPrefix(line, begin.words); ok {
			return Change{Path: strings.TrimSpace(path), Op: begin.op}, true
		}
	}
	return Change{}, false
}

// patchLine takes a line of the part of a file.
func (c *Change) patchLine(line string) {
	if to, ok := strings.CutPrefix(line, "*** Move to: "); ok {
		c.To = strings.TrimSpace(to)
		return
	}
	if strings.HasPrefix(line, "*** ") { // the end of the file, or something of a later version
		return
	}
	if len(c.Pieces) == 0 {
		c.Pieces = []Piece{{}}
	}
	c.Pieces[0].Patch = append(c.Pieces[0].Patch, line)
}
