// Package discover finds transcripts: Known lists those that other programs keep on a
// machine, and Sources those in given files and directories. Looked does either for somebody
// who wants to be told of new files.
package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/transcript"
)

// Source is a file that may hold conversations.
type Source struct {
	Path string
	// Format is the one whose program keeps the file, or nil if only its content
	// can tell.
	Format *transcript.Format
	// Found is set for files that a search came across. Unlike a file that was named, such a
	// file may have no known format without that being an error.
	Found bool
	Size  int64
	// Err says why the file, or the directory, cannot be read.
	Err error
}

// Stdin is the path that means standard input.
const Stdin = "-"

// Sources lists the files that paths mean: a file itself, every file below a directory, and
// Stdin. Each file is listed once. A path that does not exist is an error; an unreadable file
// inside a directory is not.
func Sources(paths ...string) ([]Source, error) {
	var l Looked
	err := l.In(paths...)
	return l.Sources, err
}

// Known lists the files that known programs keep on a machine, or only those of the given
// formats. A program that is not installed is not an error.
func Known(env transcript.Env, formats ...*transcript.Format) []Source {
	if len(formats) == 0 {
		formats = transcript.Formats()
	}
	var l Looked
	l.For(env, formats...)
	return l.Sources
}

// Looked is what a search found, and where it looked. The zero value has looked nowhere. A file or
// directory that is come across twice is listed once, where it comes first.
type Looked struct {
	Sources []Source
	// Dirs are the directories that were listed, even empty ones, and those of the files that were
	// named: a new file appears in one of them, or a directory in which it then appears.
	Dirs []string

	seen map[string]bool // the directories with a separator at their end
}

// In looks at paths, as Sources does. If it returns an error, it has not looked at all of them.
func (l *Looked) In(paths ...string) error {
	for _, path := range paths {
		if path == Stdin {
			l.add(Source{Path: path})
			continue
		}
		if err := l.walk(path); err != nil {
			return err
		}
	}
	return nil
}

// For looks for what the programs of formats keep on a machine.
func (l *Looked) For(env transcript.Env, formats ...*transcript.Format) {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	for _, format := range formats {
		if format != nil {
			l.placed(format, env)
		}
	}
}

// Programs returns the formats whose programs have a place for their files: those
// that Known looks for.
func Programs() []*transcript.Format {
	var placed []*transcript.Format
	for _, f := range transcript.Formats() {
		if f.Places != nil {
			placed = append(placed, f)
		}
	}
	return placed
}

// Program is what a program keeps on a machine.
type Program struct {
	Name  string `json:"format"` // of the format
	Title string `json:"title"`  // of the program, as people call it
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// ByProgram sums up what was found, program by program in a fixed order. Files of unknown
// programs, and files that cannot be read, do not count.
func ByProgram(sources []Source) []Program {
	sums := make(map[string]*Program)
	for _, src := range sources {
		if src.Format == nil || src.Err != nil {
			continue
		}
		p := sums[src.Format.Name]
		if p == nil {
			p = &Program{Name: src.Format.Name, Title: src.Format.Title}
			sums[p.Name] = p
		}
		p.Files++
		p.Bytes += src.Size
	}
	var programs []Program
	for _, f := range transcript.Formats() {
		if p := sums[f.Name]; p != nil {
			programs = append(programs, *p)
		}
	}
	return programs
}

func (l *Looked) add(src Source) {
	if l.isNew(src.Path) {
		l.Sources = append(l.Sources, src)
	}
}

func (l *Looked) addDir(dir string) {
	dir = filepath.Clean(dir)
	if l.isNew(dir + string(filepath.Separator)) { // one that cannot be read is listed as a source, too
		l.Dirs = append(l.Dirs, dir)
	}
}

func (l *Looked) isNew(path string) bool {
	if l.seen[path] {
		return false
	}
	if l.seen == nil {
		l.seen = make(map[string]bool)
	}
	l.seen[path] = true
	return true
}

// walk adds a file, or all files in a directory and below.
func (l *Looked) walk(path string) error {
	info, err := os.Stat(path)
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "import", Path: path, Err: wrong.Err} // not "stat", which nobody asked for
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		l.add(Source{Path: path, Size: info.Size()})
		l.addDir(filepath.Dir(path))
		return nil
	}
	return walkBelow(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was deleted while we looked
		case errors.Is(err, fs.ErrPermission):
			l.add(Source{Path: name, Found: true, Err: err})
			return nil
		case err != nil:
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		switch {
		case d.IsDir():
			l.addDir(name)
		case d.Type().IsRegular():
			l.add(Source{Path: name, Found: true, Size: sizeOf(d)})
		}
		return nil
	})
}

// walkBelow walks through a directory, which may be a link to one. It does not follow links
// in it: they may lead anywhere, and round in circles.
func walkBelow(dir string, visit fs.WalkDirFunc) error {
	return filepath.WalkDir(dir+string(filepath.Separator), visit) // the separator makes the system follow the link
}

func sizeOf(d fs.DirEntry) int64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	return info.Size()
}

// addUsual adds what a format's program keeps where it usually does.
func (l *Looked) placed(format *transcript.Format, env transcript.Env) {
	if format.Places == nil {
		return
	}
	for _, place := range format.Places(env) {
		if place.Match == nil {
			if info, err := os.Stat(place.Dir); err == nil && info.Mode().IsRegular() {
				l.add(Source{Path: place.Dir, Format: format, Found: true, Size: info.Size()})
				l.addDir(filepath.Dir(place.Dir))
			}
			continue
		}
		_ = walkBelow(place.Dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) {
				l.add(Source{Path: name, Format: format, Found: true, Err: err})
			}
			if err == nil && d.IsDir() {
				l.addDir(name)
			}
			if err != nil || !d.Type().IsRegular() {
				return nil // a place need not exist
			}
			rel, err := filepath.Rel(place.Dir, name)
			if err == nil && place.Match(filepath.ToSlash(rel)) {
				l.add(Source{Path: name, Format: format, Found: true, Size: sizeOf(d)})
			}
			return nil
		})
	}
}
