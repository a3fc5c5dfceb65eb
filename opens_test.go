package coppice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Files are opened in one place, which refuses what is no file: see store/vfs. A
// named pipe under a file's name would hang whoever opens it otherwise.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	blind := regexp.MustCompile(`\b(os\.Open|os\.ReadFile|ioutil\.ReadFile|[rR]oot\.Open|[rR]oot\.ReadFile)\(`)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bench" || name == "scripts" || name == "examples" || name == "tools" || d.Name() == "testdata" || d.Name() == "transcripttest" || len(name) > 1 && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		for i, line := range strings.Split(string(text), "\n") {
			if blind.MatchString(line) {
				t.Errorf("%s:%d opens a file blindly: use store/vfs\n%s", filepath.ToSlash(name), i+1, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
