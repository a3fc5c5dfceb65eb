package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
)

// DefaultBlobThreshold is the default of Options.BlobThreshold.
const DefaultBlobThreshold = 32 << 10

// OnConflict says what an append does when another writer was faster.
type OnConflict int

const (
	// ReportConflict returns a *ConflictError. It is the default. If the others only
	// made remarks (labels, names, custom entries), that is not a conflict: the append
	// continues from our own leaf.
	ReportConflict OnConflict = iota
	// GrowBranch appends to our own leaf anyway: the tree gets a branch, and neither
	// writer's path contains the other's entries.
	GrowBranch
	// ReportAll treats remarks as conflicts too: an append lands only if the session has
	// seen everything before it.
	ReportAll
)

// Options adjusts a Session. The zero value is what most programs want.
type Options struct {
	// OnConflict says what to do when another writer was faster. Default:
	// ReportConflict.
	OnConflict OnConflict
	// BlobThreshold is the size in bytes above which images and tool output are
	// kept as blobs, once per content. Negative means never. Default: 32 KiB.
	BlobThreshold int
	// NewID returns the id of a new entry. It must never return the same one twice.
	// Default: UUIDv7.
	NewID func(EntryType) string
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Clean, if not nil, may change each entry before any of it is written, for example
	// to take secrets out. An error refuses the entry. The payload belongs to the caller,
	// so Clean must replace what it changes instead of writing into it. It must keep the
	// type of the payload and must not call the session. Package session/clean has one.
	Clean func(*Entry) error
	// CleanCopy, if not nil, may change each line that a new session copies from another
	// one: Fork does not decode what it copies. The result must have the
	// same ids. An error refuses the copy.
	CleanCopy func(line []byte) ([]byte, error)
	// Logger gets a line for every piece of damage that is found. Default: none.
	Logger *slog.Logger

	ownIDs bool // NewID is the default, so ids can be made from a time that is already known
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.BlobThreshold == 0 {
		opts.BlobThreshold = DefaultBlobThreshold
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.NewID == nil {
		now := opts.Now
		opts.NewID, opts.ownIDs = func(EntryType) string { return ids.next(now()) }, true
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}

// Session is a conversation that can be appended to, branched and read. All its
// methods may be called concurrently.
type Session struct {
	*core
	ctx context.Context // for its operations, or nil: see WithContext
}

// core is what all views of a session share.
//
// Locks are taken in this order, and each may be skipped: continuing; updating; a hold on
// blobs, for which another process may make us wait; that of queue; mu; then the short ones inside cache, pasts
// and tree.byID, which only guard memory.
//
// mu is held while lines are written, because the tree and the log must agree on where
// the log ends. It is released before they are synced: a sync takes milliseconds, and
// appends of other goroutines can only share one if they are written in the meantime.
type core struct {
	opts    Options
	store   store.Store
	owners  *atomic.Int32 // how many open sessions share the store; the last one to close closes it. nil: the caller does
	log     store.Log
	name    string // also the session's id
	header  Header // never changes
	strange string // the id in the header, if it differs from the name; else ""

	continuing   sync.Mutex // held while a continuation is made, so that there is only one; taken before mu
	conversation *Session   // that the session is part of: see Whole; guarded by continuing
	updating     gate.Mutex // held by Update until its entries are written, so that a slow one gets its turn

	mu     sync.RWMutex // guards what follows; released before an append is synced
	tree   *tree
	apart  bool  // the leaf is not the log's because an append had a conflict: see ConflictError
	batch  batch // the append in progress
	failed error // why nothing more can be appended, or nil
	closed bool

	weight weight // of the log; kept only if its size is limited

	cache       entryCache
	lastContext atomic.Pointer[sharedContext]
	pasts       pasts
	queue       queueCache
	linked      linkCache
	detail      headDetail // how closely to look if the whole log has to be read
}

// WithContext returns a view of the session whose operations end when ctx ends: waiting
// for a lock, the disk or another machine, and reading what is long. In every other way
// it is the same session, and closing either closes both. A view is made for one call or
// a few:
//
//	id, err := s.WithContext(ctx).AppendMessage(session.RoleUser, content)
//
// A context is usually the first parameter of a function. Here that would have meant a second
// name for each of some forty existing methods, so we follow (*http.Request).WithContext. An
// interrupted append reports whether it was written, like any other: see ErrUnknown.
func (s *Session) WithContext(ctx context.Context) *Session { return &Session{s.core, ctx} }

// context returns the context for the session's operations.
func (s *Session) context() context.Context {
	if s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// Create makes a new session in a store. Empty fields of the header are filled in.
func Create(ctx context.Context, st store.Store, h Header, o *Options) (*Session, error) {
	return create(ctx, st, h, o, nil, nil)
}

// createWith is Create with first entries: the session appears together with them, or not
// at all.
func createWith(ctx context.Context, st store.Store, h Header, o *Options, entries ...Entry) (*Session, error) {
	next := &Session{core: &core{opts: o.withDefaults(), store: st, name: h.ID}}
	blobs := heldBlobs{store: st}
	defer blobs.release()
	lines, err := next.firstLines(ctx, &blobs, &tree{extent: extentWhole}, entries)
	if err != nil {
		return nil, err
	}
	return create(ctx, st, h, o, store.Lines(lines...), nil)
}

// checkStore refuses a nil store.
func checkStore(op, name string, st store.Store) error {
	if st != nil {
		return nil
	}
	return &Error{Op: op, Name: name, Kind: ErrInvalid, Err: errors.New("the store is nil"), Hint: "open one first, for example with file.Open"}
}

// firstLines returns the lines of the entries with which a new session is to begin, after what
// its tree has. The new session will have the options and the store of this one.
func (s *Session) firstLines(ctx context.Context, blobs *heldBlobs, t *tree, entries []Entry) ([][]byte, error) {
	next := Session{core: &core{opts: s.opts, store: s.store, name: s.name, tree: t}, ctx: ctx}
	w := writing{op: "create", entries: entries, begins: true}
	if err := next.makeReady(ctx, blobs, &w); err != nil {
		return nil, err
	}
	if err := next.checkInLog(ctx, &w); err != nil {
		return nil, err
	}
	b, err := next.encode(ctx, &w)
	if err != nil {
		return nil, err
	}
	return b.lines, nil
}

// create makes a session that has the given lines from the start. If they come from a
// log, that log must not have changed in the meantime: see store.Store.CreateCopy.
func create(ctx context.Context, st store.Store, h Header, o *Options, lines iter.Seq2[[]byte, error], of store.Log) (*Session, error) {
	if err := checkStore("create", h.ID, st); err != nil {
		return nil, err
	}
	opts := o.withDefaults()
	h.Type, h.Version = TypeSession, Version
	if h.ID == "" {
		h.ID = opts.NewID(TypeSession)
	}
	if h.CreatedAt.IsZero() {
		h.CreatedAt = opts.Now().UTC()
	}
	s := &Session{core: &core{opts: opts, store: st, name: h.ID, header: h, tree: newTree()}}
	all := func(yield func([]byte, error) bool) {
		if !yield(appendHeader(nil, &h), nil) || lines == nil {
			return
		}
		lines(func(line []byte, err error) bool {
			if err == nil && of != nil && opts.CleanCopy != nil {
				line, err = opts.CleanCopy(line)
			}
			return yield(line, err)
		})
	}
	var log store.Log
	var err error
	if of == nil {
		log, err = st.Create(ctx, h.ID, limited(st, h.ID, all))
	} else {
		log, err = st.CreateCopy(ctx, h.ID, limited(st, h.ID, all), of)
	}
	if err != nil {
		return nil, err
	}
	s.log = log
	s.tree, err = s.loadAll(ctx)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, nil
}

// Open returns an existing session of a store. It reads the header and the end of the
// log, and more only when asked. It writes nothing.
func Open(ctx context.Context, st store.Store, name string, o *Options) (*Session, error) {
	if err := checkStore("open", name, st); err != nil {
		return nil, err
	}
	log, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &Session{core: &core{opts: o.withDefaults(), store: st, log: log, name: name}}
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, nil
}

// checkCurrent returns an error if the log was rewritten since it was opened. Reading
// the file would show that, but the cache may still have the old entries, and a secret
// that was removed from the log must not come back from there.
func (s *Session) checkCurrent() error { return s.log.Current() }

func (s *Session) errClosed(op string) error {
	return &Error{Op: op, Name: s.name, Kind: ErrClosed}
}

// ID returns the session's id: the name by which its store knows it.
func (s *Session) ID() string { return s.name }

// Store returns the store that has the session.
func (s *Session) Store() store.Store { return s.store }

// Header returns the session's header. Its ID is the name of the session, even if the
// log has another because the file was renamed: see Problems.
func (s *Session) Header() Header {
	h := s.header
	h.Extra = h.Extra.clone()
	return h
}

// File returns the path of the session's file, or "" if its store has no files.
func (s *Session) File() string {
	if p, ok := s.log.(interface{ Path() string }); ok {
		return p.Path()
	}
	return ""
}

// LeafID returns the entry that the next append will follow, or "" if it will be a root.
func (s *Session) LeafID() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tree.leaf
}

// Refresh reads what other writers appended and moves to the leaf that the log has now. It
// reports whether there was anything new. A chain also moves on to sessions that continue the
// last one.
func (s *Session) Refresh() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, s.errClosed("refresh")
	}
	before := s.tree.end
	if err := s.absorbAll(s.context()); err != nil {
		return false, err
	}
	s.tree.leaf, s.apart = s.tree.logLeaf, false
	return s.tree.end != before, nil
}

// absorb reads the lines that others appended. Our leaf stays where it is: only the caller
// can decide whether the other writer's entries belong before its own. It is called with
// mu held for writing.
func (s *Session) absorb(ctx context.Context) error {
	s.tree.live = true
	for line, err := range s.log.Forward(ctx, s.tree.end) {
		if err != nil {
			return err
		}
		s.tree.addLine(line)
	}
	if s.tree.isWhole() {
		s.tree.connect()
		return nil
	}
	s.tree.pending = nil
	if s.tree.resolveLeaf() {
		return nil
	}
	return s.loadWhole(ctx) // only the whole log shows where the leaf is
}

// Follow yields the entries after those known now, as anyone appends them, until ctx ends;
// that is no error. It does not change the session: see Refresh.
func (s *Session) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	s.mu.RLock()
	from := s.tree.end
	s.mu.RUnlock()
	return func(yield func(Entry, error) bool) {
		for line, err := range s.log.Watch(ctx, from) {
			if err != nil {
				if ctx.Err() == nil {
					yield(Entry{}, err)
				}
				return
			}
			e, err := decodeEntry(bytes.Clone(line.Data))
			if err != nil {
				if !yield(Entry{}, &Error{Op: "follow", Name: s.name, Offset: int64(line.Pos), At: true, Kind: ErrCorrupt, Err: err}) {
					return
				}
				continue
			}
			if _, err := resolve(ctx, s.store.Blobs(), e, line.Pos); err != nil {
				if ctx.Err() == nil {
					yield(Entry{}, err)
				}
				return
			}
			if !yield(*e, nil) {
				return
			}
		}
	}
}

// Flush is a barrier. When it returns nil, everything appended through this session
// before the call survives a power cut, whatever the store's Sync is; so does the session
// itself if it was created here. With the default, Sync: Always, there is nothing to wait
// for. After an error that matches ErrUnknown the session accepts no more appends: load
// it again.
func (s *Session) Flush(ctx context.Context) error {
	s.mu.RLock()
	closed, failed := s.closed, s.failed
	s.mu.RUnlock()
	if closed {
		return s.errClosed("flush")
	}
	if failed != nil {
		return &Error{
			Op: "flush", Name: s.name, Kind: ErrUnknown, Err: fmt.Errorf("an earlier append failed: %w", failed),
			Hint: "load the session again to see whether it was written",
		}
	}
	err := s.log.Flush(ctx)
	if errors.Is(err, ErrUnknown) {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
	}
	return err
}

// Close waits until everything appended is as durable as the store promises, and releases
// the session's files.
func (s *Session) Close() error {
	s.continuing.Lock()
	defer s.continuing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.forget()
	err := s.log.Close()
	if s.conversation != nil {
		err = errors.Join(err, s.conversation.Close())
	}
	if s.owners != nil && s.owners.Add(-1) == 0 {
		err = errors.Join(err, s.store.Close())
	}
	return err
}
