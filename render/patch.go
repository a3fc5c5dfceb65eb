package render

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

// patched returns the edits of a call with a patch, wherever it is among the arguments:
// as one of its own, or in a command that passes it to apply_patch.
func patched(t *session.ToolUseContent) []Edit {
	for _, key := range slices.Sorted(maps.Keys(t.Input)) {
		for _, text := range texts(t.Input[key]) {
			before, patch, ok := strings.Cut(text, beginPatch)
			patch, after, _ := strings.Cut(patch, "\n"+endPatch)
			if !ok || !isPatching(t.Name, before, after) {
				continue
			}
			if edits := parsePatch(patch); len(edits) > 0 {
				return edits
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

// texts returns a value that is a text, or the texts of a list.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		words, _ := stringList(v)
		return words
	}
	return nil
}

func parsePatch(text string) []Edit {
	var edits []Edit
	for line := range strings.Lines(text) {
		line = withoutEnd(line)
		if e, ok := patchedFile(line); ok {
			edits = append(edits, e)
			continue
		}
		if len(edits) > 0 {
			edits[len(edits)-1].patchLine(line)
		}
	}
	return edits
}

// patchedFile reads a line that begins the part of another file.
func patchedFile(line string) (Edit, bool) {
	for _, begin := range []struct {
		words string
		op    EditOp
	}{{"*** Update File: ", Change}, {"*** Add File: ", Write}, {"*** Delete File: ", Delete}} {
		if path, ok := strings.CutPrefix(line, begin.words); ok {
			return Edit{Path: strings.TrimSpace(path), Op: begin.op}, true
		}
	}
	return Edit{}, false
}

func (e *Edit) patchLine(line string) {
	if to, ok := strings.CutPrefix(line, "*** Move to: "); ok {
		e.To = strings.TrimSpace(to)
		return
	}
	if heading, ok := strings.CutPrefix(line, "@@"); ok {
		e.Hunks = append(e.Hunks, Hunk{Heading: strings.TrimSpace(heading)})
		return
	}
	if strings.HasPrefix(line, "*** ") { // the end of the file, or something of a later version
		return
	}
	if len(e.Hunks) == 0 {
		e.Hunks = append(e.Hunks, Hunk{})
	}
	l := DiffLine{Op: ' ', Text: line}
	if line != "" && strings.IndexByte(" +-", line[0]) >= 0 {
		l = DiffLine{Op: line[0], Text: line[1:]}
	}
	h := &e.Hunks[len(e.Hunks)-1]
	h.Lines = append(h.Lines, l)
}
