package transcript

import (
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// errNoID means that a format is broken.
var errNoID = errors.New("a reader began a conversation without an id")

// check returns an error if the format is nil, as for a file of an unknown format, or
// if it cannot do what is asked of it.
func (f *Format) check(op, path string, able func(*Format) bool) error {
	switch {
	case f == nil:
		return &session.Error{
			Op: op, Path: path, Kind: session.ErrInvalid, Err: errors.New("the format is not known"),
			Hint: "all.Named finds a format by its name; all.Detect returns nil for a file of an unknown format",
		}
	case !able(f):
		return &session.Error{Op: op, Path: path, Kind: session.ErrInvalid, Err: fmt.Errorf("not possible with the format %s", f.Title)}
	}
	return nil
}

// errMissing says what a caller left out.
func errMissing(op, what string) error {
	return &session.Error{Op: op, Kind: session.ErrInvalid, Err: errors.New("there must be " + what)}
}

func canRead(f *Format) bool { return f.Read != nil }

// errNotRaw says why the source bytes of an entry are not available.
func errNotRaw(id, why string) error {
	return &session.Error{Op: "read source of", Name: id, Kind: session.ErrNotExist, Err: errors.New(why)}
}

func errChanged(id string) error {
	return &session.Error{
		Op: "read source of", Name: id, Kind: session.ErrCorrupt,
		Err: fmt.Errorf("the kept bytes do not match their hash"),
	}
}
