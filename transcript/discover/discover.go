// Package discover finds transcripts: Known lists those that other programs keep on a
// machine, and Sources those in given files and directories.
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
	var list list
	for _, path := range paths {
		if path == Stdin {
			list.add(Source{Path: path})
			continue
		}
		if err := list.walk(path); err != nil {
			return nil, err
		}
	}
	return list.sources, nil
}

// Known lists the files that known programs keep on a machine, or only those of the given
// formats. A program that is not installed is not an error.
func Known(env transcript.Env, formats ...*transcript.Format) []Source {
	if len(formats) == 0 {
		formats = transcript.Formats()
	}
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	var list list
	for _, format := range formats {
		if format != nil {
			list.addUsual(format, env)
		}
	}
	return list.sources
}

// Join puts lists together. A file that is in several is listed once, where it
// comes first.
func Join(lists ...[]Source) []Source {
	var joined list
	for _, sources := range lists {
		for _, src := range sources {
			joined.add(src)
		}
	}
	return joined.sources
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

// list collects sources, each once.
type list struct {
	sources []Source
	seen    map[string]bool
}

func (l *list) add(src Source) {
	if l.seen[src.Path] {
		return
	}
	if l.seen == nil {
		l.seen = make(map[string]bool)
	}
	l.seen[src.Path] = true
	l.sources = append(l.sources, src)
}

// walk adds a file, or all files in a directory and below.
func (l *list) walk(path string) error {
	info, err := os.Stat(path)
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "import", Path: path, Err: wrong.Err} // not "stat", which nobody asked for
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		l.add(Source{Path: path, Size: info.Size()})
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
		if d.Type().IsRegular() {
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
func (l *list) addUsual(format *transcript.Format, env transcript.Env) {
	if format.Places == nil {
		return
	}
	for _, place := range format.Places(env) {
		if place.Match == nil {
			if info, err := os.Stat(place.Dir); err == nil && info.Mode().IsRegular() {
				l.add(Source{Path: place.Dir, Format: format, Found: true, Size: info.Size()})
			}
			continue
		}
		_ = walkBelow(place.Dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) {
				l.add(Source{Path: name, Format: format, Found: true, Err: err})
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
