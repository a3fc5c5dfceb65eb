package repo_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// namesFiles lists the files of the library that may import store/file: the constructors
// of the seeds that take a directory, the kinds of stores of a home, and backups, which are
// made of files. Everything else works with any store.Store.
var namesFiles = []string{
	"conversation/sessions.go", "home/local/local.go", "keyed/manager.go", "session/manager.go",
	"upkeep/backup/backup.go", "upkeep/backup/copy.go", "upkeep/backup/manifest.go", "upkeep/backup/read.go",
}

func TestOnlyAFewFilesNameTheStoreOfFiles(t *testing.T) {
	inTop(t)
	var got []string
	for _, room := range []string{"agent", "conversation", "home", "index", "cmd/coppice/internal/demo", "keyed", "session", "transcript", "upkeep"} {
		err := filepath.WalkDir(filepath.FromSlash(room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, imported := range f.Imports {
				if imported.Path.Value == `"`+module+`/store/file"` {
					got = append(got, filepath.ToSlash(path))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, namesFiles) {
		t.Errorf("store/file is imported by %q, want %q", got, namesFiles)
	}
}
