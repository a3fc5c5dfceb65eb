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
)

// chat is the conversation of one key while it is in memory. Its session is
//
//	            want, do                      Update
//	absent ────────────────▶ open ◀─────────────────────────── writing
//	  ▲  (created on demand)  │  ▲  outcome unknown, rewritten    ▲ │
//	  │                       │  └──── reopen: did it land? ◀─────┼─┘
//	  └── close, forget ──────┘ flush: the first of pending ──────┘
//
// and a change is pending until it is in the log (then it is part of written) or refused
// (then Save reports it once). Its plan says what it does to a view and what to append for
// that, so readers see what will be written:
//
//	do ──▶ pending ──▶ write ──▶ written = plan(written)
//	          │          └─────▶ refused ──▶ Save
//	shown = written + the plans of pending
//
// Two locks keep readers away from the disk. writing is held for as long as an operation
// takes, I/O included. showing is held only to copy a finished view in or out. A reader that
// finds writing taken returns the last view that was shown. Locks are taken in the order
// writing, showing; the pool's mutex is never held while waiting for either. Only Rename
// holds writing of two chats, and it locks them in the order of their keys.
type chat struct {
	manager *core
	key, id string

	// writing is held while the conversation is changed or the log is read. It guards
	// what follows.
	writing gate.Mutex
	ctx     context.Context  // of the present operation
	session *session.Session // a view with that context; nil if it is not open
	wanted  bool             // create the session if it does not exist
	written view             // the view according to the log
	readAt  string           // the leaf of the log then
	pending []*change        // not in the log yet, in the order in which they were asked for
	refused []error          // of changes that will never be written; Save has not reported them yet
	nextID  string           // of the next entry that is appended

	// showing guards what readers see. It is never held during I/O, so no reader waits for
	// the disk.
	showing sync.RWMutex
	shown   view
	created time.Time
	exists  bool
	size    atomic.Int64 // of shown, in bytes
}

// snapshot is what a reader gets.
type snapshot struct {
	view
	created time.Time
	exists  bool
}

// lock lets the caller change the conversation and read the log, until ctx ends.
func (c *chat) lock(ctx context.Context) error {
	if err := c.writing.LockContext(ctx); err != nil {
		return err
	}
	c.setContext(ctx)
	return nil
}

// lockFor is lock for methods that return no error: it waits for its turn, however long that
// takes, because it could not report that it gave up.
func (c *chat) lockFor(ctx context.Context) {
	c.writing.Lock()
	c.setContext(ctx)
}

func (c *chat) unlock() {
	c.setContext(context.Background())
	c.writing.Unlock()
}

// setContext sets the context of everything that is done next.
func (c *chat) setContext(ctx context.Context) {
	c.ctx = ctx
	if c.session != nil {
		c.session = c.session.WithContext(ctx)
	}
}

// read returns the present conversation, including what other processes wrote. While another
// goroutine is writing, it returns the view from before.
func (c *chat) read(ctx context.Context) snapshot {
	if c.writing.TryLock() {
		c.setContext(ctx)
		c.readNew()
		c.unlock()
	} else if !c.isShown() && c.lock(ctx) == nil { // it is being opened, and there is no view from before
		c.readNew()
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

// readNew reads the new entries of the log. If that fails, the view stays as it is, and Save
// reports why.
func (c *chat) readNew() {
	if c.session != nil {
		changed, err := c.session.Refresh()
		switch {
		case session.MustReopen(err):
			c.close() // it may have been redacted, and then the old view must not be shown any more
		case err == nil && (changed || c.session.LeafID() != c.readAt):
			_ = c.load(c.session.LeafID())
		}
	}
	if c.session == nil {
		_ = c.open()
	}
	c.show()
}

// want creates the session if it does not exist. If that fails, Save reports why.
func (c *chat) want(ctx context.Context) {
	c.lockFor(ctx)
	defer c.unlock()
	c.wanted = true
	_ = c.ensure()
	c.show()
}

// do makes a change and shows its effect. It returns why the change was refused, or why it
// could not be written yet. In the latter case it stays pending.
func (c *chat) do(ch *change) error {
	c.pending = append(c.pending, ch)
	c.wanted = true
	err := c.flush(ch)
	c.show()
	return err
}

// flush writes what is pending, in order: a change is never written before an earlier one, or
// the conversation would be out of order. A refusal is kept for Save to report, unless it is
// that of the caller's own change, which is returned.
func (c *chat) flush(own *change) error {
	if err := c.ensure(); err != nil {
		return err
	}
	for len(c.pending) > 0 {
		ch := c.pending[0]
		err := c.write(ch)
		if err != nil && !isRefusal(err) {
			return err
		}
		c.pending = c.pending[1:] // refused changes too, or they would block all later ones
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

// ensure opens the session, or creates it if it is wanted. If there is none and none is
// wanted, that is not an error.
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

// show publishes the view for readers: what is written, and what is pending on top.
func (c *chat) show() {
	v := c.written
	v.items = slices.Clip(v.items) // the written view continues in the same memory
	for _, ch := range c.pending {
		v, _ = ch.plan(v)
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

// maxReopens is how often one append reopens the session.
const maxReopens = 2

// write appends the entries of a change, after whatever other writers have written.
//
// A change must end up in the log exactly once. After a conflict nothing was written, so
// Update tries again. After an unknown outcome only the log can tell, so reopen looks for the
// entries before there is another attempt.
func (c *chat) write(ch *change) error {
	for reopens := 0; ; reopens++ {
		next, entries := view{}, []session.Entry(nil)
		err := c.session.Update(c.ctx, func(tx *session.Tx) error {
			if tx.Leaf() != c.readAt {
				if err := c.load(tx.Leaf()); err != nil {
					return err
				}
			}
			next, entries = ch.plan(c.written)
			c.append(tx, entries)
			return nil
		})
		switch {
		case err == nil && len(entries) > 0:
			c.written, c.readAt = next, next.leaf
			return nil
		case errors.Is(err, session.ErrInvalid), errors.Is(err, session.ErrTooLarge):
			return refusal{err}
		case !mustReopen(err) || reopens == maxReopens:
			return err
		}
		landed, err := c.reopen(entries)
		if err != nil || landed > 0 && landed == len(entries) {
			return err
		}
		if landed > 0 {
			ch.renew()
		}
	}
}

// append appends entries to the written view.
func (c *chat) append(tx *session.Tx, entries []session.Entry) {
	if len(entries) > 0 && entries[0].Leaf == nil && tx.Leaf() != c.written.leaf {
		c.nextID = session.NewID()
		tx.Branch(c.written.leaf) // what comes after it was cut short
	}
	for _, e := range entries {
		c.nextID, e.ID = e.ID, "" // as one that is new: for others, the whole log is searched
		tx.Append(e)
	}
}

// mustReopen reports whether the session must be opened again: it may or may not have written the
// entries, or it was removed, rewritten or closed under us.
func mustReopen(err error) bool {
	return session.MustReopen(err) || errors.Is(err, session.ErrNotExist)
}

// reopen opens the session again and returns how many of some entries are in it.
func (c *chat) reopen(entries []session.Entry) (landed int, err error) {
	// The caller's context must not interrupt this. If we gave up without an answer, the
	// entries would still be pending and could be written twice.
	defer c.setContext(c.ctx)
	c.ctx = context.WithoutCancel(c.ctx)
	c.close()
	if err := c.openOrCreate(); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if _, err := c.session.Entry(e.ID); err == nil {
			landed++
		} else if !errors.Is(err, session.ErrNotExist) {
			return 0, err
		}
	}
	return landed, nil
}

// close releases the session. Nothing is lost: every change is either in the log or still
// pending.
func (c *chat) close() {
	if c.session != nil {
		// Close can only fail for an append that has reported its error already.
		_ = c.session.Close()
	}
	c.session, c.written, c.readAt = nil, view{}, ""
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
	return c.load(s.LeafID())
}

// open opens the session of the key or, if there is none, imports what picoclaw left. It
// returns ErrNotExist if there is neither.
func (c *chat) open() error {
	st, err := c.manager.store()
	if err != nil {
		return err
	}
	ctx := c.ctx
	s, err := session.Open(ctx, st, c.id, c.options())
	if errors.Is(err, session.ErrNotExist) {
		if err := c.importOld(ctx, st); err != nil {
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
	return c.load(s.LeafID())
}

// options returns session options that let append choose the ids, so that entries with an
// unknown outcome can be looked up.
func (c *chat) options() *session.Options {
	return &session.Options{
		Now:    c.manager.opts.Now,
		Logger: c.manager.opts.Logger,
		NewID:  func(session.EntryType) string { return c.nextID },
	}
}

// load rebuilds the view from the log, which ends with a leaf.
func (c *chat) load(leaf string) error {
	v, err := viewAt(c.session, leaf)
	if err != nil {
		return err
	}
	before, short, err := cutShort(c.session, leaf)
	if short && err == nil {
		if v = (view{}); before != "" {
			v, err = viewAt(c.session, before)
		}
	}
	if err == nil {
		c.written, c.readAt = v, leaf
	}
	return err
}

// viewAt returns the view of the path to an entry; "" is the leaf.
func viewAt(s *session.Session, leaf string) (view, error) {
	found, err := s.Context(session.ContextOptions{Leaf: leaf, Unpaired: true, Shared: true})
	if err != nil {
		return view{}, err
	}
	updated := s.Header().CreatedAt
	if found.Leaf != "" {
		last, err := s.Entry(found.Leaf)
		if err != nil && !errors.Is(err, session.ErrCorrupt) {
			return view{}, err
		}
		if err == nil { // if the last entry is damaged, only its time is lost
			updated = last.Timestamp
		}
	}
	return viewOf(found, updated), nil
}

// add adds a message.
func (c *chat) add(m Message, at time.Time) error {
	entry, err := recordable(m, at)
	if err != nil {
		return err
	}
	return c.do(addition(entry))
}

// replace replaces the history with other messages.
func (c *chat) replace(history []Message, at time.Time, clears bool) error {
	entries := make([]session.Entry, 0, len(history))
	for i, m := range history {
		entry, err := recordable(m, at)
		if err != nil {
			return fmt.Errorf("message %d of the new history: %w", i, err)
		}
		entries = append(entries, entry)
	}
	var summary *string
	if clears && len(history) == 0 {
		summary = new(string) // a summary of nothing is not sent either
	}
	return c.do(replacement(at, summary, entries))
}

// recordable returns the entry for a caller's message, or a refusal. Only callers are
// restricted to the known roles: what is read from a file stays as it is.
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

// setSummary notes a summary. It is not written yet, but waits for the truncation that
// usually follows, so that both become one entry and a crash leaves both or neither.
func (c *chat) setSummary(summary string, at time.Time) {
	c.popSummary()
	c.pending = append(c.pending, summaryOnly(at, summary))
	c.wanted = true
	c.readNew()
}

// popSummary returns the summary that nothing has followed yet, which is no longer pending,
// or nil.
func (c *chat) popSummary() *string {
	last := len(c.pending) - 1
	if last < 0 || c.pending[last].summary == nil {
		return nil
	}
	summary := c.pending[last].summary
	c.pending = c.pending[:last]
	return summary
}

// truncate keeps the last messages and returns what was kept and dropped. If it clears and
// keeps none, the summary goes, too.
func (c *chat) truncate(keepLast int, at time.Time, clears bool) (Cut, error) {
	if keepLast < 0 {
		return Cut{}, refusal{fmt.Errorf("truncate: %w: %d messages cannot be kept; to keep none, give 0", session.ErrInvalid, keepLast)}
	}
	c.readNew()
	v := c.shown // safe without showing: only the holder of writing changes it
	clears = clears && keepLast == 0 && v.summary != ""
	if len(v.items) == 0 && !clears {
		return Cut{}, nil
	}
	summary := c.popSummary()
	if clears && summary == nil { // nothing is left that it is the beginning of
		summary = new(string)
	}
	err := c.do(rewrite(at, summary, truncation(keepLast, v)))
	kept := c.shown.messages
	return Cut{Kept: kept, Dropped: max(0, v.messages-kept)}, err
}

// fullHistory returns all messages that were ever recorded.
func (c *chat) fullHistory(ctx context.Context) ([]Message, error) {
	history := []Message{}
	if err := c.lock(ctx); err != nil {
		return history, err
	}
	defer c.unlock()
	c.readNew()
	if err := c.ensure(); err != nil {
		return history, err
	}
	if c.session != nil {
		last, isCut := "", false
		for e, err := range c.session.Entries() {
			if mark := marksOf(e.Extra); err == nil && mark.Last != last {
				last = mark.Last
				isCut, err = c.isMissing(last)
			}
			if err != nil {
				return history, err
			}
			if !isCut {
				history = append(history, newMessages(&e)...)
			}
		}
	}
	v := c.written
	for _, ch := range c.pending {
		var entries []session.Entry
		v, entries = ch.plan(v)
		for i := range entries {
			for _, m := range newMessages(&entries[i]) {
				history = append(history, m.clone())
			}
		}
	}
	return history, nil
}

// isMissing reports whether the last of several entries is missing, so that none of them counts.
func (c *chat) isMissing(last string) (bool, error) {
	shape, err := c.session.Shape()
	return err == nil && last != "" && shape.Index(last) < 0, err
}

// newMessages returns the messages of an entry that were not said before.
func newMessages(e *session.Entry) []Message {
	if e.Message == nil || marksOf(e.Extra).Again {
		return nil
	}
	return messagesIn(e.Message)
}
