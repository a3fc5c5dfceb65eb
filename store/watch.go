package store

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// Watcher is a store that tells which logs change, whatever program changes them: see Watch.
type Watcher interface {
	Watch(ctx context.Context) iter.Seq2[string, error]
}

// ErrUntold is why a store that should be told of changes has to look for them.
var ErrUntold = errors.New("nobody tells of changes")

// Watch yields the name of every log that is created, changed or removed, until ctx is done, and
// perhaps some that are not. The first name is "": from then on nothing is missed. Its error, if
// there is one, matches ErrUntold and says why changes are noticed late. Any other error ends the
// iteration.
//
// A store that is no Watcher is looked at again and again, at a rate that does not depend on how
// much is in it.
func Watch(ctx context.Context, s Store) iter.Seq2[string, error] {
	if w, ok := As[Watcher](s); ok {
		return w.Watch(ctx)
	}
	return Look(ctx, s, nil)
}

// Notices is what a store is told of changes.
type Notices interface {
	// Told returns a channel from which one can receive when there is something to Take.
	Told() <-chan struct{}
	// Take returns the names of the logs that may have changed; all is true if any may.
	Take() (names []string, all bool)
	// Err returns why nothing can be told at the moment, or nil.
	Err() error
}

// Inbox collects what one watcher of a store is told, until it takes it.
type Inbox struct {
	told chan struct{}

	mu    sync.Mutex // guards what follows
	names map[string]bool
	all   bool
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{told: make(chan struct{}, 1), names: make(map[string]bool)}
}

// Tell says that logs may have changed. Without names, the watcher only looks up.
func (b *Inbox) Tell(names ...string) { b.add(names, false) }

// TellAll says that any log may have changed.
func (b *Inbox) TellAll() { b.add(nil, true) }

func (b *Inbox) add(names []string, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.names[name] = true
	}
	b.all = b.all || all
	select {
	case b.told <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// Told is that of Notices.
func (b *Inbox) Told() <-chan struct{} { return b.told }

// Take is that of Notices.
func (b *Inbox) Take() (names []string, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	names, all = slices.Sorted(maps.Keys(b.names)), b.all
	clear(b.names)
	b.all = false
	return names, all
}

const (
	// Who is told of nothing looks at all logs after lookEvery, and lookEach more for each log: at
	// a thousand a second, at most.
	lookEvery = 300 * time.Millisecond
	lookEach  = time.Millisecond
	// Who is told of changes looks nevertheless, seldom: something may have been missed.
	lookSeldom     = time.Minute
	lookSeldomEach = 10 * time.Millisecond
)

// Look is Watch for a store that has notices, or none if they are nil. It looks at all logs at
// first, if notices were lost, and from time to time.
func Look(ctx context.Context, s Store, told Notices) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l := &looker{store: s, told: told}
		if told != nil {
			l.wake = told.Told()
		}
		if _, err := l.look(ctx); err != nil {
			if ctx.Err() == nil {
				yield("", err)
			}
			return
		}
		more := yield("", l.why())
		for more && ctx.Err() == nil {
			names, err := l.wait(ctx)
			if err != nil && ctx.Err() == nil {
				more = yield("", err) && false
			}
			for i := 0; more && i < len(names) && ctx.Err() == nil; i++ {
				more = yield(names[i], nil)
			}
		}
	}
}

// looker is one Look.
type looker struct {
	store  Store
	told   Notices
	wake   <-chan struct{}
	known  map[string]Stat
	looked time.Time
}

// why returns why nothing is told, if it should be.
func (l *looker) why() error {
	if l.told == nil {
		return nil
	}
	switch err := l.told.Err(); {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrNotExist): // nobody expects more
		return nil
	default:
		return &incompleteError{err}
	}
}

type incompleteError struct{ why error }

func (e *incompleteError) Error() string   { return e.why.Error() }
func (e *incompleteError) Unwrap() []error { return []error{ErrUntold, e.why} }

// pause returns how long it is until all logs are looked at again.
func (l *looker) pause() time.Duration {
	n := time.Duration(len(l.known))
	if l.told == nil || l.told.Err() != nil {
		return lookEvery + n*lookEach
	}
	return lookSeldom + n*lookSeldomEach
}

// wait waits for something to happen, and returns the logs that may have changed.
func (l *looker) wait(ctx context.Context) ([]string, error) {
	late := time.NewTimer(time.Until(l.looked.Add(l.pause())))
	defer late.Stop()
	select {
	case <-ctx.Done():
		return nil, nil
	case <-l.wake:
		if names, all := l.told.Take(); !all {
			return names, nil
		}
	case <-late.C:
	}
	return l.look(ctx)
}

// look returns the logs that are not as they were the last time. Those that cannot be described are
// left for the next time.
func (l *looker) look(ctx context.Context) (changed []string, err error) {
	now := make(map[string]Stat, len(l.known))
	all, err := All(ctx, l.store)
	if err != nil {
		return nil, err
	}
	for _, stat := range all {
		if stat.Err != nil {
			continue
		}
		was, known := l.known[stat.Name]
		now[stat.Name] = stat.Stat
		if !known || was.Size != stat.Size || was.Archived != stat.Archived || !was.Modified.Equal(stat.Modified) {
			changed = append(changed, stat.Name)
		}
	}
	for name := range l.known {
		if _, there := now[name]; !there {
			changed = append(changed, name)
		}
	}
	l.known, l.looked = now, time.Now()
	return changed, nil
}
