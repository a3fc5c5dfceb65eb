package transcript

import "io"

// FileFrom returns a file whose content comes from a reader, for tests.
func FileFrom(name string, open func() (io.ReadCloser, error)) *File {
	return &File{Path: name, open: open}
}
