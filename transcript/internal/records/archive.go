package records

import (
	"errors"

	"github.com/coppice-dev/coppice/transcript"
)

// Member is a file in an archive, or a file by itself.
type Member struct {
	*transcript.File
	Name    string              // in the archive
	Archive *transcript.Archive // nil if it is a file by itself
}

// EachMember calls a function with the members of a zip archive, or with the file itself if it
// is no archive, until the function returns an error.
func EachMember(f *transcript.File, do func(Member) error) error {
	if !f.IsZip() {
		return do(Member{File: f})
	}
	archive, err := f.Zip()
	if err != nil {
		return err
	}
	for _, name := range archive.Names() {
		var member *transcript.File
		if member, err = archive.File(name); err == nil {
			err = do(Member{File: member, Name: name, Archive: archive})
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, archive.Close())
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// Holds reports whether a file looks as it should, or the first member of an archive that has
// the right name.
func Holds(f *transcript.File, isNamed func(name string) bool, looks func(*transcript.File) bool) bool {
	found := false
	_ = EachMember(f, func(m Member) error {
		if m.Archive != nil && !isNamed(m.Name) {
			return nil
		}
		found = looks(m.File)
		return errEnough
	})
	return found
}
