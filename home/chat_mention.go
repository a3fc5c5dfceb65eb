package home

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Mentions are the files that a person names in a message, each as @path: relative to the
// directory of the chat, from / or from ~/. A path with spaces is in quotes: @"a b.txt".
type Mentions struct {
	Files  []string `json:"files,omitempty"`  // text, for Start
	Images []string `json:"images,omitempty"` // for Prompt
	// Missing are words that look like the path of a file that does not exist, as they were
	// typed.
	Missing []string `json:"missing,omitempty"`
	// Directories are mentioned directories, which cannot be sent, as they were typed.
	Directories []string `json:"directories,omitempty"`
}

// Mentions finds the files that a text names. A word with an @ that names no file, such as a
// mail address, is text.
func (c *Chat) Mentions(text string) (m Mentions) {
	for _, name := range mentioned(text) {
		path, ok := c.mention(name)
		switch {
		case !ok && path == "" && looksLikePath(strings.TrimRight(name, sentenceEnds)):
			m.Missing = append(m.Missing, strings.TrimRight(name, sentenceEnds))
		case !ok && path != "" && isDirectory(path):
			m.Directories = append(m.Directories, strings.TrimRight(name, sentenceEnds))
		case !ok || slices.Contains(m.Files, path) || slices.Contains(m.Images, path):
		case isImage(path):
			m.Images = append(m.Images, path)
		default:
			m.Files = append(m.Files, path)
		}
	}
	return m
}

// sentenceEnds are what may follow a path in a sentence.
const sentenceEnds = ".,;:!?)]}'\""

func looksLikePath(name string) bool { return strings.Contains(name, "/") || filepath.Ext(name) != "" }

// mentioned returns the words after an @ that begins a word.
func mentioned(text string) (names []string) {
	for at, r := range text {
		before, size := utf8.DecodeLastRuneInString(text[:at])
		if r != '@' || size > 0 && !unicode.IsSpace(before) && !strings.ContainsRune("([{\"'", before) {
			continue
		}
		rest := text[at+1:]
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if name, _, ok := strings.Cut(quoted, `"`); ok && !strings.Contains(name, "\n") {
				names = append(names, name)
			}
			continue
		}
		if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
			rest = rest[:end]
		}
		if rest != "" {
			names = append(names, rest)
		}
	}
	return names
}

// mention returns the file or the directory that a word after an @ names. Punctuation may
// follow it. A directory cannot be sent.
func (c *Chat) mention(name string) (path string, ok bool) {
	for ; name != ""; name = name[:len(name)-1] {
		path = c.Path(name)
		if info, err := os.Stat(path); err == nil {
			return path, info.Mode().IsRegular()
		}
		if !strings.ContainsRune(sentenceEnds, rune(name[len(name)-1])) {
			break
		}
	}
	return "", false
}

// Path returns the path that a person means: from ~/, from /, or in the chat's directory.
func (c *Chat) Path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return under(c.home.settings.env("HOME"), filepath.FromSlash(rest))
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, filepath.FromSlash(name))
}

// The most that Files looks at and returns.
const (
	maxBrowsed = 20_000
	maxFiles   = 200
)

// Files completes a path that is being typed: it returns the names in its directory that
// begin like it, with a slash after directories; or, if there are none, files of that name
// anywhere below. Without a slash, case does not matter. Files that .gitignore excludes are
// left out.
func (c *Chat) Files(ctx context.Context, typed string) []string {
	slash := strings.LastIndexByte(typed, '/') + 1
	in, base := typed[:slash], strings.ToLower(typed[slash:])
	root, below := c.dir, filepath.ToSlash(filepath.Clean(in))+"/"
	if in == "" || strings.HasPrefix(in, "~") || !filepath.IsLocal(filepath.FromSlash(in)) {
		root, below = c.Path(in), "./"
	}
	var here, elsewhere []string
	seen := 0
	err := tools.Browse(ctx, root, func(name string) bool {
		if seen++; seen > maxBrowsed || len(here) == maxFiles || len(elsewhere) == maxFiles {
			return false
		}
		rest := name
		if below != "./" {
			if strings.HasPrefix(below, name) {
				return true // on the way there
			}
			var ok bool
			if rest, ok = strings.CutPrefix(name, below); !ok {
				return false
			}
		}
		first, more, _ := strings.Cut(rest, "/")
		isHere := more == "" && strings.HasPrefix(strings.ToLower(first), base) && (base != "" || !strings.HasPrefix(first, "."))
		switch {
		case isHere:
			here = append(here, in+rest)
		case in == "" && base != "" && strings.HasPrefix(strings.ToLower(lastName(name)), base):
			elsewhere = append(elsewhere, name)
		}
		return in == "" && base != ""
	})
	if err != nil && len(here) == 0 {
		return nil // there is no such directory
	}
	if len(here) > 0 {
		return here
	}
	return elsewhere
}

// lastName returns the name at the end of a path of a file, or "" for a directory.
func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isImage reports whether a file begins like an image.
func isImage(path string) bool {
	f, err := vfs.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	return media.ImageType(head[:n]) != ""
}
