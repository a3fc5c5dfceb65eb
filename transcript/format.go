package transcript

import (
	"context"
	"path/filepath"
)

// Format is one program's way to keep conversations.
type Format struct {
	Name  string // as --from and --to have it: "claude-code"
	Title string // as people say it: "Claude Code"

	// Detect reports whether a file is of this format. It may look at the path, at the
	// beginning (File.Head) and at the files beside it. Formats are asked in a fixed order,
	// the specific before the general.
	Detect func(f *File) bool
	// Read passes the file's conversations to a sink. It returns an error if the file
	// as a whole cannot be read, and returns the sink's errors. Problems of single
	// records go to the sink and do not end the reading.
	Read func(ctx context.Context, f *File, to Sink) error
	// Places returns where the program keeps its files on a machine. Nil means
	// that it has no such place.
	Places func(env Env) []Place
	// Resume returns the command that continues a conversation in the program, run in
	// the conversation's directory. Nil means that it has none.
	Resume func(id string) []string
	// Load returns the command with which the program imports a file that Write made,
	// run in the conversation's directory before that of Resume. Nil means that the
	// program finds its files by itself.
	Load func(path string) []string
	// Write turns a conversation into the program's files. Nil means that the format is
	// only read.
	Write func(ctx context.Context, s *Script, env Env) (*Output, error)
}

// Place is where a program keeps its files.
type Place struct {
	Dir string // an absolute path, which need not exist
	// Match reports whether to read a file, given its path relative to Dir, with slashes. It
	// does not match files that Read looks up by itself. A place whose Dir is a single file
	// has a nil Match.
	Match func(path string) bool
}

// Env is what a format needs to know about the machine.
type Env struct {
	Home   string              // the user's home directory
	Getenv func(string) string // the environment; nil if there is none
	GOOS   string              // the operating system, as runtime.GOOS has it
}

// Dir returns the directory that an environment variable names, or else one
// below the home directory, which is given with slashes.
func (e Env) Dir(variable, fallback string) string {
	if e.Getenv != nil {
		if dir := e.Getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
	}
	return filepath.Join(e.Home, filepath.FromSlash(fallback))
}
