package summary

import (
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// KnownFiles returns the files that a call reads and changes, if it is one of the tools of
// well-known agents: see files.Touched.
func KnownFiles(call *session.ToolUseContent) (read, changed []string) { return files.Touched(call) }
