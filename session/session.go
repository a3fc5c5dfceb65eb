package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// DefaultBlobThreshold is the default of Options.BlobThreshold.
const DefaultBlobThreshold = 32 << 10

// OnConflict says what an append does when another writer was faster.
type OnConflict int

const (
	// ReportConflict gives the caller a *ConflictError. It is the default. Where
	// the others only made remarks (labels, names, custom entries) there is no
	// conflict: the append goes on from our own leaf.
	ReportConflict OnConflict = iota
	// GrowBranch appends to our own leaf all the same: the tree gets a branch,
	// and neither writer's path has the other's entries in it.
	GrowBranch
	// ReportAll is ReportConflict for remarks too: an append lands only where
	// the session has seen everything before it.
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
	// NewID makes the id of a new entry. It must never return one twice.
	// Default: UUIDv7.
	NewID func(EntryType) string
	// Now tells the time. Default: time.Now.
	Now func() time.Time
	// Clean, if it is not nil, may change each entry before any of it is written,
	// to take secrets out, say; an error refuses the entry. The payload is the
	// caller's: Clean replaces what it changes. It must leave the type of the
	// payload alone and not call the session. Package session/clean has one.
	Clean func(*Entry) error
	// Logger gets a line for every damage that is found. Default: none.
	Logger *slog.Logger

	ownIDs bool // NewID is the default, and need not ask for the time again
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
	ctx context.Context // of its operations, or nil: see WithContext
}

// core is what all views of a session share.
type core struct {
	opts    Options
	store   store.Store
	owners  *atomic.Int32 // the sessions of which the last to be closed closes the store too; nil if none does
	log     store.Log
	name    string // which is the session's id
	header  Header // never changes
	strange string // the id that the header has instead of the name, or ""

	continuing sync.Mutex // so that there is one continuation; taken before mu

	mu     sync.RWMutex // guards what follows; never held while waiting for the disk's sync
	tree   *tree
	batch  batch // what is being appended
	failed error // why no more can be appended, or nil
	closed bool

	weight weight // of the log; kept only if that is limited

	cache       entryCache
	lastContext atomic.Pointer[sharedContext]
	pasts       pasts
	detail      headDetail // for when the whole log is read
}

// WithContext returns a view of the session whose operations end when ctx does:
// waiting for a lock, the disk or another machine, and reading what is long. It
// is the same session in all else, and closing either closes both. A view is made
// for one call or a few:
//
//	id, err := s.WithContext(ctx).AppendMessage(session.RoleUser, content)
//
// A context is usually the first parameter of a function. Here that would mean a
// second name for each of some forty methods, those of the first having been
// settled before; so it goes the way of (*http.Request).WithContext. An append
// that was cut short says whether it landed as any other does: see ErrUnknown.
func (s *Session) WithContext(ctx context.Context) *Session { return &Session{s.core, ctx} }

// context returns the context of the session's operations.
func (s *Session) context() context.Context {
	if s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// Create makes a new session in a store. The fields of the header that are
// empty are filled in.
func Create(ctx context.Context, st store.Store, h Header, o *Options) (*Session, error) {
	return create(ctx, st, h, o, nil, nil)
}

// createWith is Create with the first entries, which are there with the session or
// not at all.
func createWith(ctx context.Context, st store.Store, h Header, o *Options, entries ...Entry) (*Session, error) {
	next := &Session{core: &core{opts: o.withDefaults(), store: st, name: h.ID}}
	blobs := heldBlobs{store: st}
	defer blobs.release()
	lines, err := next.firstLines(ctx, &blobs, entries)
	if err != nil {
		return nil, err
	}
	return create(ctx, st, h, o, store.Lines(lines...), nil)
}

// firstLines returns the lines of entries with which a session begins that is yet
// to be made with the options and the store of this one.
func (s *Session) firstLines(ctx context.Context, blobs *heldBlobs, entries []Entry) ([][]byte, error) {
	next := Session{core: &core{opts: s.opts, store: s.store, name: s.name, tree: &tree{extent: extentWhole}}, ctx: ctx}
	w := writing{op: "create", entries: entries}
	if err := next.makeReady(ctx, blobs, &w); err != nil {
		return nil, err
	}
	if err := next.judge(ctx, &w); err != nil {
		return nil, err
	}
	b, err := next.encode(ctx, &w)
	if err != nil {
		return nil, err
	}
	return b.lines, nil
}

// create makes a session that holds the given lines from the start. If they come
// from a log, that must still be what it was: see store.CreateCopy.
func create(ctx context.Context, st store.Store, h Header, o *Options, lines iter.Seq2[[]byte, error], of store.Log) (*Session, error) {
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
		if yield(appendHeader(nil, &h), nil) && lines != nil {
			lines(yield)
		}
	}
	log, err := store.CreateCopy(ctx, st, h.ID, limited(st, h.ID, all), of)
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

// Open returns an existing session of a store. It reads the header and the end
// of the log; more is read when it is asked for. It writes nothing.
func Open(ctx context.Context, st store.Store, name string, o *Options) (*Session, error) {
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

// load reads the header and as much of the log's end as tells the leaf.
func (s *Session) load(ctx context.Context) error {
	h, err := readHeader(ctx, s.log)
	if err != nil {
		return err
	}
	end, err := s.log.End(ctx)
	if err != nil {
		return err
	}
	s.tree = &tree{end: end}
	var t *tree
	if h == nil {
		err = errNeedAll
	} else {
		t, err = loadTail(ctx, s.log, end, tailLeaf, nil)
	}
	if errors.Is(err, errNeedAll) {
		t, err = s.loadAll(ctx)
	}
	if err != nil {
		return err
	}
	if h == nil {
		h = t.header
	}
	if h == nil {
		h, err = s.inventHeader(t)
		if err != nil {
			return err
		}
	}
	s.tree, s.header = t, *h
	if h.ID != s.name {
		s.strange, s.header.ID = h.ID, s.name
	}
	return s.checkVersion()
}

// readHeader returns the header if it is where it should be, and nil if not.
func readHeader(ctx context.Context, log store.Log) (*Header, error) {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		head, ok := rawjson.ScanHead(line.Data)
		if !ok || string(head.Type) != string(TypeSession) {
			return nil, nil
		}
		h, err := decodeHeader(bytes.Clone(line.Data))
		if err != nil {
			return nil, nil // as good as missing: the whole log is read then
		}
		return h, nil
	}
	return nil, nil
}

// findHeader returns the header of a log, wherever damage put it, or nil if it has
// none.
func findHeader(ctx context.Context, log store.Log) (*Header, error) {
	if h, err := readHeader(ctx, log); h != nil || err != nil {
		return h, err
	}
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if isHeader(line.Data) {
			if h, err := decodeHeader(bytes.Clone(line.Data)); err == nil {
				return h, nil
			}
		}
	}
	return nil, nil
}

// inventHeader stands in for a header that is missing. A log without a single
// entry is not a session.
func (s *Session) inventHeader(t *tree) (*Header, error) {
	if len(t.nodes) == 0 {
		return nil, &Error{
			Op: "open", Name: s.name, Kind: ErrCorrupt,
			Err:  fmt.Errorf("no header and no entry in %d bytes", t.end),
			Hint: "repair it to bring back a backup, or recover it to start a new session and leave the file alone",
		}
	}
	t.report(ProblemHeader, "", 0, "the header is missing")
	h := &Header{Type: TypeSession, ID: s.name, Version: Version}
	if e, err := s.entryAt(s.context(), &t.nodes[0]); err == nil {
		h.CreatedAt = e.Timestamp
	}
	return h, nil
}

func (s *Session) checkVersion() error {
	version := strconv.Itoa(s.header.Version)
	// A number, but not one that we could have written. Beside one that we could,
	// it is a repeated member, which does not count.
	odd, _, _ := s.header.Extra.take("version")
	if s.header.Version == 0 && rawjson.Kind(odd) == 'n' {
		version = string(odd)
	} else if s.header.Version <= Version {
		return nil
	}
	return &Error{
		Op: "open", Name: s.name, Kind: ErrInvalid,
		Err:  fmt.Errorf("the session has format version %s, this program reads up to %d", version, Version),
		Hint: "use a newer program; the file was not changed",
	}
}

// loadAll reads the whole log up to where we know it.
func (s *Session) loadAll(ctx context.Context) (*tree, error) {
	end := s.tree.end
	if end == 0 {
		var err error
		if end, err = s.log.End(ctx); err != nil {
			return nil, err
		}
	}
	t, err := loadTree(ctx, s.log, end, s.detail)
	if err != nil {
		return nil, err
	}
	for _, p := range t.problems {
		s.opts.Logger.Warn("problem in session", "session", s.name, "problem", p.String())
	}
	return t, nil
}

// whole makes the tree complete. It is called with mu held for writing.
func (s *Session) whole(ctx context.Context) error {
	if s.tree.isWhole() {
		return nil
	}
	t, err := s.loadAll(ctx)
	if err != nil {
		return err
	}
	t.leaf = s.tree.leaf // ours, which may differ from the log's after a conflict
	t.leaf, _ = t.standsAt(t.leaf)
	s.tree = t
	return nil
}

// withWhole calls f with the complete tree, under the lock.
func (s *Session) withWhole(f func(t *tree) error) error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return s.errClosed("read")
	}
	if s.tree.isWhole() {
		defer s.mu.RUnlock()
		return f(s.tree)
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed("read")
	}
	if err := s.whole(s.context()); err != nil {
		return err
	}
	return f(s.tree)
}

// checkCurrent makes sure that nobody rewrote the log since it was opened. Reading
// the file would notice; but entries may be in our memory, and what was taken out
// of the log must not be read from there either.
func (s *Session) checkCurrent() error {
	if log, ok := s.log.(store.Pinner); ok {
		return log.Current()
	}
	return nil
}

func (s *Session) errClosed(op string) error {
	return &Error{Op: op, Name: s.name, Kind: ErrClosed}
}

// ID returns the session's id: the name by which its store knows it.
func (s *Session) ID() string { return s.name }

// Header returns the session's header. Its ID is that of the session, even if
// the log says another, because somebody renamed the file: see Problems.
func (s *Session) Header() Header {
	h := s.header
	h.Extra = h.Extra.clone()
	return h
}

// Path returns the session's file, or "" if its store has no files.
func (s *Session) Path() string {
	if p, ok := s.log.(interface{ Path() string }); ok {
		return p.Path()
	}
	return ""
}

// LeafID returns the entry that the next append will follow, or "" at a root.
func (s *Session) LeafID() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tree.leaf
}

// Refresh reads what other writers appended, and goes on from where the log
// says the leaf is. It reports whether there was anything new.
func (s *Session) Refresh() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, s.errClosed("refresh")
	}
	before := s.tree.end
	if err := s.absorb(s.context()); err != nil {
		return false, err
	}
	s.tree.leaf = s.tree.logLeaf
	return s.tree.end > before, nil
}

// Settle makes a session ready to go on after a crash. An entry whose writer was
// killed before it had written the line end is passed over by readers; Settle
// completes it and goes on from it, as Refresh does, and reports whether there
// was one. Call it before you build on what the session says: an append completes
// such an entry too, but then it is a branch beside the one appended.
func (s *Session) Settle(ctx context.Context) (bool, error) {
	log, ok := s.log.(store.Settler)
	if !ok {
		return false, nil
	}
	completed, err := log.Settle(ctx)
	if err != nil || !completed {
		return false, err
	}
	return s.Refresh()
}

// absorb takes in the lines that others appended. The leaf stays.
func (s *Session) absorb(ctx context.Context) error {
	s.tree.live = true
	for line, err := range s.log.Forward(ctx, s.tree.end) {
		if err != nil {
			return err
		}
		s.tree.addLine(line)
	}
	if s.tree.isWhole() {
		s.tree.settle()
		return nil
	}
	s.tree.pending = nil
	if s.tree.standing() {
		return nil
	}
	return s.whole(ctx) // only all of the log tells where the leaf stands
}

// Follow yields the entries after the ones known now, as they are appended by
// anyone, until ctx is done. It does not change the session: see Refresh.
func (s *Session) Follow(ctx context.Context) iter.Seq2[Entry, error] {
	s.mu.RLock()
	from := s.tree.end
	s.mu.RUnlock()
	return func(yield func(Entry, error) bool) {
		for line, err := range s.log.Watch(ctx, from) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e, err := decodeEntry(bytes.Clone(line.Data))
			if err != nil {
				if !yield(Entry{}, &Error{Op: "follow", Name: s.name, Offset: int64(line.Pos), At: true, Kind: ErrCorrupt, Err: err}) {
					return
				}
				continue
			}
			resolve(ctx, s.store.Blobs(), e, line.Pos)
			if !yield(*e, nil) {
				return
			}
		}
	}
}

// Flush is a barrier: when it returns nil, everything that was appended through
// this session before the call, and the session itself if it was created here,
// survive a power cut, however lazily the store was told to sync. With the
// default, Sync: Always, there is nothing to wait for. After an error that
// matches ErrUnknown the session takes no more: load it again.
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

// Close waits until everything appended is as durable as it was promised to be,
// and releases the session's files.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.forget()
	err := s.log.Close()
	if s.owners != nil && s.owners.Add(-1) == 0 {
		err = errors.Join(err, s.store.Close())
	}
	return err
}
