package home

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// This file finds the kind of a store, and opens stores. The kinds are registered: see StoreKind.
// The rest of the package works with any store.Store and asks it for capabilities with store.As.

// The schemes of the kinds that every program with a home has.
const (
	inFiles  = "file"
	inMemory = "mem"
)

// location is where a home is: the scheme of a kind of store, and the place within that kind.
type location struct{ scheme, where string }

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
	case where == inMemory+":":
		return location{inMemory, where}, nil
	case !isURL || len(scheme) < 2 || filepath.IsAbs(where): // one letter is a drive, as in C:
		return directory, nil
	}
	u, err := url.Parse(where)
	scheme = strings.ToLower(scheme)
	isDatabase := isOther(scheme) && kindOf(scheme) != nil
	switch {
	case err != nil && isDatabase && strings.HasPrefix(rest, "//"):
		// What is wrong with it is not said, nor is the URL: there may be a password in it.
		return location{}, &session.Error{
			Op: "open home", Err: session.Invalidf("the URL of the database cannot be read"),
			Hint: "give a URL such as postgres://user@host:5432/database; in a password, write a % as %25, an @ as %40, a / as %2F and a # as %23, or put it into PGPASSWORD",
		}
	case err != nil || u.Scheme == "":
		return directory, nil // with a colon in its name
	case u.Scheme == inFiles && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		if runtime.GOOS == "windows" {
			return location{inFiles, filepath.FromSlash(strings.TrimPrefix(u.Path, "/"))}, nil
		}
		return location{inFiles, u.Path}, nil
	case isDatabase:
		return location{scheme, where}, nil
	case IsAway(where):
		return location{}, &session.Error{
			Op: "open home", Err: session.Invalidf("this home is on another machine"),
			Hint: "a program opens it with package client, the command line with --server or --dir",
		}
	case !slices.ContainsFunc(parts.Stores, func(k StoreKind) bool { return isOther(k.Schemes[0]) }) && strings.HasPrefix(rest, "//") && u.Scheme != inFiles:
		return location{}, missingPart("open home", "databases")
	case strings.HasPrefix(rest, "//"), u.Scheme == inFiles:
		return location{}, &session.Error{
			Op: "open home", Path: u.Redacted(), Err: session.Invalidf("unknown kind of URL"),
			Hint: "give a directory, a URL such as file:///srv/sessions or postgres://user@host/database, or mem: for a home in memory",
		}
	}
	return directory, nil
}

// isOther reports whether stores of a scheme are neither directories nor in memory.
func isOther(scheme string) bool { return scheme != inFiles && scheme != inMemory }

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
	if err != nil || at.scheme != inFiles {
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

// openAt opens the store of a home that was prepared.
func (h *Home) openAt(ctx context.Context, at location) (err error) {
	if _, err := os.Stat(at.where); at.scheme == inFiles && errors.Is(err, fs.ErrNotExist) && !h.opts.Create {
		return &session.Error{
			Op: "look for sessions in", Path: at.where, Kind: session.ErrNotExist,
			Hint: "check the path; to create a home there, a program sets home.Options.Create",
		}
	}
	if h.kind, err = at.kind(); err != nil {
		return err
	}
	if h.store, err = h.kind.Open(ctx, at.where, h.storeOptions()); err != nil {
		return err
	}
	h.userStore, h.site = borrowed{h.store}, local{h}
	h.begin(ctx)
	return nil
}

// kind returns the kind of stores that a location is for.
func (at location) kind() (*StoreKind, error) {
	if k := kindOf(at.scheme); k != nil {
		return k, nil
	}
	return nil, missingPart("open home", map[string]string{inFiles: "homes in directories", inMemory: "homes in memory"}[at.scheme])
}

// openLazily opens the home's store a second time, to append without waiting for the disk each
// time. Closing it leaves that of the home open.
func (h *Home) openLazily(ctx context.Context) (store.Store, error) {
	o := h.storeOptions()
	if !h.kind.Waits {
		return borrowed{h.store}, nil
	}
	if o.Sync == 0 {
		o.Sync = time.Second
	}
	return h.kind.Open(ctx, h.store.Where(), o)
}

// storeOptions returns the settings that apply to a store.
func (h *Home) storeOptions() StoreOptions {
	o := StoreOptions{Limits: h.settings.limits(), MakeRoom: h.makeRoom(), Notices: parts.Notices, OnLoss: h.notifyLoss}
	switch sync := h.settings.Get(SettingSync).Value; sync {
	case "always":
	case "never":
		o.Sync = -1
	default:
		d, _ := time.ParseDuration(sync) // the rule has checked it
		o.Sync = max(d, 1)
	}
	return o
}

// notifyLoss says that a session was brought back from an archive without a part of it.
func (h *Home) notifyLoss(ctx context.Context, name string) {
	h.notify(ctx, Notice{Kind: ContentMissing, Session: name, Lost: []MissingContent{{Why: "a part of the archive is lost"}}})
}

// borrowed is a store that its owner closes.
type borrowed struct{ store.Store }

func (l borrowed) Unwrap() store.Store { return l.Store }
func (borrowed) Close() error          { return nil }

// unsupported is the error of an operation that the home's store does not support.
func (h *Home) unsupported(op, what string) error {
	return &session.Error{
		Op: op, Path: h.store.Where(), Err: session.Invalidf("this home is not a directory and has %s", what),
		Hint: "use a home in a directory",
	}
}

// makeRoom returns the function that makes room in a full store, or nil if there is none.
func (h *Home) makeRoom() func(ctx context.Context, st store.Store, n int) error {
	if h.rejectsWhenFull || h.settings.Get(SettingWhenFull).Value != whenFullTrash {
		return nil
	}
	return upkeep.MakeRoom(func(s upkeep.Session) {
		h.notify(context.Background(), Notice{Kind: SessionTrashed, Session: s.Name, Active: s.Active, Max: h.settings.limits().Logs})
	})
}

// openScratch opens a store for temporary data: in a directory that is deleted afterwards or, if
// dir is "", in memory.
func openScratch(ctx context.Context, dir string) (store.Store, error) {
	at := location{inFiles, dir}
	if dir == "" {
		at = location{inMemory, inMemory + ":"}
	}
	k, err := at.kind()
	if err != nil {
		return nil, err
	}
	return k.Open(ctx, at.where, StoreOptions{Limits: store.Limits{Entry: maxPassing}, Sync: -1})
}

// openOwn opens the store of the user's own home on this machine, or one in memory if there is no
// place for it.
func (s *Settings) openOwn(ctx context.Context) (store.Store, error) {
	if k := kindOf(inFiles); k != nil && s.ownDir() != "" {
		if st, err := k.Open(ctx, s.ownDir(), StoreOptions{}); err == nil {
			return st, nil
		}
	}
	return openScratch(ctx, "")
}

// storeIn opens the store in a directory, or returns nil if there is none or nothing was written
// to it.
func storeIn(ctx context.Context, dir string) store.Store {
	k := kindOf(inFiles)
	if k == nil {
		return nil
	}
	st, err := k.Open(ctx, dir, StoreOptions{})
	if err != nil {
		return nil
	}
	if d, ok := store.As[store.Directory](st); ok && exists(filepath.Dir(d.IndexPath())) {
		return st
	}
	_ = st.Close() // it has done nothing
	return nil
}
