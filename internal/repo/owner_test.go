package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Only store/file knows the name of a store's house keeping directory, and only
// store/vfs renames files: whoever did it by himself would forget a sync, and no
// crash test would notice.
func TestOneOwnerOfTheHouseAndOfReplacement(t *testing.T) {
	inTop(t)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING && strings.Contains(strings.ReplaceAll(n.Value, ".coppice.toml", ""), ".coppice") && dir != "store/file" {
					t.Errorf("%s spells %s: ask store/file for the place", path, n.Value)
				}
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				if of != nil && of.Name == "os" && (n.Sel.Name == "Rename" || n.Sel.Name == "CreateTemp") && dir != "store/vfs" {
					t.Errorf("%s calls os.%s: use vfs.Replace", path, n.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
