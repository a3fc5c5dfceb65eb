package keyed

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

const (
	// defaultMaxOpen is the default of Options.MaxOpen.
	defaultMaxOpen = 20
	// defaultMaxBytes is the default of Options.MaxBytes.
	defaultMaxBytes = 64 << 20
)

// Options adjusts a SessionManager. The zero value keeps everything in memory.
type Options struct {
	// Dir is the directory of the session files, which may also have files of picoclaw.
	// Empty means that sessions live in memory and end with the manager.
	Dir string
	// Store keeps the sessions, if it is not nil. The manager does not close it.
	// Default: files in Dir.
	Store store.Store
	// MaxOpen is how many conversations stay open. Those used within the last second stay
	// open too, up to eight times as many. Default: 20.
	MaxOpen int
	// MaxBytes is roughly how much memory the conversations that are not in use may take.
	// Default: 64 MiB.
	MaxBytes int64
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Logger gets a line for every piece of damage that is found, and for every error that
	// is not returned to a caller. Default: none.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxOpen <= 0 {
		opts.MaxOpen = defaultMaxOpen
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = defaultMaxBytes
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}

// SessionManager keeps conversations by key. All its methods may be called
// concurrently.
type SessionManager struct {
	*core
	ctx context.Context // for its operations, or nil: see WithContext
}

// core is what all views of a SessionManager share.
type core struct {
	opts     Options
	logs     store.Store
	storeErr error // why there is no store
	owned    bool  // we opened the store and must close it
	old      *oldFiles

	busy sync.WaitGroup // calls that have not returned: Close waits for them
	done chan struct{}  // closed by Close

	chats *pool.Pool[*chat] // by key

	mu     sync.Mutex // guards closed
	closed bool
}

// WithContext returns a view of the manager whose operations end when ctx ends: waiting for a
// lock, the disk or another writer, and for a summary. In every other way it is the same
// manager, and closing either closes both.
//
// An operation that returns an error then returns one that matches ctx.Err(). If it was still
// waiting for its turn, it has done nothing. If it was already writing, the result is the
// same as after any other error of the store: the change stays in memory, and a later call
// writes it. Methods that return no error wait for their turn, however long that takes,
// because they could not report that they gave up.
func (sm *SessionManager) WithContext(ctx context.Context) *SessionManager {
	return &SessionManager{sm.core, ctx}
}

// context returns the context for the manager's operations.
func (sm *SessionManager) context() context.Context {
	if sm.ctx == nil {
		return context.Background()
	}
	return sm.ctx
}

// NewSessionManager returns the sessions of a directory, which is created together with the
// first session. An empty storage keeps them in memory.
func NewSessionManager(storage string) *SessionManager {
	return New(&Options{Dir: storage})
}

// New returns a session manager. It does not touch the disk yet; if the store cannot be used,
// Save reports why.
func New(o *Options) *SessionManager {
	opts := o.withDefaults()
	sm := &SessionManager{core: &core{
		opts:  opts,
		logs:  opts.Store,
		done:  make(chan struct{}),
		chats: newPool(opts),
	}}
	sm.old = &oldFiles{dir: opts.Dir}
	if opts.Dir == "" {
		if sm.logs == nil {
			sm.logs, sm.owned = memory.New(nil), true
		}
		return sm
	}
	st, err := file.Open(opts.Dir, &file.Options{Logger: opts.Logger})
	if err != nil {
		sm.storeErr, sm.old.err = err, err
		return sm
	}
	sm.old.notes = st.Notes(notesRoom)
	if sm.logs == nil {
		sm.logs, sm.owned = st, true
	}
	return sm
}

func (sm *core) store() (store.Store, error) { return sm.logs, sm.storeErr }

// GetOrCreate returns the session of a key as it is now, and creates it if there is none.
func (sm *SessionManager) GetOrCreate(key string) *Session {
	s := &Session{Key: key, Messages: []Message{}}
	sm.use(key, func(c *chat) {
		c.want(sm.context())
		now := c.read(sm.context())
		s.Messages, s.Summary = now.history(), now.summary
		s.Created, s.Updated = now.created, now.updated
	})
	return s
}

// Add adds a message to the session of a key. If the message has a role other than user,
// assistant, system or tool, or cannot be recorded for another reason, Add records nothing
// and returns an error that matches session.ErrInvalid, or session.ErrTooLarge if it exceeds
// a limit. After any other error the message stays in memory, and every later call on the
// key tries again to write it.
func (sm *SessionManager) Add(key string, msg Message) error {
	at := sm.opts.Now().UTC()
	return sm.tryChange(key, func(c *chat) error { return c.add(msg, at) })
}

// AddMessage adds a message with a role ("user", "assistant", "system", "tool") to the
// session of a key. Save reports what Add would return.
func (sm *SessionManager) AddMessage(sessionKey, role, content string) {
	sm.AddFullMessage(sessionKey, Message{Role: role, Content: content})
}

// AddFullMessage adds a message with everything it has to the session of a key. Save reports
// what Add would return.
func (sm *SessionManager) AddFullMessage(sessionKey string, msg Message) {
	at := sm.opts.Now().UTC()
	sm.change(sessionKey, func(c *chat) { c.keepRefusal(c.add(msg, at)) })
}

// GetHistory returns a copy of the messages of a key's session: all since the last
// truncation. If there is no such session it is empty, not nil.
func (sm *SessionManager) GetHistory(key string) []Message {
	history := []Message{}
	sm.use(key, func(c *chat) { history = c.read(sm.context()).history() })
	return history
}

// Replace replaces the messages of a key's session, including system messages, with others:
// all of them or, if one is refused, none. An empty history drops the summary, too. Its errors
// are those of Add.
func (sm *SessionManager) Replace(key string, history []Message) error {
	at := sm.opts.Now().UTC()
	return sm.tryChange(key, func(c *chat) error { return c.replace(history, at, true) })
}

// SetHistory is Replace, except that it leaves the summary alone, as in picoclaw; Save
// reports its error.
func (sm *SessionManager) SetHistory(key string, history []Message) {
	at := sm.opts.Now().UTC()
	sm.change(key, func(c *chat) { c.keepRefusal(c.replace(history, at, false)) })
}

// GetSummary returns the summary of the messages before the history, or "".
func (sm *SessionManager) GetSummary(key string) string {
	summary := ""
	sm.use(key, func(c *chat) { summary = c.read(sm.context()).summary })
	return summary
}

// SetSummary sets the summary of the messages before the history. It is written together with
// the TruncateHistory that follows, at the latest by Save.
func (sm *SessionManager) SetSummary(key string, summary string) {
	at := sm.opts.Now().UTC()
	sm.change(key, func(c *chat) { c.setSummary(summary, at) })
}

// Cut says what a truncation or a summary did to a history, in messages.
type Cut struct {
	Kept    int // how many messages the history has now
	Dropped int // how many fewer than before; 0 means that nothing was cut
}

// Truncate keeps the last messages of a key's session: keepLast of them, and before them
// those that they need (see "What stays in the history" in the package comment). With 0 it
// keeps none, and no summary either, unless SetSummary gave one just before. What it drops
// stays in the log: see History. It returns what it kept; its errors are those of Add, and
// session.ErrInvalid for a negative number.
func (sm *SessionManager) Truncate(key string, keepLast int) (cut Cut, err error) {
	at := sm.opts.Now().UTC()
	err = sm.tryChange(key, func(c *chat) error {
		cut, err = c.truncate(keepLast, at, true)
		return err
	})
	return cut, err
}

// TruncateHistory is Truncate, except that it leaves the summary alone and that a negative
// number keeps none, as in picoclaw; Save reports its error.
func (sm *SessionManager) TruncateHistory(key string, keepLast int) {
	at := sm.opts.Now().UTC()
	sm.change(key, func(c *chat) {
		_, err := c.truncate(max(0, keepLast), at, false)
		c.keepRefusal(err)
	})
}

// Scope says which messages of a session are meant.
type Scope int

const (
	// Current are the messages that GetHistory returns.
	Current Scope = iota
	// All are all messages that were ever recorded, in that order.
	All
)

// History returns messages of a key's session, or none if there is no such session.
func (sm *SessionManager) History(key string, scope Scope) ([]Message, error) {
	if scope == Current {
		return sm.GetHistory(key), nil
	}
	history := []Message{}
	err := sm.try(key, func(c *chat) (err error) {
		history, err = c.fullHistory(sm.context())
		return err
	})
	return history, err
}

// Active returns the keys whose conversations are in memory, most recently used first.
func (sm *SessionManager) Active() []string {
	keys := []string{}
	sm.chats.Each(func(c *chat) {
		if c.isShown() {
			keys = append(keys, c.key)
		}
	})
	return keys
}

// Keys returns the keys of all sessions, sorted, including those of picoclaw that have not
// been used yet. It reads the first line of every session.
func (sm *SessionManager) Keys() ([]string, error) {
	st, err := sm.store()
	if err != nil {
		return nil, err
	}
	keys, err := storedKeys(sm.context(), st)
	if err != nil {
		return nil, err
	}
	oldKeys, err := sm.old.keys()
	if err != nil {
		return nil, err
	}
	keys = append(keys, oldKeys...)
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// use calls f with the chat of a key, unless the key is invalid; Save reports that. It waits
// for the chat, however long that takes.
func (sm *SessionManager) use(key string, f func(*chat)) {
	if c, err := sm.acquire(context.Background(), key); err == nil {
		defer sm.release(c)
		f(c)
	}
}

// try calls f with the chat of a key.
func (sm *SessionManager) try(key string, f func(*chat) error) error {
	c, err := sm.acquire(sm.context(), key)
	if err != nil {
		return err
	}
	defer sm.release(c)
	return f(c)
}

// tryChange calls f with the chat of a key, locked for writing.
func (sm *SessionManager) tryChange(key string, f func(*chat) error) error {
	return sm.try(key, func(c *chat) error {
		if err := c.lock(sm.context()); err != nil {
			return err
		}
		defer c.unlock()
		return f(c)
	})
}

// change is tryChange for methods that return no error: it waits for its turn.
func (sm *SessionManager) change(key string, f func(*chat)) {
	sm.use(key, func(c *chat) {
		c.lockFor(sm.context())
		defer c.unlock()
		f(c)
	})
}

func errClosed() error {
	return &session.Error{Op: "use session manager", Kind: session.ErrClosed}
}
