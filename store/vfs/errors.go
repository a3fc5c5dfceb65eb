package vfs

import "errors"

// ErrSymlink is the cause of the error that OpenFile returns for a symbolic
// link.
var ErrSymlink = errors.New("is a symbolic link")
