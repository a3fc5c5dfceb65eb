package home_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

func TestFilesInAPrompt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dir := t.TempDir()
	for _, name := range []string{"a.go", "sub/b.go", "sub/deep/Beans.txt", "a b.txt", ".hidden", "skip/c.go", ".gitignore"} {
		text := "text"
		if name == ".gitignore" {
			text = "skip/\n"
		}
		writeText(t, filepath.Join(dir, name), text)
	}
	writeText(t, filepath.Join(dir, "p.png"), "\x89PNG\r\n\x1a\n")
	writeText(t, filepath.Join(h.env["HOME"], "notes.md"), "text")
	c := h.chat(home.ChatRequest{CWD: dir})
	for text, want := range map[string]string{
		"see @a.go":                        "a.go",
		"see @a.go, (@sub/b.go) and @a.go": "a.go sub/b.go",
		`"@sub/b.go" and @"a b.txt"?`:      "sub/b.go a b.txt",
		"me@a.go and a@sub/b.go":           "",
		"@p.png":                           "image p.png",
		"@~/notes.md":                      "~notes.md",
		"@sub is a directory":              "directory sub",
		"@nobody said @x/y or @z.txt.":     "missing x/y missing z.txt",
		"@" + filepath.Join(dir, "a.go"):   "a.go",
		"an @ alone @":                     "",
	} {
		var got []string
		m := c.Mentions(text)
		for _, path := range m.Files {
			path = strings.TrimPrefix(path, dir+string(os.PathSeparator))
			got = append(got, filepath.ToSlash(strings.ReplaceAll(path, h.env["HOME"]+string(os.PathSeparator), "~")))
		}
		for _, path := range m.Images {
			got = append(got, "image "+filepath.Base(path))
		}
		for _, name := range m.Missing {
			got = append(got, "missing "+name)
		}
		for _, name := range m.Directories {
			got = append(got, "directory "+name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for typed, want := range map[string]string{
		"":         "a b.txt a.go p.png sub/",
		"a":        "a b.txt a.go",
		"s":        "sub/",
		"sub/":     "sub/b.go sub/deep/",
		"sub/D":    "sub/deep/",
		"bea":      "sub/deep/Beans.txt",
		"skip/":    "",
		".h":       ".hidden",
		"~/no":     "~/notes.md",
		"none/":    "",
		"../none/": "",
	} {
		if got := strings.Join(c.Files(t.Context(), typed), " "); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
