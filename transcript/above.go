package transcript

import "path/filepath"

// Above returns the file as seen from a directory that many levels above its own:
// Beside and Around begin there. It is for formats whose files are spread over a tree.
func (f *File) Above(levels int) *File {
	if f == nil {
		return nil
	}
	seen := *f
	for range levels {
		if seen.dir != "" {
			seen.dir = filepath.Dir(seen.dir)
		}
	}
	return &seen
}
