package home

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/upkeep"
)

// This file knows which kinds of stores there are: directories, memory, and the databases of
// Parts. The rest of the package works with any store.Store and asks it for capabilities with
// store.As.

// location is where a home is: a kind of store, and the place within that kind.
type location struct {
	kind  *kind
	where string
}

// kind is a kind of store that a home can be in.
type kind struct {
	scheme string
	open   func(ctx context.Context, h *Home, where string) (store.Store, error)
	// lazily opens an open store a second time, to append without waiting for the disk each
	// time.
	lazily func(h *Home) (store.Store, error)
	// room, if it is not nil, opens the room that a store has for an index: see Database.
	room func(ctx context.Context, st store.Store) (room.Room, error)
	// migrate, if it is not nil, is that of Database.
	migrate func(ctx context.Context, url, blobs string) (*MigrateResult, error)
}

var (
	inFiles  = &kind{scheme: "file", open: openFiles, lazily: openFilesLazily}
	inMemory = &kind{scheme: "mem", open: openMemory, lazily: openLent}
)

// locate returns the location that a directory or a URL means.
func (s *Settings) locate(where string) (location, error) {
	if where == "" {
		where = s.home
	}
	if where == "" {
		return location{}, noHomeDir("open home")
	}
	directory := location{inFiles, where}
	scheme, rest, isURL := strings.Cut(where, ":")
	switch {
	case where == inMemory.scheme+":":
		return location{inMemory, where}, nil
	case !isURL || len(scheme) < 2 || filepath.IsAbs(where): // one letter is a drive, as in C:
		return directory, nil
	}
	u, err := url.Parse(where)
	database := databaseOf(strings.ToLower(scheme))
	switch {
	case err != nil && database != nil && strings.HasPrefix(rest, "//"):
		// What is wrong with it is not said, nor is the URL: there may be a password in it.
		return location{}, &session.Error{
			Op: "open home", Err: session.Invalidf("the URL of the database cannot be read"),
			Hint: "give a URL such as postgres://user@host:5432/database; in a password, write a % as %25, an @ as %40, a / as %2F and a # as %23, or put it into PGPASSWORD",
		}
	case err != nil || u.Scheme == "":
		return directory, nil // with a colon in its name
	case u.Scheme == inFiles.scheme && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		if runtime.GOOS == "windows" {
			return location{inFiles, filepath.FromSlash(strings.TrimPrefix(u.Path, "/"))}, nil
		}
		return location{inFiles, u.Path}, nil
	case database != nil:
		return location{inDatabase(database), where}, nil
	case IsAway(where):
		return location{}, &session.Error{
			Op: "open home", Err: session.Invalidf("this home is on another machine"),
			Hint: "a program opens it with package client, the command line with --server or --dir",
		}
	case len(parts.Databases) == 0 && strings.HasPrefix(rest, "//") && u.Scheme != inFiles.scheme:
		return location{}, without("open home", "databases")
	case strings.HasPrefix(rest, "//"), u.Scheme == inFiles.scheme:
		return location{}, &session.Error{
			Op: "open home", Path: u.Redacted(), Err: session.Invalidf("unknown kind of URL"),
			Hint: "give a directory, a URL such as file:///srv/sessions or postgres://user@host/database, or mem: for a home in memory",
		}
	}
	return directory, nil
}

// Absolute returns what means the same home in every directory: the whole path of a directory,
// and a URL as it is, even with a password. where is as for Open.
func (s *Settings) Absolute(where string) (string, error) {
	if where == "" {
		where = s.home
	}
	if IsAway(where) {
		return where, nil
	}
	at, err := s.locate(where)
	if err != nil || at.kind != inFiles {
		return where, err
	}
	return filepath.Abs(at.where)
}

// noHomeDir is the error for a user without a home directory. Any fallback would put their
// sessions into whatever directory they are in.
func noHomeDir(op string) error {
	return &session.Error{
		Op: op, Kind: session.ErrNotExist, Err: errors.New("no home directory: HOME is not set"),
		Hint: "set COPPICE_HOME to the directory for the sessions",
	}
}

func openFiles(_ context.Context, h *Home, dir string) (store.Store, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !h.opts.Create {
		return nil, &session.Error{
			Op: "look for sessions in", Path: dir, Kind: session.ErrNotExist,
			Hint: "check the path; to create a home there, a program sets home.Options.Create",
		}
	}
	return file.Open(dir, h.fileOptions())
}

func openFilesLazily(h *Home) (store.Store, error) {
	opts := h.fileOptions()
	if opts.Sync == file.Always {
		opts.Sync = file.Every(time.Second)
	}
	return file.Open(h.store.Where(), opts)
}

// fileOptions returns the settings that apply to a store of files.
func (h *Home) fileOptions() *file.Options {
	limits := h.settings.limits()
	opts := &file.Options{
		FS:      vfs.OS{KeepOwner: true, Notices: parts.Notices},
		MaxLine: limits.Entry, MaxLog: limits.Log, MaxLogs: limits.Logs, MakeRoom: h.makeRoom(),
		OnLoss: h.notifyLoss,
	}
	switch sync := h.settings.Get(SettingSync).Value; sync {
	case "always":
		opts.Sync = file.Always
	case "never":
		opts.Sync = file.Never
	default:
		d, _ := time.ParseDuration(sync) // the rule has checked it
		opts.Sync = file.Every(d)
	}
	return opts
}

// notifyLoss says that a session was brought back from an archive without a part of it.
func (h *Home) notifyLoss(ctx context.Context, name string) {
	h.notify(ctx, Notice{Kind: ContentMissing, Session: name, Lost: []MissingContent{{Why: "a part of the archive is lost"}}})
}

func openMemory(_ context.Context, h *Home, _ string) (store.Store, error) {
	limits := h.settings.limits()
	return memory.New(&memory.Options{MaxLine: limits.Entry, MaxLog: limits.Log, MaxLogs: limits.Logs, MakeRoom: h.makeRoom()}), nil
}

// inDatabase returns the kind of stores in a database.
func inDatabase(d *Database) *kind {
	open := func(ctx context.Context, h *Home, where string) (store.Store, error) {
		return d.Open(ctx, where, h.settings.limits(), h.makeRoom())
	}
	return &kind{scheme: d.Schemes[0], open: open, lazily: openLent, room: d.Room, migrate: d.Migrate}
}

// openLent is for stores that have nothing to gain from not waiting.
func openLent(h *Home) (store.Store, error) { return lent{h.store}, nil }

// lent is a store that its owner closes.
type lent struct{ store.Store }

func (l lent) Unwrap() store.Store { return l.Store }
func (lent) Close() error          { return nil }

// lacks is the error of an operation that the home's store does not support.
func (h *Home) lacks(op, what string) error {
	return &session.Error{
		Op: op, Path: h.store.Where(), Err: session.Invalidf("this home is not a directory and has %s", what),
		Hint: "use a home in a directory",
	}
}

// makeRoom returns the function that makes room in a full store, or nil if there is none.
func (h *Home) makeRoom() MakeRoom {
	if h.crowded || h.settings.Get(SettingWhenFull).Value != whenFullTrash {
		return nil
	}
	return upkeep.MakeRoom(func(s upkeep.Session) {
		h.notify(context.Background(), Notice{Kind: SessionTrashed, Session: s.Name, Active: s.Active, Max: h.settings.limits().Logs})
	})
}

// scratchIn opens a store in a directory that is deleted afterwards.
func scratchIn(dir string) (store.Store, error) {
	return file.Open(dir, &file.Options{Sync: file.Never, MaxLine: maxPassing})
}

// own opens the store of the user's own home on this machine, or one in memory if there is no
// place for it.
func (s *Settings) own() store.Store {
	if st, err := file.Open(s.ownDir(), nil); s.ownDir() != "" && err == nil {
		return st
	}
	return memory.New(nil)
}

// isStore reports whether a directory is a store that has been written to.
func isStore(dir string) bool { return file.IsStore(dir) }

// storeIn opens the store that a directory is.
func storeIn(dir string) (store.Store, error) { return file.Open(dir, nil) }
