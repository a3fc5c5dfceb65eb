package vfs

import (
	"io/fs"
	"os"
)

// adopt gives a file the mode of another one; its owner comes from the directory.
func adopt(f *os.File, like fs.FileInfo) error { return f.Chmod(like.Mode()) }
