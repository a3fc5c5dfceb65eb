package summary

import "github.com/coppice-dev/coppice/session"

// KnownFiles returns the files that a call reads and changes, by the names and arguments
// that the tools of well-known agents have.
func KnownFiles(call *session.ToolUseContent) (read, changed []string) {
	path, _ := call.Input["path"].(string)
	if path == "" {
		path, _ = call.Input["file_path"].(string)
	}
	switch call.Name {
	case "read":
		read = []string{path}
	case "write", "edit":
		changed = []string{path}
	}
	return read, changed
}
