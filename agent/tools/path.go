package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/store/vfs"
)

// dir is the working directory: the path from the options, and the same without symbolic links.
type dir struct{ path, real string }

// path is where a call points, judged only by its text. So links that appear or disappear
// later do not change the judgement.
type path struct {
	name    string // relative to the working directory, or absolute if outside
	outside bool
}

// String returns the path as people and models write it.
func (p path) String() string { return filepath.ToSlash(p.name) }

// locate judges a path.
func (d dir) locate(text string) (path, error) {
	if text == "~" || strings.HasPrefix(text, "~/") {
		return path{}, fmt.Errorf("%s: ~ is not expanded: write the path out", text)
	}
	text = filepath.FromSlash(text)
	full := text
	if !filepath.IsAbs(text) {
		if filepath.VolumeName(text) != "" || os.IsPathSeparator(text[0]) { // C:x and \x of Windows
			return path{}, fmt.Errorf("%s: write the path in full, or relative to the working directory", text)
		}
		full = filepath.Join(d.path, text)
	}
	full = filepath.Clean(full)
	if err := plainNames(full); err != nil {
		return path{}, err
	}
	for _, base := range []string{d.path, d.real} {
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			return path{name: rel}, nil
		}
	}
	return path{name: full, outside: true}, nil
}

// plainNames refuses names that Windows takes for others: "secret." and "SECRET~1" may
// be "secret" there.
func plainNames(full string) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	for name := range strings.SplitSeq(full[len(filepath.VolumeName(full)):], string(filepath.Separator)) {
		if name != strings.TrimRight(name, ". ") || strings.ContainsAny(name, ":~") {
			return fmt.Errorf("%s: no name on the way may end in a dot or a space, or have a colon or a tilde", full)
		}
	}
	return nil
}

// openedPath is an opened path: a name in a directory that is held open, so that changes to the
// names above it cannot lead elsewhere. The name has no symbolic links in it, so that it can
// be replaced.
type openedPath struct {
	root *os.Root
	name string
	full string // the whole name without links, written as in path
}

func (p *openedPath) close() { p.root.Close() }

// open opens the directory that a path is in.
func (d dir) open(p path) (*openedPath, error) {
	if p.outside {
		return d.openOutside(p.name)
	}
	root, err := os.OpenRoot(d.real)
	if err != nil {
		return nil, err
	}
	w := &walkedPath{dir: d, roots: []*os.Root{root}}
	at, err := w.follow(p.name)
	for _, root := range w.roots {
		if at == nil || root != at.root {
			root.Close()
		}
	}
	return at, err
}

// openOutside opens the directory of a path outside of the working directory. The call
// was approved under this path, so it must name the file itself.
func (d dir) openOutside(full string) (*openedPath, error) {
	parent, name := filepath.Dir(full), filepath.Base(full)
	if parent == full {
		name = "."
	}
	real, err := filepath.EvalSymlinks(full)
	if errors.Is(err, fs.ErrNotExist) {
		if real, err = filepath.EvalSymlinks(parent); err == nil {
			real = filepath.Join(real, name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !sameName(real, full) {
		return nil, fmt.Errorf("%s is a link: the file is %s; name that one", full, real)
	}
	if rel, ok := d.contains(full); ok {
		return nil, fmt.Errorf("%s is in the working directory: name it %s", full, filepath.ToSlash(rel))
	}
	before, err := os.Lstat(parent)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil, err
	}
	info, err := root.Lstat(name)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = fmt.Errorf("%s is a link that leads to nothing", full)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = isStill(root, before)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &openedPath{root, name, full}, nil
}

// isStill returns an error if the opened directory is not the expected one.
func isStill(root *os.Root, before fs.FileInfo) error {
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(before, now) {
		err = fmt.Errorf("%s was replaced while it was opened: try again", root.Name())
	}
	return err
}

// contains reports whether a path leads into the working directory although it does not
// look like it, as /HOME/me does on a system that ignores case. Rules for the working
// directory must hold there.
func (d dir) contains(full string) (rel string, ok bool) {
	own, err := os.Stat(d.real)
	if err != nil {
		return "", false
	}
	for at := full; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, own) {
			rel, err := filepath.Rel(at, full)
			return rel, err == nil
		}
		if at == filepath.Dir(at) {
			return "", false
		}
	}
}

// sameName reports whether two paths are the same one. Windows writes a path in the
// letters that its names were made with.
func sameName(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// maxLinks is how many links are followed on the way to a file, as in operating
// systems.
const maxLinks = 40

// walkedPath is how far a path was followed: the directories on the way, held open, and their
// names. The first has none: it is the working directory.
type walkedPath struct {
	dir   dir
	roots []*os.Root
	names []string
}

func (w *walkedPath) top() *os.Root { return w.roots[len(w.roots)-1] }

// back closes all directories but the first n.
func (w *walkedPath) back(n int) {
	for _, root := range w.roots[n:] {
		root.Close()
	}
	w.roots, w.names = w.roots[:n], w.names[:n-1]
}

// follow finds a file in the working directory, following links on the way. A file that does
// not exist yet has the name that it would get. os.Root follows links too, but it refuses
// absolute ones that stay inside, it replaces a link instead of the file, and its error does
// not say where a link leads.
func (w *walkedPath) follow(name string) (*openedPath, error) {
	rest, links := split(name), 0
	for len(rest) > 0 {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			if len(w.names) == 0 {
				return nil, fmt.Errorf("%s leads out of the working directory by a link", name)
			}
			w.back(len(w.roots) - 1)
			continue
		}
		full := filepath.Join(append(slices.Clone(w.names), next)...)
		info, err := w.top().Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && len(rest) == 0 && info.Mode()&fs.ModeSymlink == 0:
			rest = append([]string{next}, rest...)
			return &openedPath{w.top(), filepath.Join(rest...), filepath.Join(append(slices.Clone(w.names), rest...)...)}, nil
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			if err := w.enter(next, info); err != nil {
				return nil, err
			}
			continue
		}
		target, err := w.top().Readlink(next)
		if err != nil {
			return nil, err
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: there are too many links on the way", name)
		}
		if filepath.IsAbs(target) {
			p, err := w.dir.locate(target)
			if err != nil || p.outside {
				return nil, fmt.Errorf("%s leads out of the working directory: %s is a link to %s; name that path if you need it", name, full, target)
			}
			w.back(1)
			target = p.name
		}
		rest = append(split(target), rest...)
	}
	return &openedPath{w.top(), ".", filepath.Join(append([]string{"."}, w.names...)...)}, nil
}

// enter opens a directory, which must be the one that info describes: another program may
// have put a link in its place.
func (w *walkedPath) enter(name string, info fs.FileInfo) error {
	root, err := w.top().OpenRoot(name)
	if err != nil {
		return err
	}
	w.roots, w.names = append(w.roots, root), append(w.names, name)
	return isStill(root, info)
}

// split returns the names in a path.
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"), func(s string) bool { return s == "" || s == "." })
}

// openFile opens a regular file for reading.
func (p *openedPath) openFile() (*os.File, error) { return vfs.OpenIn(p.root, p.name) }

// explain rewords an error of the file system for a model.
func explain(p path, err error) error {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", p)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", p)
	case errors.Is(err, vfs.ErrNotRegular):
		return fmt.Errorf("%s is not a regular file", p)
	case errors.As(err, &pathErr):
		return fmt.Errorf("%s: %w", p, pathErr.Err)
	}
	return err
}
