package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/all"
)

// importSource is a file to be imported.
type importSource struct {
	path   string
	format *transcript.Format // nil: to be found out
	found  bool               // in a directory, and not named by the user
	size   int64
	err    error // why it, or what is in it, cannot be read
}

// sources lists what is to be imported.
func (r *importRun) sources(args []string) ([]importSource, error) {
	var list []importSource
	seen := make(map[string]bool)
	add := func(src importSource) {
		if !seen[src.path] {
			seen[src.path] = true
			list = append(list, src)
		}
	}
	for _, arg := range args {
		if arg == "-" {
			add(importSource{path: arg})
			continue
		}
		if err := walkSources(arg, add); err != nil {
			return nil, err
		}
	}
	if r.flags.all {
		for _, format := range all.Formats() {
			if r.flags.from == "" || r.flags.from == format.Name {
				placedSources(format, r.env(), add)
			}
		}
	}
	return list, nil
}

// env is the machine as formats see it.
func (a *app) env() transcript.Env {
	home := a.getenv("HOME")
	if home == "" || runtime.GOOS == "windows" {
		home, _ = os.UserHomeDir()
	}
	return transcript.Env{Home: home, Getenv: a.getenv, GOOS: runtime.GOOS}
}

// walkSources adds a file, or all files in a directory and below. Links in it
// are not followed: they may lead anywhere.
func walkSources(path string, add func(importSource)) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		add(importSource{path: path, size: info.Size()})
		return nil
	}
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it has gone in the meantime
		case errors.Is(err, fs.ErrPermission):
			add(importSource{path: name, found: true, err: err})
			return nil
		case err != nil:
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			add(importSource{path: name, found: true, size: sizeOf(d)})
		}
		return nil
	})
}

func sizeOf(d fs.DirEntry) int64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	return info.Size()
}

// placedSources adds what a format's program keeps where it usually does.
func placedSources(format *transcript.Format, env transcript.Env, add func(importSource)) {
	if format.Places == nil {
		return
	}
	for _, place := range format.Places(env) {
		if place.Match == nil {
			if info, err := os.Stat(place.Dir); err == nil && info.Mode().IsRegular() {
				add(importSource{path: place.Dir, format: format, found: true, size: info.Size()})
			}
			continue
		}
		_ = filepath.WalkDir(place.Dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrPermission) {
				add(importSource{path: name, format: format, found: true, err: err})
			}
			if err != nil || !d.Type().IsRegular() {
				return nil // a place need not exist
			}
			rel, err := filepath.Rel(place.Dir, name)
			if err == nil && place.Match(filepath.ToSlash(rel)) {
				add(importSource{path: name, format: format, found: true, size: sizeOf(d)})
			}
			return nil
		})
	}
}

// sayPlaces lists what was found on the machine.
func (r *importRun) sayPlaces(sources []importSource) {
	type find struct {
		files int
		size  int64
	}
	found := make(map[string]*find)
	for _, src := range sources {
		if src.format == nil || src.err != nil {
			continue
		}
		f := found[src.format.Name]
		if f == nil {
			f = &find{}
			found[src.format.Name] = f
		}
		f.files++
		f.size += src.size
	}
	if len(found) == 0 {
		r.say("found nothing of the programs that are known: %s", strings.Join(placedNames(), ", "))
	}
	for _, format := range all.Formats() {
		if f := found[format.Name]; f != nil {
			r.say("found %s of %s, %s", counted(f.files, "file", "files"), format.Title, humanBytes(f.size))
		}
	}
}

func placedNames() []string {
	var names []string
	for _, f := range all.Formats() {
		if f.Places != nil {
			names = append(names, f.Title)
		}
	}
	return names
}
