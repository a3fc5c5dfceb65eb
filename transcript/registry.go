package transcript

import (
	"slices"
	"sync"
)

// known has the formats that the program was built with. A mutable global, as package image has
// one: which formats there are is decided by what is imported, before anything runs.
var known = func() []*Format { return nil }

// Register makes formats known to the program, in the order in which Detect should try them. It
// must be called by an init function; package transcript/all does so for all formats of this
// module. list is called when the formats are first needed.
func Register(list func() []*Format) {
	before := known
	known = sync.OnceValue(func() []*Format {
		formats := list()
		for i := range formats {
			formats[i] = Checked(formats[i])
		}
		return slices.Concat(before(), formats)
	})
}

// Formats returns all formats that were registered.
func Formats() []*Format { return slices.Clone(known()) }

// Named returns the format with a name, or nil.
func Named(name string) *Format {
	at := slices.IndexFunc(known(), func(f *Format) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return known()[at]
}

// Detect returns the format of a file, or nil if it is not known.
func Detect(f *File) *Format {
	if f == nil {
		return nil
	}
	for _, format := range known() {
		if format.Detect(f) {
			return format
		}
	}
	return nil
}
