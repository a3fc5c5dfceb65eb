package transcript

import (
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// errNoID is the fault of a format.
var errNoID = errors.New("a reader began a conversation without an id")

// errNotRaw says why the bytes that an entry was made of cannot be had.
func errNotRaw(id, why string) error {
	return &session.Error{Op: "read source of", Name: id, Kind: session.ErrNotExist, Err: errors.New(why)}
}

func errChanged(id string) error {
	return &session.Error{
		Op: "read source of", Name: id, Kind: session.ErrCorrupt,
		Err: fmt.Errorf("what is kept does not match its hash"),
	}
}
