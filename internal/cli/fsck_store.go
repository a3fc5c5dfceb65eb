package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// checkStore looks at all sessions and at everything else in the store.
func (c *checker) checkStore(ctx context.Context) error {
	var names []string
	for stat, err := range c.store.List(ctx) {
		if err != nil && stat.Name == "" {
			return err
		}
		names = append(names, stat.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.checkSession(ctx, name); err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context) error{c.checkIgnored, c.checkModes, c.checkStale, c.checkBlobs, c.checkIndex} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkIndex looks for damage in the index, which can always be made anew.
func (c *checker) checkIndex(ctx context.Context) error {
	path := c.store.IndexPath()
	err := index.Verify(ctx, path)
	if !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	detail := "damaged: coppice index rebuild makes it anew: " + err.Error()
	return c.found(finding{Kind: kindIndex, Path: path, Detail: detail})
}

// checkIgnored looks for files that seem to be sessions and are not listed.
func (c *checker) checkIgnored(context.Context) error {
	entries, err := os.ReadDir(c.store.Dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isLog := strings.CutSuffix(e.Name(), ".jsonl")
		detail := ""
		switch {
		case !isLog:
		case !e.Type().IsRegular():
			detail = "it is not a regular file, so it is not taken for a session"
		case store.CheckName(name) != nil:
			detail = "its name cannot be that of a session: " + store.CheckName(name).Error()
		}
		if detail == "" {
			continue
		}
		if err := c.found(finding{Kind: kindIgnored, Path: filepath.Join(c.store.Dir(), e.Name()), Detail: detail}); err != nil {
			return err
		}
	}
	return nil
}

// wide is a file that others than its owner can get at.
type wide struct {
	path      string
	mode, fit fs.FileMode
}

func (w wide) finding(name string) finding {
	return finding{
		Session: name, Kind: kindPermissions, Path: w.path,
		Detail: fmt.Sprintf("%s has mode %04o, wider than %04o", w.path, w.mode, w.fit),
	}
}

// wideMode reports whether a file has more permissions than it should. Windows
// has others, which are not looked at.
func wideMode(path string) (wide, bool) {
	info, err := os.Lstat(path)
	if err != nil || runtime.GOOS == "windows" {
		return wide{}, false
	}
	w := wide{path, info.Mode().Perm(), 0o600}
	switch {
	case info.IsDir():
		w.fit = 0o700
	case !info.Mode().IsRegular():
		return w, false
	}
	return w, w.mode&^w.fit != 0
}

// wideModes returns all files of the store, except those of single sessions,
// that have more permissions than they should.
func wideModes(st *file.Store) ([]wide, error) {
	var all []wide
	add := func(path string) {
		if w, ok := wideMode(path); ok {
			all = append(all, w)
		}
	}
	add(st.Dir())
	err := filepath.WalkDir(st.House(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		room := filepath.Base(filepath.Dir(path))
		if err == nil && (d.IsDir() || room != "archive" && room != "locks") {
			add(path)
		}
		return err
	})
	return all, err
}

func (c *checker) checkModes(context.Context) error {
	all, err := wideModes(c.store)
	for _, w := range all {
		if err := c.found(w.finding("")); err != nil {
			return err
		}
	}
	return err
}

// checkStale looks for what interrupted programs left.
func (c *checker) checkStale(ctx context.Context) error {
	stale, err := c.store.Stale(ctx)
	if err != nil {
		return err
	}
	for _, f := range stale {
		kind, detail := describeStale(f)
		if err := c.found(finding{Kind: kind, Path: f.Path, Detail: detail + "; coppice repair --stale deletes it"}); err != nil {
			return err
		}
	}
	return nil
}

func describeStale(f file.Stale) (kind, detail string) {
	if f.Name != "" {
		return kindStaleLock, fmt.Sprintf("the lock of a session %q that does not exist", f.Name)
	}
	return kindStale, humanBytes(f.Size) + " that a writer left when it was stopped"
}

// checkBlobs looks at the blobs that nothing refers to. The others were read with
// their sessions.
func (c *checker) checkBlobs(ctx context.Context) error {
	all, err := c.store.Unreferenced(ctx)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil && c.blind:
		return nil // why was reported with a session
	case err != nil:
		return c.found(finding{Kind: kindUnreadable, Path: c.store.Dir(), Detail: "which blobs are needed is not known: " + err.Error()})
	}
	for _, blob := range all {
		f := finding{Kind: kindUnreferenced, Path: blob.Path}
		_, err := c.store.Blobs().Get(ctx, blob.Ref)
		switch {
		case errors.Is(err, session.ErrNotExist):
			continue
		case errors.Is(err, session.ErrCorrupt):
			f.Kind, f.Detail = kindCorruptBlob, "the content does not match its name; no session refers to it"
		case err != nil:
			f.Kind, f.Detail = kindUnreadable, err.Error()
		default:
			f.Detail = describeUnreferenced(blob)
		}
		if err := c.found(f); err != nil {
			return err
		}
	}
	return nil
}
