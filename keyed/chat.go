package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// chat is the conversation of one key while it is in memory.
type chat struct {
	manager *core
	key, id string

	// writing is held by whoever changes the conversation or reads the log. It
	// guards what follows.
	writing gate.Mutex
	ctx     context.Context  // of what is being done; nil if nothing is
	session *session.Session // with that context; nil if it is not open
	settled bool             // what a crash may have left at its end was settled
	wanted  bool             // it is to be made if it does not exist
	written view             // what the log says
	undo    *undo            // what to do before the next append, or nil
	pending []change         // what is not in the log yet
	refused []error          // what will never be, and nobody was told yet
	newIDs  []string         // that the last append made

	// showing guards what readers see. It is never held during I/O, so no
	// reader waits for the disk.
	showing sync.RWMutex
	shown   view
	created time.Time
	exists  bool
	size    atomic.Int64 // of shown, in bytes

	// Guarded by the manager's mu.
	users   int
	used    time.Time
	counted int64 // the part of the manager's bytes
}

// snapshot is what a reader gets.
type snapshot struct {
	view
	created time.Time
	exists  bool
}

// lock lets the caller change the conversation, and read the log, with a context.
func (c *chat) lock(ctx context.Context) error {
	if err := c.writing.LockContext(ctx); err != nil {
		return err
	}
	c.setContext(ctx)
	return nil
}

// lockFor is lock that waits for its turn however long that takes.
func (c *chat) lockFor(ctx context.Context) {
	c.writing.Lock()
	c.setContext(ctx)
}

func (c *chat) unlock() {
	c.setContext(context.Background())
	c.writing.Unlock()
}

// setContext makes a context that of all that is done next. The session is a view
// of itself with that context.
func (c *chat) setContext(ctx context.Context) {
	c.ctx = ctx
	if c.session != nil {
		c.session = c.session.WithContext(ctx)
	}
}

// read returns the conversation as it is now, also what other processes wrote.
// While somebody here is writing, it is as it was before.
func (c *chat) read(ctx context.Context) snapshot {
	if c.writing.TryLock() {
		c.setContext(ctx)
		c.look()
		c.unlock()
	} else if !c.isShown() && c.lock(ctx) == nil { // it is being opened: there is nothing to see before
		c.look()
		c.unlock()
	}
	c.showing.RLock()
	defer c.showing.RUnlock()
	return snapshot{c.shown, c.created, c.exists}
}

func (c *chat) isShown() bool {
	c.showing.RLock()
	defer c.showing.RUnlock()
	return c.exists
}

// look takes in what is new in the log. What cannot be read now stays as it was:
// Save says why.
func (c *chat) look() {
	if c.session != nil {
		changed, err := c.session.Refresh()
		switch {
		case session.MustReopen(err):
			c.close() // redacted by somebody, say: what it was must not be shown any more
		case err == nil && changed:
			_ = c.load()
		}
	}
	if c.session == nil {
		_ = c.open()
	}
	c.show()
}

// want makes the session if it does not exist. If that fails, Save says why.
func (c *chat) want(ctx context.Context) {
	c.lockFor(ctx)
	defer c.unlock()
	c.wanted = true
	_ = c.ensure()
	c.show()
}

// do makes a change and shows its effect. It returns why the change was refused,
// or why it could not be written yet; it is then pending.
func (c *chat) do(ch change) error {
	c.pending = append(c.pending, ch)
	return c.settlePending(ch)
}

// settlePending writes what is pending, the last of which is the caller's.
func (c *chat) settlePending(own change) error {
	c.wanted = true
	err := c.flush(own)
	c.show()
	return err
}

// flush writes what is pending, in order. What is refused is kept for Save to
// report, unless it is the caller's own change: then its refusal is returned.
func (c *chat) flush(own change) error {
	if err := c.ensure(); err != nil {
		return err
	}
	for len(c.pending) > 0 {
		ch := c.pending[0]
		err := c.write(ch)
		if err != nil && !isRefusal(err) {
			return err
		}
		c.pending = c.pending[1:] // also a refused one: it must not hold up what comes after
		switch {
		case err == nil:
		case ch == own:
			return err
		default:
			c.refuse(err)
		}
	}
	c.pending = nil
	return nil
}

// ensure opens the session, or makes it if it is wanted. That there is none is
// no error.
func (c *chat) ensure() error {
	switch {
	case c.session != nil:
		return nil
	case c.wanted:
		return c.openOrCreate()
	}
	if err := c.open(); !errors.Is(err, session.ErrNotExist) {
		return err
	}
	return nil
}

// show lets readers see how things are.
func (c *chat) show() {
	v := c.written
	if len(c.pending) > 0 {
		v = v.with(c.pending, c.blobs())
	}
	c.showing.Lock()
	defer c.showing.Unlock()
	c.shown = v
	c.exists = c.session != nil || c.wanted
	if c.session != nil {
		c.created = c.session.Header().CreatedAt
	} else if c.wanted && c.created.IsZero() {
		c.created = c.manager.opts.Now().UTC()
	}
	if v.updated.IsZero() {
		c.shown.updated = c.created
	}
	c.size.Store(int64(v.bytes + len(v.summary)))
}

// maxReopens is how often an append opens the session again.
const maxReopens = 2

// write appends what a change says, after whatever other writers have written.
func (c *chat) write(ch change) error {
	for reopens := 0; ; reopens++ {
		err := session.Retry(func() error { return c.tryWrite(ch) }, c.catchUp)
		if !lost(err) || reopens == maxReopens {
			return err
		}
		if landed, err := c.reopen(); err != nil || landed {
			return err
		}
	}
}

// catchUp takes in what other writers have written.
func (c *chat) catchUp() error {
	if _, err := c.session.Refresh(); err != nil {
		return err
	}
	return c.load()
}

// lost reports whether the session must be opened again to go on: it may or may
// not have taken the entries, it was removed, rewritten, or closed below us.
func lost(err error) bool {
	return session.MustReopen(err) || errors.Is(err, session.ErrNotExist)
}

// settle is done once before the first write, because what a message follows is
// decided from what the log says. It must not be done by who only reads.
func (c *chat) settle() error {
	if c.settled {
		return nil
	}
	completed, err := c.session.Settle(c.ctx)
	if err == nil && completed {
		err = c.load()
	}
	c.settled = err == nil
	return err
}

func (c *chat) tryWrite(ch change) error {
	if err := c.settle(); err != nil {
		return err
	}
	if c.undo != nil {
		if err := c.undo.apply(c.session); err != nil {
			return err
		}
		c.undo = nil
	}
	c.newIDs = c.newIDs[:0]
	entries := ch.entries(c.written)
	if len(entries) == 0 {
		return nil
	}
	ids, err := c.session.AppendAll(entries...)
	if errors.Is(err, session.ErrInvalid) || errors.Is(err, session.ErrTooLarge) {
		return refusal{err}
	}
	if err != nil {
		return err
	}
	for i := range entries {
		entries[i].ID = ids[i]
	}
	if _, ok := ch.(*addition); ok {
		c.written = c.written.after(entries[0])
		return nil
	}
	// What is left of the view the session says. It is written, whether or not it
	// can be read again at the moment.
	before := c.written
	if err := c.load(); err != nil {
		c.written, _ = before.foresee(entries, c.blobs())
	}
	return nil
}

// reopen opens the session again, and reports whether the last append is in it.
// Entries that were not made yet have not landed.
func (c *chat) reopen() (landed bool, err error) {
	made := slices.Clone(c.newIDs)
	// This has to be found out now, or the entries might be written twice.
	defer c.setContext(c.ctx)
	c.ctx = context.WithoutCancel(c.ctx)
	c.close()
	if err := c.openOrCreate(); err != nil {
		return false, err
	}
	for _, id := range made {
		if _, err := c.session.Entry(id); errors.Is(err, session.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return len(made) > 0, nil
}

// close releases the session. The log is complete: whatever was to be written
// has been, or is still pending.
func (c *chat) close() {
	if c.session != nil {
		// An error here is of an append that has reported it already.
		_ = c.session.Close()
	}
	c.session, c.settled, c.written, c.undo = nil, false, view{}, nil
}

func (c *chat) openOrCreate() error {
	err := c.open()
	if !errors.Is(err, session.ErrNotExist) {
		return err
	}
	st, err := c.manager.store()
	if err != nil {
		return err
	}
	header := session.Header{ID: c.id, Key: c.key, CreatedAt: c.manager.opts.Now().UTC()}
	s, err := session.Create(c.ctx, st, header, c.options())
	if errors.Is(err, session.ErrExist) {
		return c.open() // another process was faster
	}
	if err != nil {
		return err
	}
	c.session = s.WithContext(c.ctx)
	return c.load()
}

// open opens the session of the key or, if there is none, takes over what
// picoclaw has left. It returns ErrNotExist if there is neither.
func (c *chat) open() error {
	st, err := c.manager.store()
	if err != nil {
		return err
	}
	ctx := c.ctx
	s, err := session.Open(ctx, st, c.id, c.options())
	if errors.Is(err, session.ErrNotExist) {
		if err := c.takeOver(ctx, st); err != nil {
			return err
		}
		s, err = session.Open(ctx, st, c.id, c.options())
	}
	if err != nil {
		return err
	}
	if key := s.Header().Key; key != c.key && key != "" { // a damaged header has none
		err := fmt.Errorf("it is the session of %.80q, not of %.80q", key, c.key)
		return errors.Join(&session.Error{Op: "open", Name: c.id, Kind: session.ErrCorrupt, Err: err}, s.Close())
	}
	c.retireOld()
	c.session = s.WithContext(ctx)
	return c.load()
}

// options makes the session tell which ids it makes, so that an append whose
// outcome is unknown can be looked for.
func (c *chat) options() *session.Options {
	return &session.Options{
		Now:    c.manager.opts.Now,
		Logger: c.manager.opts.Logger,
		NewID: func(session.EntryType) string {
			id := session.NewID()
			c.newIDs = append(c.newIDs, id)
			return id
		},
	}
}

// load makes the view of what the log says.
func (c *chat) load() error {
	v, found, err := viewAt(c.session, "")
	if err != nil {
		return err
	}
	c.undo = nil
	cut, err := cutShort(c.session, found, v)
	if err != nil {
		return err
	}
	if cut != nil {
		c.undo, v = cut, view{}
		if cut.to != "" {
			if v, _, err = viewAt(c.session, cut.to); err != nil {
				return err
			}
		}
	}
	c.written = v
	return nil
}

// blobs returns the blobs that entries of the conversation refer to.
func (c *chat) blobs() store.Blobs {
	st, err := c.manager.store()
	if err != nil {
		st = memory.New(nil) // without a store there are none
	}
	return st.Blobs()
}

// viewAt returns the view of the path to an entry; "" is the leaf.
func viewAt(s *session.Session, leaf string) (view, *session.Context, error) {
	found, err := s.Context(session.ContextOptions{Leaf: leaf, Unpaired: true, Shared: true})
	if err != nil {
		return view{}, nil, err
	}
	updated := s.Header().CreatedAt
	if found.Leaf != "" {
		last, err := s.Entry(found.Leaf)
		if err != nil && !errors.Is(err, session.ErrCorrupt) {
			return view{}, nil, err
		}
		if err == nil { // a damaged last entry hides its time, and nothing else
			updated = last.Timestamp
		}
	}
	return viewOf(found, updated), found, nil
}

// add adds a message.
func (c *chat) add(m Message, at time.Time) error {
	entry, err := recordable(m, at)
	if err != nil {
		return err
	}
	return c.do(&addition{entry})
}

// replace puts other messages in the place of the history.
func (c *chat) replace(history []Message, at time.Time) error {
	r := &replacement{}
	for i, m := range history {
		entry, err := recordable(m, at)
		if err != nil {
			return fmt.Errorf("message %d of the new history: %w", i, err)
		}
		r.add(entry)
	}
	return c.do(&rewrite{at: at, replace: r})
}

// recordable returns the entry that says a caller's message, or a refusal. Only
// callers are held to the roles: what is read from a file stays what it is.
func recordable(m Message, at time.Time) (session.Entry, error) {
	if err := session.CheckRole(m.Role); err != nil {
		return session.Entry{}, refusal{invalidMessage(err)}
	}
	entry, err := entryOf(m, at)
	if err != nil {
		return session.Entry{}, refusal{err}
	}
	return entry, nil
}

// setSummary notes a summary. It waits for the truncation that mostly follows,
// so that both are one entry and a crash leaves both or neither.
func (c *chat) setSummary(summary string, at time.Time) {
	if r := c.waiting(); r != nil {
		r.summary, r.at = &summary, at
	} else {
		c.pending = append(c.pending, &rewrite{at: at, summary: &summary})
	}
	c.wanted = true
	c.look()
}

// waiting returns the summary that nothing has followed yet, or nil.
func (c *chat) waiting() *rewrite {
	if len(c.pending) == 0 {
		return nil
	}
	r, ok := c.pending[len(c.pending)-1].(*rewrite)
	if !ok || r.truncate != nil || r.replace != nil || r.keepFrom != "" {
		return nil
	}
	return r
}

// truncate keeps the last messages, and returns what that left.
func (c *chat) truncate(keepLast int, at time.Time) (Cut, error) {
	c.look()
	v := c.shown // nobody but the holder of writing changes it
	if len(v.items) == 0 {
		return Cut{}, nil
	}
	t := &truncation{keepLast: keepLast, end: v.last()}
	t.items = len(v.items) - v.index(t.end)
	r := c.waiting()
	if r == nil {
		r = &rewrite{}
		c.pending = append(c.pending, r)
	}
	r.truncate, r.at = t, at
	err := c.settlePending(r)
	kept := c.shown.messages
	return Cut{Kept: kept, Dropped: max(0, v.messages-kept)}, err
}

// everything returns all messages that were ever recorded.
func (c *chat) everything(ctx context.Context) ([]Message, error) {
	history := []Message{}
	if err := c.lock(ctx); err != nil {
		return history, err
	}
	defer c.unlock()
	c.look()
	if err := c.ensure(); err != nil {
		return history, err
	}
	if c.session != nil {
		for e, err := range c.session.Entries() {
			if err != nil {
				return history, err
			}
			if e.Message != nil && !marksOf(e.Extra).StandIn {
				history = append(history, spoken(e.Message)...)
			}
		}
	}
	for _, ch := range c.pending {
		if a, ok := ch.(*addition); ok {
			for _, m := range messagesOf(&a.entry) {
				history = append(history, m.clone())
			}
		}
	}
	return history, nil
}
