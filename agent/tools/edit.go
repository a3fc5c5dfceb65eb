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

func (k *kit) edit() agent.Tool {
	t := k.pathTool(Edit, "Replace text in a file. old_string must be exactly what the file has, white space included, and occur once; "+
		"with replace_all, every occurrence is replaced. Paths are relative to the working directory.",
		`{"type":"object","properties":{`+
			`"path":{"type":"string"},`+
			`"old_string":{"type":"string"},`+
			`"new_string":{"type":"string"},`+
			`"replace_all":{"type":"boolean"}},`+
			`"required":["path","old_string","new_string"],"additionalProperties":false}`)
	t.Alone = true
	t.Ask = k.asksOutside("changes", true)
	t.Run = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		in, err := parse(call.Input, "path", "old_string", "new_string", "replace_all")
		if err != nil {
			return refused(err)
		}
		c := change{old: in.text("old_string"), new: in.text("new_string"), all: in.flag("replace_all")}
		p, err := k.dir.pathIn(call.Input)
		if err = errors.Join(in.err(), err); err == nil {
			err = c.check()
		}
		if err != nil {
			return refused(err)
		}
		return k.changeFile(ctx, p, func(at *place, before fs.FileInfo) (string, error) { return k.editAt(at, before, p, c) })
	}
	return t
}

func (k *kit) editAt(at *place, before fs.FileInfo, p path, c change) (string, error) {
	if before == nil {
		return "", fs.ErrNotExist
	}
	content, err := at.content()
	if err != nil {
		return "", err
	}
	changed, lines, err := c.apply(content)
	if err != nil {
		return "", fmt.Errorf("%s: %w", p, err)
	}
	if err := k.replace(at, before, changed); err != nil {
		return "", err
	}
	return fmt.Sprintf("replaced %s in %s, at line %s", count(len(lines), "occurrence"), p, join(lines)), nil
}

// content returns a file as a whole.
func (p *place) content() ([]byte, error) {
	f, err := p.openFile()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxEdit+1))
	if err == nil && len(content) > maxEdit {
		err = fmt.Errorf("it has more than the %s that can be edited", size(maxEdit))
	}
	if err == nil && bytes.IndexByte(content, 0) >= 0 {
		err = errors.New("it is a binary file, which cannot be edited")
	}
	return content, err
}

// change is a replacement of text.
type change struct {
	old, new string
	all      bool
}

func (c change) check() error {
	switch {
	case c.old == "":
		return errors.New("old_string is empty: give the text to replace, or use write for a new file")
	case c.old == c.new:
		return errors.New("old_string and new_string are the same: there is nothing to change")
	case !utf8.ValidString(c.old) || strings.ContainsRune(c.old, utf8.RuneError):
		return errors.New("old_string has characters that stand for bytes that are not UTF-8: choose text without them")
	}
	return nil
}

// apply returns the changed content and the lines at which it was changed.
func (c change) apply(content []byte) ([]byte, []int, error) {
	n := bytes.Count(content, []byte(c.old))
	if n == 0 && bytes.Contains(content, []byte("\r\n")) && !strings.Contains(c.old, "\r") {
		// What read shows has plain line ends.
		c.old, c.new = crlf(c.old), crlf(strings.ReplaceAll(c.new, "\r\n", "\n"))
		n = bytes.Count(content, []byte(c.old))
	}
	if n == 0 {
		return nil, nil, notFound(string(content), c.old)
	}
	lines := linesOf(content, []byte(c.old))
	if n > 1 && !c.all {
		return nil, nil, fmt.Errorf("old_string occurs %d times, at the lines %s: add lines around it until it is unique, or set replace_all", n, join(lines))
	}
	return bytes.ReplaceAll(content, []byte(c.old), []byte(c.new)), lines, nil
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
