package session

import (
	"slices"
	"strings"
)

// isLocal reports whether the source is a file of some machine: a file: URL, or a path.
// It cannot be read elsewhere, and its place is private. See WithoutLocal.
func (s *Source) isLocal() bool {
	if s == nil || s.Type != "url" {
		return false
	}
	scheme, _, ok := strings.Cut(strings.TrimSpace(s.Data), ":")
	isDrive := len(scheme) == 1
	return !ok || isDrive || strings.ContainsAny(scheme, `/\`) || strings.EqualFold(scheme, "file")
}

// WithoutLocal returns blocks without those whose bytes are files of some machine, in the
// parts of tool results too, and whether there were any. The result may be sent to a provider
// or written into another program's files. The given blocks do not change.
func WithoutLocal(content []Content) (kept []Content, found bool) {
	if !slices.ContainsFunc(content, isLocal) {
		return content, false
	}
	kept = slices.DeleteFunc(slices.Clone(content), func(c Content) bool { return c.Source().isLocal() })
	for i := range kept {
		if r := kept[i].ToolResult; r != nil {
			result := *r
			result.Parts, _ = WithoutLocal(r.Parts)
			kept[i].ToolResult = &result
		}
	}
	return kept, true
}

func isLocal(c Content) bool {
	return c.Source().isLocal() || c.ToolResult != nil && slices.ContainsFunc(c.ToolResult.Parts, isLocal)
}
