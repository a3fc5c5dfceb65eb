package tools

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	pathpkg "path"
	"regexp"
	"strings"

	"github.com/coppice-dev/coppice/agent"
)

const (
	defaultLines = 100 // that grep returns
	maxGrep      = 2000
	maxMatch     = 500 // bytes of a line that are shown
)

func (k *toolset) grep() (agent.Tool, error) {
	return pathTool(k, Grep, "reads", fmt.Sprintf("Search the content of files for a regular expression, except those that .gitignore excludes. "+
		"Returns lines as file:number:text, up to %d, or as many as limit says.", defaultLines), k.grepPath)
}

func (k *toolset) grepPath(ctx context.Context, call agent.Call, in grepInput, p path) (agent.Result, error) {
	expr := in.Pattern
	if in.IgnoreCase {
		expr = "(?i)" + expr
	}
	wanted, err := regexp.Compile(expr)
	if err != nil {
		return agent.Result{}, fmt.Errorf("the pattern is not a regular expression: %w", err)
	}
	limit, err := number("limit", in.Limit, defaultLines, maxGrep)
	if err != nil {
		return agent.Result{}, err
	}
	only, err := globOf(in.Glob)
	if err != nil {
		return agent.Result{}, err
	}
	found := &lines{max: k.MaxOutput, limit: limit}
	err = k.walkBelow(ctx, call, p, func(name string, open func() (*os.File, error)) error {
		switch {
		case name != "." && !only(name):
			return nil
		case isGuarded(name) && !isGuarded(p.name): // nobody was asked about it
			found.leave(pathpkg.Join(p.String(), name))
			return nil
		}
		f, err := open()
		if err != nil {
			return nil // it is gone, or we may not read it
		}
		defer f.Close()
		return grepFile(ctx, f, wanted, func(n int, text []byte) error {
			return found.add("%s:%d:%s", plainName(pathpkg.Join(p.String(), name)), n, cut(text))
		})
	})
	return found.result("[no line matches]"), err
}

// grepFile calls found with each line that matches. A binary file has none.
func grepFile(ctx context.Context, f io.Reader, wanted *regexp.Regexp, found func(n int, text []byte) error) error {
	r := bufio.NewReaderSize(f, 64<<10)
	if head, _ := r.Peek(sniffed); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxEdit)
	for n := 1; s.Scan(); n++ {
		if err := ended(ctx); err != nil {
			return err
		}
		if wanted.Match(s.Bytes()) {
			if err := found(n, s.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil // a line that is too long is not text
}

// cut returns the beginning of a line, as text.
func cut(line []byte) string {
	if len(line) > maxMatch {
		line = append(bytes.Clone(wholeRunes(line[:maxMatch])), "…"...)
	}
	return string(bytes.ToValidUTF8(bytes.TrimSuffix(line, []byte("\r")), []byte("\uFFFD")))
}

func (k *toolset) glob() (agent.Tool, error) {
	return pathTool(k, Glob, "lists", "Find files by their names, except those that .gitignore excludes.",
		func(ctx context.Context, call agent.Call, in globInput, p path) (agent.Result, error) {
			if err := words("pattern", in.Pattern); err != nil {
				return agent.Result{}, err
			}
			wanted, err := globOf(in.Pattern)
			if err != nil {
				return agent.Result{}, err
			}
			found := &lines{max: k.MaxOutput, limit: maxNames}
			err = k.walkBelow(ctx, call, p, func(name string, _ func() (*os.File, error)) error {
				if !wanted(name) {
					return nil
				}
				return found.add("%s", plainName(pathpkg.Join(p.String(), name)))
			})
			return found.result("[no file has such a name]"), err
		})
}

// globOf returns a function that matches file names. A pattern without a slash matches files
// in all directories.
func globOf(text string) (func(name string) bool, error) {
	if text == "" {
		return func(string) bool { return true }, nil
	}
	if !strings.Contains(text, "/") {
		text = "**/" + text
	}
	match, err := glob(strings.TrimPrefix(text, "./"))
	if err != nil {
		return nil, err
	}
	return match.MatchString, nil
}

func (k *toolset) ls() (agent.Tool, error) {
	return pathTool(k, Ls, "lists", "List the names in a directory, those of directories with a slash.",
		func(_ context.Context, call agent.Call, _ lsInput, p path) (agent.Result, error) {
			at, err := k.openToRead(call, p)
			if err != nil {
				return agent.Result{}, err
			}
			defer at.close()
			text, err := list(at, p)
			return agent.Result{Text: text}, err
		})
}

// lines collects lines for a model, as many as there is room for.
type lines struct {
	max, limit int // bytes, lines
	text       strings.Builder
	n          int
	more       bool
	left       string // a file that was left out, because it may hold secrets
}

// leave records that a file is left out.
func (l *lines) leave(name string) {
	if l.left == "" {
		l.left = name
	}
}

func (l *lines) add(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	if l.n == l.limit || l.n > 0 && l.text.Len()+len(line) > l.max {
		l.more = true
		return errEnough
	}
	l.n++
	l.text.WriteString(line + "\n")
	return nil
}

func (l *lines) result(none string) agent.Result {
	switch {
	case l.n == 0:
		l.text.WriteString(none)
	case l.more:
		fmt.Fprintf(&l.text, "[there are more than these %s: narrow the search]", count(l.n, "line"))
	}
	if l.left != "" && !l.more {
		if l.n == 0 {
			l.text.WriteString("\n")
		}
		fmt.Fprintf(&l.text, "[files that may hold secrets were not searched, such as %s: name one to ask for it]", plainName(l.left))
	}
	return agent.Result{Text: l.text.String()}
}
