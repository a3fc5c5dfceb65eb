package repo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Names that begin with "coppice." and are not in a log of ours.
var notInLogs = map[string]bool{
	"coppice.sock":      true, // a socket
	"coppice.d.ts":      true, // types for clients
	"coppice.exe":       true,
	"coppice.operation": true, // an attribute of a span
	"coppice.leaf":      true, // an entry of pi's files
}

// TestFormatNamesOurs holds the custom types and the metadata that the code writes against
// docs/format.md: who reads a log with that page alone must find what each is.
func TestFormatNamesOurs(t *testing.T) {
	inTop(t)
	page, err := os.ReadFile("docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`"(coppice\.[a-z_]+(?:\.[a-z_]+)*[a-z])"`)
	found := 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "examples" || path == "bench" || path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range ours.FindAllStringSubmatch(string(text), -1) {
			if notInLogs[m[1]] {
				continue
			}
			found++
			if !strings.Contains(string(page), "`"+m[1]+"`") {
				t.Errorf("%s: docs/format.md does not say what `%s` is", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 15 {
		t.Errorf("only %d names were found: the test looks in the wrong place", found)
	}
}
