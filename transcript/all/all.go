// Package all knows every format.
package all

import (
	"slices"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/aider"
	"github.com/coppice-dev/coppice/transcript/claudecode"
)

// Formats returns all formats in the order in which files are asked whether they
// are of them: the specific before the general.
func Formats() []*transcript.Format {
	return []*transcript.Format{
		claudecode.Format(),
		aider.Format(),
	}
}

// Named returns the format of a name, or nil.
func Named(name string) *transcript.Format {
	formats := Formats()
	at := slices.IndexFunc(formats, func(f *transcript.Format) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return formats[at]
}

// Detect returns the format that a file is of, or nil.
func Detect(f *transcript.File) *transcript.Format {
	for _, format := range Formats() {
		if format.Detect(f) {
			return format
		}
	}
	return nil
}
