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

// Home is a place where sessions are kept, opened with its settings and its index. Operations
// come in groups; each takes a request and returns a result, both plain data. A Home may be
// used by several goroutines at once.
type Home struct {
	Sessions *Sessions // find, list, create, copy, name and remove sessions
	Entries  *Entries  // read and write their entries
	Search   *Search   // find what was said, and count it
	Transfer *Transfer // read and write the files of other programs
	Upkeep   *Upkeep   // check, repair, clean and delete

	opts     Options
	settings *Settings
	store    *file.Store // the only kind of home so far
	// guarded is reloaded by every operation that writes, because this process or another
	// one may have redacted more since the home was opened.
	guarded atomic.Pointer[guarded]

	// opening is held while the index is opened, moved or deleted: see catalogue.go.
	opening gate.Mutex
	ixTemp  *temporary // guarded by opening: deleted in Close

	mu       sync.Mutex     // guards what follows; nobody waits for anything while holding it
	ix       *index.Index   // nil until it is needed
	ixUnused bool           // ix is in a temporary place because nobody had written to the home yet
	retired  []*index.Index // previous values of ix, which other goroutines may still be using
	closed   bool
}

// Options adjusts how a home is opened. The zero value takes the settings from the
// environment and reports nothing on the side.
type Options struct {
	// Settings are the home's. Default: LoadSettings(os.Getenv).
	Settings *Settings
	// Create creates the home if it does not exist. Without it, Open returns
	// session.ErrNotExist.
	Create bool
	// Notify gets what a person should know and no result says. It may be called by several
	// goroutines at once. It must not call the home, because the operation that it hears
	// about may hold a lock.
	Notify func(Notice)
	// Progress gets how far a long operation has come: what it is doing, and how much of how
	// much is done. It must return quickly, and must not call the home either.
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

// Open opens a home. where is a directory, a file: URL, or "" for the directory in the
// settings. Opening writes nothing, so a read-only home can be read.
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

// dir returns the directory that where means.
func (h *Home) dir(where string) (string, error) {
	if where == "" {
		where = h.settings.Get(SettingDir).Value
	}
	if where == "" {
		return "", noHomeDir("open home")
	}
	scheme, _, isURL := strings.Cut(where, ":")
	if !isURL || len(scheme) < 2 || filepath.IsAbs(where) { // one letter is a drive, as in C:
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
			Op: "open home", Path: where, Err: session.Invalidf("unknown kind of URL"),
			Hint: "give a directory, or a URL such as file:///srv/sessions",
		}
	}
	return where, nil
}

// noHomeDir is the error for a user without a home directory. Any fallback would put their
// sessions into whatever directory they are in.
func noHomeDir(op string) error {
	return &session.Error{
		Op: op, Kind: session.ErrNotExist, Err: errors.New("no home directory: HOME is not set"),
		Hint: "set COPPICE_HOME to the directory for the sessions",
	}
}

func (h *Home) openStore(_ context.Context, dir string) (err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !h.opts.Create {
		return &session.Error{Op: "look for sessions in", Path: dir, Kind: session.ErrNotExist}
	}
	if h.store, err = file.Open(dir, h.storeOptions()); err != nil {
		return err
	}
	h.loadGuard()
	return nil
}

// storeOptions returns the options of the store, including what makes room in a full one.
func (h *Home) storeOptions() *file.Options {
	opts := h.settings.storeOptions()
	if h.settings.Get(SettingWhenFull).Value == whenFullTrash {
		opts.MakeRoom = upkeep.MakeRoom(func(s upkeep.Session) {
			h.notify(Notice{Kind: SessionTrashed, Session: s.Name, Active: s.Active, Max: opts.MaxLogs})
		})
	}
	return opts
}

// Close releases the home. Operations that still need its index get store.ErrClosed.
// Conversations that are still open stay usable.
func (h *Home) Close() error {
	return errors.Join(h.closeIndex(), h.store.Close())
}

// Dir returns the directory of the home.
func (h *Home) Dir() string { return h.store.Dir() }

// Store returns the store with the home's sessions, for programs that use package session
// directly.
func (h *Home) Store() *file.Store { return h.store }

// Settings returns the settings of the home.
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

// guarded is what was redacted in a home and must not come back.
type guarded struct {
	guard *clean.Guard
	// err is why that could not be loaded. Reading continues without it; writing must not,
	// or a redacted secret could come back.
	err error
}

func (h *Home) loadGuard() {
	guard, err := clean.LoadGuard(h.store)
	h.guarded.Store(&guarded{guard, err})
}

// sessionOptions returns the options for opening sessions.
func (h *Home) sessionOptions() *session.Options {
	// Clean is set even if nothing was ever redacted, because that may happen while the
	// session is open.
	return &session.Options{BlobThreshold: h.settings.blobThreshold(), Clean: h.clean, CleanCopy: h.cleanCopy}
}

// cleanCopy is the home's session.Options.CleanCopy. A session that was copied into the
// directory by hand may have what was redacted here.
func (h *Home) cleanCopy(line []byte) ([]byte, error) {
	g := h.guarded.Load()
	return g.guard.JSON(line), g.err
}

// clean is the home's session.Options.Clean. It takes out whatever was redacted in this home
// before, so that it cannot come back, and every other secret if the settings ask for it.
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
		h.notify(Notice{Kind: SecretRemoved, Finding: &f})
	}
	return err
}

// beforeWriting must be called first by every operation that writes. It finishes a
// redaction that was interrupted before anything else is written: the secrets are still
// in the home, and a copy or a compaction would spread them.
func (h *Home) beforeWriting(ctx context.Context) {
	defer h.loadGuard()
	unfinished, err := clean.Unfinished(h.store)
	if err != nil || !unfinished {
		return // the operation itself will report what is wrong with the store
	}
	receipt, err := h.finishRedaction(ctx)
	if receipt != nil || err != nil {
		h.notify(Notice{Kind: RedactionFinished, Receipt: receipt, Error: described(err)})
	}
}

func (h *Home) finishRedaction(ctx context.Context) (*clean.Receipt, error) {
	dropped := false
	receipt, err := clean.Finish(ctx, h.store, clean.Options{
		Progress: h.reportProgress,
		DropDerived: func(ctx context.Context) error {
			_, err := h.dropIndexes(ctx)
			dropped = err == nil
			return err
		},
	})
	h.addIndexes(receipt, dropped)
	return receipt, err
}
