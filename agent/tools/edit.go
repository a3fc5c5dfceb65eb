package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent"
)

// maxEdit is the size of the largest file that can be edited: it is held in memory.
const maxEdit = 16 << 20

func (k *toolset) edit() (agent.Tool, error) {
	return pathTool(k, Edit, "changes", "Replace text in a file that was read before. old_string must be exactly what the file has, white space included, and occur once; "+
		"with replace_all, every occurrence is replaced.",
		func(ctx context.Context, call agent.Call, in editInput, p path) (agent.Result, error) {
			if err := in.check(); err != nil {
				return agent.Result{}, err
			}
			return k.changeFile(ctx, call, p, func(at *openedPath, before fs.FileInfo) ([]byte, string, error) {
				content, lines, err := in.changed(at, p, before)
				return content, fmt.Sprintf("replaced %s in %s, at line %s", count(len(lines), "occurrence"), p, join(lines)), err
			})
		})
}

// changed returns the content of a file after the edit, and the lines at which it changes.
func (in editInput) changed(at *openedPath, p path, before fs.FileInfo) (content []byte, lines []int, err error) {
	if before == nil {
		return nil, nil, fs.ErrNotExist
	}
	if content, err = at.content(); err != nil {
		return nil, nil, err
	}
	if content, lines, err = in.apply(content); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p, err)
	}
	return content, lines, nil
}

// content returns a file as a whole.
func (p *openedPath) content() ([]byte, error) {
	f, err := p.openFile()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	if err == nil && len(content) > maxEdit {
		err = fmt.Errorf("it is larger than %s, the limit for an edit", size(maxEdit))
	}
	if err == nil && bytes.IndexByte(content, 0) >= 0 {
		err = errors.New("it is a binary file, which cannot be edited")
	}
	return content, err
}

func (in editInput) check() error {
	switch {
	case in.Old == "":
		return errors.New("old_string is empty: give the text to replace, or use write for a new file")
	case in.Old == in.New:
		return errors.New("old_string and new_string are the same: there is nothing to change")
	case !utf8.ValidString(in.Old) || strings.ContainsRune(in.Old, utf8.RuneError):
		return errors.New("old_string has replacement characters in place of bytes that are not UTF-8: choose text without them")
	}
	return nil
}

// apply returns the changed content and the lines at which it was changed.
func (in editInput) apply(content []byte) ([]byte, []int, error) {
	n := bytes.Count(content, []byte(in.Old))
	if n == 0 && bytes.Contains(content, []byte("\r\n")) && !strings.Contains(in.Old, "\r") {
		// read shows plain line ends.
		in.Old, in.New = crlf(in.Old), crlf(strings.ReplaceAll(in.New, "\r\n", "\n"))
		n = bytes.Count(content, []byte(in.Old))
	}
	if n == 0 {
		return nil, nil, notFound(string(content), in.Old)
	}
	lines := linesOf(content, []byte(in.Old))
	if n > 1 && !in.All {
		return nil, nil, fmt.Errorf("old_string occurs %d times, at the lines %s: add lines around it until it is unique, or set replace_all", n, join(lines))
	}
	return bytes.ReplaceAll(content, []byte(in.Old), []byte(in.New)), lines, nil
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// linesOf returns the lines at which text occurs.
func linesOf(content, text []byte) []int {
	var lines []int
	for line := 1; ; {
		i := bytes.Index(content, text)
		if i < 0 {
			return lines
		}
		line += bytes.Count(content[:i], []byte("\n"))
		lines = append(lines, line)
		line += bytes.Count(text, []byte("\n"))
		content = content[i+len(text):]
	}
}

// join lists the first numbers.
func join(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i == 10 {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
