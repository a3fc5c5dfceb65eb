package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent"
)

// The arguments of the tools that name a file or a directory.
type (
	readInput struct {
		Path   string `json:"path"`
		Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
		Limit  int    `json:"limit,omitempty" jsonschema:"number of lines"`
	}
	writeInput struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	editInput struct {
		Path string `json:"path"`
		Old  string `json:"old_string"`
		New  string `json:"new_string"`
		All  bool   `json:"replace_all,omitempty"`
	}
	grepInput struct {
		Pattern    string `json:"pattern" jsonschema:"a regular expression of Go (RE2)"`
		Path       string `json:"path,omitempty" jsonschema:"a file, or a directory to search with all below it; default: the working directory"`
		Glob       string `json:"glob,omitempty" jsonschema:"only files like this: *.go, src/**/*.{ts,tsx}"`
		IgnoreCase bool   `json:"ignore_case,omitempty"`
		Limit      int    `json:"limit,omitempty" jsonschema:"number of lines"`
	}
	globInput struct {
		Pattern string `json:"pattern" jsonschema:"such as **/*.go; ** matches any number of directories"`
		Path    string `json:"path,omitempty" jsonschema:"where to begin; default: the working directory"`
	}
	lsInput struct {
		Path string `json:"path,omitempty" jsonschema:"default: the working directory"`
	}
)

func (in readInput) pathText() string  { return in.Path }
func (in writeInput) pathText() string { return in.Path }
func (in editInput) pathText() string  { return in.Path }
func (in grepInput) pathText() string  { return cmp.Or(in.Path, ".") }
func (in globInput) pathText() string  { return cmp.Or(in.Path, ".") }
func (in lsInput) pathText() string    { return cmp.Or(in.Path, ".") }

// pathTools are the tools whose calls name a file or a directory, with how to find it.
var pathTools = map[string]func(input json.RawMessage) (string, error){
	Read: pathOf[readInput], Write: pathOf[writeInput], Edit: pathOf[editInput],
	Grep: pathOf[grepInput], Glob: pathOf[globInput], Ls: pathOf[lsInput],
}

// pathOf returns the path in the arguments of a call.
func pathOf[In interface{ pathText() string }](input json.RawMessage) (string, error) {
	in, err := agent.Arguments[In](input)
	if err != nil {
		return "", err
	}
	return in.pathText(), words("path", in.pathText())
}

// pathIn judges the path in the arguments of a call of a tool.
func (d dir) pathIn(tool string, input json.RawMessage) (path, error) {
	text, err := pathTools[tool](input)
	if err != nil {
		return path{}, err
	}
	return d.locate(text)
}

// words refuses text that is blank, or has a NUL, which no operating system accepts.
func words(name, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("the argument %q is empty", name)
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("the argument %q has a NUL character", name)
	case !utf8.ValidString(s):
		return fmt.Errorf("the argument %q is not UTF-8", name)
	}
	return nil
}

// number returns a number from 1 to max, or a default if none is given.
func number(name string, n, standard, max int) (int, error) {
	if n < 0 || n > max {
		return 0, fmt.Errorf("the argument %q must be a whole number from 1 to %d", name, max)
	}
	return cmp.Or(n, standard), nil
}
