package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/pattern"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/store/vfs"
)

// errEnough ends a walk.
var errEnough = errors.New("that is enough")

// walk visits the files below a directory, in the order of their names. It does not follow
// links. It leaves out .git, files that .gitignore excludes, and files that a rule keeps from
// being read.
type walk struct {
	ctx   context.Context
	rules *Rules
	root  *os.Root
	files vfs.FS
	out   string // the directory of root, if it is outside of the working directory
	visit func(name string) error
	enter func(dir string) bool // Default: every directory
}

// Browse calls visit with each file below a directory, by its relative path, with
// slashes: files, and directories with a slash at the end, in the order of their names. If
// visit returns false for a directory, it skips what is below. It leaves out files that
// .gitignore excludes.
func Browse(ctx context.Context, dir string, visit func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &walk{ctx: ctx, root: root, files: vfs.In(root)}
	w.visit = func(name string) error {
		visit(filepath.ToSlash(name))
		return nil
	}
	w.enter = func(name string) bool { return visit(filepath.ToSlash(name) + "/") }
	return w.directory(".", nil)
}

// walkBelow visits the files below a path, or the file itself. The names are relative to the
// path.
func (k *toolset) walkBelow(ctx context.Context, call agent.Call, p path, visit func(name string, open func() (*os.File, error)) error) error {
	at, err := k.openToRead(call, p)
	if err != nil {
		return err
	}
	defer at.close()
	w := &walk{ctx: ctx, rules: k.Rules, root: at.root}
	from := at.name
	if p.outside {
		w.out = filepath.Dir(p.name)
	} else {
		if w.root, err = os.OpenRoot(k.dir.real); err != nil {
			return err
		}
		defer w.root.Close()
		from = at.full
	}
	w.files = vfs.In(w.root)
	info, err := w.root.Lstat(from)
	if err != nil {
		return err
	}
	w.visit = func(name string) error {
		if w.isDenied(name) {
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel), func() (*os.File, error) { return vfs.OpenIn(w.root, name) })
	}
	if !info.IsDir() {
		return w.visit(from)
	}
	var ignored []ignoreRule
	if !p.outside {
		for dir := range parents(from) {
			ignored = append(ignored, w.ignoresIn(dir)...)
		}
	}
	if err := w.directory(from, ignored); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// parents yields the directories above a name, the working directory first.
func parents(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if name == "." || !yield(".") {
			return
		}
		names := split(name)
		for i := 1; i < len(names); i++ {
			if !yield(filepath.Join(names[:i]...)) {
				return
			}
		}
	}
}

func (w *walk) isDenied(name string) bool {
	p := path{name: name}
	if w.out != "" {
		p = path{name: filepath.Join(w.out, name), outside: true}
	}
	return w.rules.deniesRead(p)
}

func (w *walk) directory(dir string, ignored []ignoreRule) error {
	entries, err := w.files.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	ignored = append(slices.Clip(ignored), w.ignoresIn(dir)...)
	for _, e := range entries {
		if err := ended(w.ctx); err != nil {
			return err
		}
		name := filepath.Join(dir, e.Name())
		if e.Name() == ".git" || isIgnored(ignored, name, e.IsDir()) {
			continue
		}
		switch {
		case e.IsDir():
			if w.enter == nil || w.enter(name) {
				err = w.directory(name, ignored)
			}
		case e.Type().IsRegular():
			err = w.visit(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ignoreRule is a line of a .gitignore file.
type ignoreRule struct {
	dir      string // where the file is
	matches  *regexp.Regexp
	keeps    bool // it begins with !
	onlyDirs bool
}

// maxIgnore is how many bytes of a .gitignore file are read.
const maxIgnore = 1 << 20

// ignoresIn reads the .gitignore file of a directory.
func (w *walk) ignoresIn(dir string) []ignoreRule {
	f, err := vfs.OpenIn(w.root, filepath.Join(dir, ".gitignore"))
	if err != nil {
		return nil // there is none
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxIgnore))
	var list []ignoreRule
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		one := ignoreRule{dir: dir}
		line, one.keeps = strings.CutPrefix(line, "!")
		line, one.onlyDirs = strings.CutSuffix(line, "/")
		if !strings.Contains(line, "/") {
			line = "**/" + line
		}
		if one.matches, err = glob(strings.TrimPrefix(line, "/")); err == nil {
			list = append(list, one)
		}
	}
	return list
}

// isIgnored returns what the last rule that matches a name says.
func isIgnored(rules []ignoreRule, name string, isDir bool) bool {
	for _, one := range slices.Backward(rules) {
		rel, err := filepath.Rel(one.dir, name)
		if err == nil && (isDir || !one.onlyDirs) && one.matches.MatchString(filepath.ToSlash(rel)) {
			return !one.keeps
		}
	}
	return false
}

var braces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([^{}]*)\}`) })

// glob returns what a pattern for paths matches: * and ? within a name, ** any number of
// names, [ab] and {a,b}.
func glob(text string) (*regexp.Regexp, error) {
	text = braces().ReplaceAllStringFunc(text, func(s string) string {
		return "@(" + strings.ReplaceAll(s[1:len(s)-1], ",", "|") + ")"
	})
	expr, err := pattern.Regexp(text, pattern.Filenames|pattern.EntireString|pattern.GlobLeadingDot|pattern.ExtendedOperators)
	if err != nil {
		return nil, fmt.Errorf("the pattern %q: %w", text, err)
	}
	return regexp.Compile(expr)
}
