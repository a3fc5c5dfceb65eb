package home

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
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
	Turns    *Turns    // let a model answer

	opts      Options
	settings  *Settings
	kind      *StoreKind // of the store
	store     store.Store
	site      site
	userStore store.Store // of the user's own home on this machine, with the trusted projects: see Trust
	turns     *turnTable
	keeper    *keeper
	uses      inUse
	// rejectsWhenFull means that a full home takes no more sessions, whatever the settings say.
	rejectsWhenFull bool
	// guarded is reloaded by every operation that writes, because this process or another
	// one may have redacted more since the home was opened.
	guarded atomic.Pointer[guarded]

	// opening is held while the index is opened, moved or deleted: see search_index.go.
	opening gate.Mutex
	ixTemp  *temporary // guarded by opening: deleted in Close

	mu       sync.Mutex     // guards what follows; never held while waiting for anything
	ix       *index.Index   // nil until it is needed
	ixUnused bool           // ix is in a temporary place because nothing had been written to the home yet
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
	// Notify gets what a person should know and no result contains. It may be called by
	// several goroutines at once. It must not call the home, because the operation that it
	// hears about may hold a lock.
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

// Open opens a home. where is a directory, a file: URL, a postgres: URL (see package
// store/postgres), "mem:" for a home in memory that ends with Close, or "" for what the settings
// say. What it is kept in must be registered: see Parts. Opening writes nothing, so a read-only
// home can be read.
func Open(ctx context.Context, where string, o *Options) (*Home, error) {
	h, err := prepare(o)
	if err != nil {
		return nil, err
	}
	at, err := h.settings.locate(where)
	if err != nil {
		return nil, err
	}
	if err := h.openAt(ctx, at); err != nil {
		return nil, err
	}
	return h, nil
}

// On opens a home on a store that the caller has opened, such as one that wraps another or keeps
// sessions somewhere else: see store.Store, store.Wrapper and package storetest. Close closes the
// store, too.
func On(ctx context.Context, st store.Store, o *Options) (*Home, error) {
	h, err := prepareOn(st, o)
	if err != nil {
		return nil, err
	}
	h.begin(ctx)
	return h, nil
}

// prepareOn returns a home that has a store already.
func prepareOn(st store.Store, o *Options) (*Home, error) {
	if st == nil {
		return nil, &session.Error{Op: "open home", Err: session.Invalidf("there is no store")}
	}
	h, err := prepare(o)
	if err != nil {
		return nil, err
	}
	h.kind, h.store, h.userStore, h.site = &StoreKind{}, st, borrowed{st}, local{h}
	return h, nil
}

// prepare returns a home that has no store yet.
func prepare(o *Options) (h *Home, err error) {
	h = &Home{turns: newTurnTable(), keeper: newKeeper()}
	if o != nil {
		h.opts = *o
	}
	if h.settings = h.opts.Settings; h.settings == nil {
		h.settings, err = LoadSettings(os.Getenv)
	}
	return h, err
}

// begin makes a home with a store ready.
func (h *Home) begin(ctx context.Context) {
	h.loadGuard(ctx)
	h.Sessions, h.Entries, h.Search = &Sessions{h}, &Entries{h}, &Search{h}
	h.Transfer, h.Upkeep = &Transfer{h}, &Upkeep{h}
	h.Turns = &Turns{h}
}

// Close ends the turns that run, and releases the home. Operations get store.ErrClosed from then
// on. Conversations that are still open stay usable.
func (h *Home) Close() error {
	h.turns.close()
	h.keeper.close()
	return errors.Join(h.closeIndex(), h.userStore.Close(), h.store.Close())
}

func (h *Home) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// Dir returns where the home is: its directory, "mem:" if it is in memory, or the address of its
// store if it is on another machine.
func (h *Home) Dir() string { return h.store.Where() }

// Store returns the store with the home's sessions, for programs that use package session
// directly.
func (h *Home) Store() store.Store { return h.store }

// Settings returns the settings of the home.
func (h *Home) Settings() *Settings { return h.settings }

// guarded holds the digests of redacted secrets, which must not come back.
type guarded struct {
	guard *clean.Guard
	// err is why that could not be loaded. Reading continues without it; writing must not,
	// or a redacted secret could come back.
	err error
}

func (h *Home) loadGuard(ctx context.Context) {
	// If the guard cannot be loaded, no caller can write, so loading must not end with the
	// context of one caller.
	guard, err := clean.LoadGuard(context.WithoutCancel(ctx), h.store)
	h.guarded.Store(&guarded{guard, err})
}

// sessionOptions returns the options for opening sessions.
func (h *Home) sessionOptions(ctx context.Context) *session.Options {
	// Clean is set even if nothing was ever redacted, because that may happen while the
	// session is open.
	return &session.Options{BlobThreshold: h.settings.blobThreshold(), Clean: h.cleaner(ctx), CleanCopy: h.cleanCopy}
}

// cleanCopy is the home's session.Options.CleanCopy. A session that was copied into the
// directory by hand may contain redacted secrets.
func (h *Home) cleanCopy(line []byte) ([]byte, error) {
	g := h.guarded.Load()
	return g.guard.JSON(line), g.err
}

// cleaner returns the home's session.Options.Clean: see clean.
func (h *Home) cleaner(ctx context.Context) func(*session.Entry) error {
	return func(e *session.Entry) error { return h.clean(ctx, e) }
}

// clean removes from an entry whatever was redacted in this home before, so that it cannot
// come back, and every other secret if the settings ask for it.
func (h *Home) clean(ctx context.Context, e *session.Entry) error {
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
		h.notify(ctx, Notice{Kind: SecretRemoved, Finding: &f})
	}
	return err
}

// beforeWriting must be called first by every operation that writes. It finishes a
// redaction that was interrupted before anything else is written: the secrets are still
// in the home, and a copy or a compaction would spread them.
func (h *Home) beforeWriting(ctx context.Context) {
	defer h.loadGuard(ctx)
	receipt, err := h.site.finishRedaction(ctx)
	if receipt != nil || err != nil {
		h.notify(ctx, Notice{Kind: RedactionFinished, Receipt: receipt, Error: described(err)})
	}
}

// beforeReplacing is beforeWriting for operations that remove, move or rewrite sessions.
func (h *Home) beforeReplacing(ctx context.Context) {
	h.beforeWriting(ctx)
	h.keeper.closeIdle()
}

func (h local) finishRedaction(ctx context.Context) (*clean.Receipt, error) {
	if unfinished, err := clean.Unfinished(ctx, h.store); err != nil || !unfinished {
		return nil, nil // the operation itself will report what is wrong with the store
	}
	h.keeper.closeIdle()
	dropped := false
	receipt, err := clean.Finish(ctx, h.store, clean.Options{
		Progress: h.reporter(ctx),
		DropDerived: func(ctx context.Context) error {
			_, err := h.dropIndexes(ctx)
			dropped = err == nil
			return err
		},
	})
	h.addIndexes(receipt, dropped)
	return receipt, err
}
