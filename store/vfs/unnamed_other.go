//go:build !linux

package vfs

import (
	"errors"
	"io/fs"
)

// unnamed is for systems that have files without a name.
func (r rootFS) unnamed(string, fs.FileMode) (*osFile, func(name string) error, error) {
	return nil, nil, errors.ErrUnsupported
}
