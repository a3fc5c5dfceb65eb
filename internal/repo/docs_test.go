package repo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHouse holds the drawing of the house in docs/architecture.md against the
// floors: every room that is built is in it.
func TestHouse(t *testing.T) {
	inTop(t)
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, house, _ := strings.Cut(string(text), "## The house")
	house, _, _ = strings.Cut(house, "\n## ")
	for _, rooms := range floors {
		for _, room := range rooms {
			room = strings.TrimSuffix(room, "/...")
			if _, err := os.Stat(room); err != nil || room == "." {
				continue // planned, or the module itself
			}
			if strings.HasPrefix(room, "store/storetest/") {
				room = "store/storetest"
			}
			if !strings.Contains(house, room+"/") {
				t.Errorf("docs/architecture.md does not have %s", room)
			}
		}
	}
}

// TestNamedFiles holds the names of files in docs/architecture.md against the files: those without
// a directory are in one of the packages that it explains.
func TestNamedFiles(t *testing.T) {
	inTop(t)
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`([a-z_/*]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		found := 0
		for _, dir := range []string{"", "home", "session", "server", "cmd/coppice/internal/cli"} {
			files, err := filepath.Glob(filepath.Join(dir, m[1]))
			if err != nil {
				t.Fatal(err)
			}
			found += len(files)
		}
		if found == 0 {
			t.Errorf("docs/architecture.md names %s, which is not there", m[1])
		}
	}
}

// TestLinks follows the links between the pages, and from them to files.
func TestLinks(t *testing.T) {
	inTop(t)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", page, m[1])
			}
		}
	}
}

// TestThreatsHaveTheirTests holds docs/security.md and docs/durability.md against
// the code: every test that they name exists.
func TestThreatsHaveTheirTests(t *testing.T) {
	inTop(t)
	var code strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z]+)`")
	for _, page := range []string{"docs/security.md", "docs/durability.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
}

// TestFixedTexts holds the table of fixed texts in docs/format.md against the code.
// Readers in other languages copy them from there.
func TestFixedTexts(t *testing.T) {
	inTop(t)
	text, err := os.ReadFile("docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "Fixed texts\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var code strings.Builder
	for _, dir := range []string{"session", "provider/internal/wire"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(source)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 6 {
		t.Fatalf("the table has %d texts", len(rows))
	}
	for _, row := range rows {
		fixed, _, _ := strings.Cut(row[1], "sha256:") // the name of the blob follows
		if !strings.Contains(code.String(), `"`+fixed) {
			t.Errorf("no code has the text %q", fixed)
		}
	}
}
