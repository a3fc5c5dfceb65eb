package coppice

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

// Home is a place where sessions are kept, opened with its index and settings.
// Its operations come in groups; each takes a request and returns a result, both
// plain data. A Home may be used by several goroutines at once.
type Home struct {
	Sessions *Sessions // find, list, begin, copy, name and put away sessions
	Entries  *Entries  // read and write their entries
	Search   *Search   // find what was said, and count it
	Transfer *Transfer // read and write the files of other programs
	Upkeep   *Upkeep   // check, repair, clean and throw away

	opts     Options
	settings *Settings
	store    *file.Store // the only kind of home there is so far
	// guarded is renewed by every operation that writes: this process or another one
	// may have taken out more since the home was opened.
	guarded atomic.Pointer[guarded]

	// opening is held while the index is opened, moved or deleted, which may take as
	// long as another process keeps its lock.
	opening gate.Mutex
	ixTemp  string // guarded by opening: the directory to delete at the end, or ""

	mu       sync.Mutex     // guards what follows; nobody waits for anything while holding it
	ix       *index.Index   // nil until somebody asks for it
	ixUnused bool           // ix was made while nobody had written to the home yet
	retired  []*index.Index // what ix was before
	closed   bool
}

// Options are how a home is opened. The zero value reads the settings of the
// environment and says nothing.
type Options struct {
	// Settings are the home's. Default: LoadSettings(os.Getenv).
	Settings *Settings
	// Create makes a home that does not exist yet. Without it, Open returns
	// session.ErrNotExist.
	Create bool
	// Notify gets what a person should know and no result says. It may be called by
	// several goroutines at once, and must not call the home back: the operation
	// that it hears of may hold a lock.
	Notify func(Notice)
	// Progress hears how far work has come that takes a while: what is being done,
	// and how much of how much. It must return quickly, and must not call the home
	// back either.
	Progress func(doing string, done, total int64)
}

// The groups of operations. Each is a view of the same home.
type (
	// Sessions are the operations on whole sessions.
	Sessions struct{ home *Home }
	// Entries are the operations on what is in a session.
	Entries struct{ home *Home }
	// Search are the operations that ask the index about everything.
	Search struct{ home *Home }
	// Transfer are the operations that read and write other programs' files.
	Transfer struct{ home *Home }
	// Upkeep are the operations that look after a home.
	Upkeep struct{ home *Home }
)

// Open opens a home. where is a directory, a file: URL, or "" for the directory
// in the settings. Opening a home writes nothing, so a read-only one can be read.
func Open(ctx context.Context, where string, o *Options) (*Home, error) {
	h := &Home{}
	if o != nil {
		h.opts = *o
	}
	if h.settings = h.opts.Settings; h.settings == nil {
		var err error
		if h.settings, err = LoadSettings(os.Getenv); err != nil {
			return nil, err
		}
	}
	dir, err := h.dir(where)
	if err != nil {
		return nil, err
	}
	if err := h.openStore(ctx, dir); err != nil {
		return nil, err
	}
	h.Sessions, h.Entries, h.Search = &Sessions{h}, &Entries{h}, &Search{h}
	h.Transfer, h.Upkeep = &Transfer{h}, &Upkeep{h}
	return h, nil
}

// dir returns the directory that is meant.
func (h *Home) dir(where string) (string, error) {
	if where == "" {
		where = h.settings.Get(SettingDir).Value
	}
	if where == "" {
		return "", noHomeDir("open home")
	}
	scheme, _, isURL := strings.Cut(where, ":")
	if !isURL || len(scheme) < 2 || filepath.IsAbs(where) { // C: is a drive
		return where, nil
	}
	u, err := url.Parse(where)
	switch {
	case err != nil || u.Scheme == "":
		return where, nil // a directory with a colon in its name
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		if runtime.GOOS == "windows" {
			return filepath.FromSlash(strings.TrimPrefix(u.Path, "/")), nil
		}
		return u.Path, nil
	case strings.HasPrefix(where[len(scheme):], "://"), u.Scheme == "file":
		return "", &session.Error{
			Op: "open home", Path: where, Err: invalid("unknown kind of URL"),
			Hint: "give a directory, or a URL such as file:///srv/sessions",
		}
	}
	return where, nil
}

// noHomeDir is the error for a user without a home directory. Anything else would
// put their sessions into whatever directory they are in.
func noHomeDir(op string) error {
	return &session.Error{
		Op: op, Kind: session.ErrNotExist, Err: errors.New("no home directory: HOME is not set"),
		Hint: "set COPPICE_HOME to the directory for the sessions",
	}
}

func (h *Home) openStore(_ context.Context, dir string) (err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !h.opts.Create {
		return &session.Error{Op: "open home", Path: dir, Kind: session.ErrNotExist}
	}
	if h.store, err = file.Open(dir, h.storeOptions()); err != nil {
		return err
	}
	h.loadGuard()
	return nil
}

// storeOptions are the settings of the store, and what makes room in a full one.
func (h *Home) storeOptions() *file.Options {
	opts := h.settings.storeOptions()
	if h.settings.Get(SettingWhenFull).Value == whenFullTrash {
		opts.MakeRoom = upkeep.MakeRoom(func(s upkeep.Session) {
			h.notify(SessionTrashed{Name: s.Name, Active: s.Active, Max: opts.MaxLogs})
		})
	}
	return opts
}

// Close releases the home. What still asks for its index gets store.ErrClosed.
// Conversations that are still open stay usable.
func (h *Home) Close() error {
	return errors.Join(h.closeIndex(), h.store.Close())
}

// Dir is the directory of the home.
func (h *Home) Dir() string { return h.store.Dir() }

// Store is the store that the home keeps its sessions in, for programs that work
// with package session themselves.
func (h *Home) Store() *file.Store { return h.store }

// Settings are the settings of the home.
func (h *Home) Settings() *Settings { return h.settings }

func (h *Home) notify(n Notice) {
	if h.opts.Notify != nil {
		h.opts.Notify(n)
	}
}

// progress returns a function that reports how far something has come.
func (h *Home) progress(doing string) func(done, total int64) {
	return func(done, total int64) { h.reportProgress(doing, done, total) }
}

func (h *Home) reportProgress(doing string, done, total int64) {
	if h.opts.Progress != nil {
		h.opts.Progress(doing, done, total)
	}
}

// guarded is what was taken out of a home and must not come back.
type guarded struct {
	guard *clean.Guard
	// err is why that is not known. Reading goes on without; writing must not.
	err error
}

func (h *Home) loadGuard() {
	guard, err := clean.LoadGuard(h.store)
	h.guarded.Store(&guarded{guard, err})
}

// sessionOptions are what sessions are opened with.
func (h *Home) sessionOptions() *session.Options {
	// Clean is set even if nothing was ever taken out: that may happen while the
	// session is open.
	return &session.Options{BlobThreshold: h.settings.blobThreshold(), Clean: h.clean}
}

// clean is for session.Options.Clean. It takes out of an entry what was taken out
// of the home before, so that nothing which was redacted comes back, and if the
// settings ask for it every secret.
func (h *Home) clean(e *session.Entry) error {
	g := h.guarded.Load()
	if g.err != nil {
		return g.err
	}
	var found []redact.Finding
	var err error
	if h.settings.redacts() {
		found, err = clean.Entry(e)
	}
	if err == nil {
		var more []redact.Finding
		more, err = g.guard.Entry(e)
		found = append(found, more...)
	}
	for _, f := range found {
		h.notify(SecretRemoved{f})
	}
	return err
}

// beforeWriting is called first by every operation that writes. A redaction that
// was interrupted is finished before anything else is written: its secrets are
// known to be in the home, and a copy or a compaction would spread them.
func (h *Home) beforeWriting(ctx context.Context) {
	defer h.loadGuard()
	unfinished, err := clean.Unfinished(h.store)
	if err != nil || !unfinished {
		return // the operation itself will report what is wrong with the store
	}
	receipt, err := h.finishRedaction(ctx)
	if receipt != nil || err != nil {
		h.notify(RedactionFinished{receipt, err})
	}
}

func (h *Home) finishRedaction(ctx context.Context) (*clean.Receipt, error) {
	return clean.Finish(ctx, h.store, clean.Options{
		Progress: h.reportProgress,
		DropDerived: func(ctx context.Context) error {
			_, err := h.dropIndexes(ctx)
			return err
		},
	})
}
