package home

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestFailedExportLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	fail := func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return io.ErrUnexpectedEOF
	}
	if _, err := writeOut(path, "", false, fail, nil); err == nil {
		t.Error("no error")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}
