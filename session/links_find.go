package session

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/store"
)

// FindChain returns the conversation that a session is part of; of a session that
// nothing continues and that continues nothing, that is itself. Nothing is
// written. The session may be missing itself, or not be readable, if others name it;
// if none does, the error says which. It is the result of JoinLinks for all sessions of the
// store.
//
// naming returns the names of the sessions whose logs name a given session: as the one that
// they continue, the one that continues them, or the first of their chain. FindChain calls it
// only if a session is missing, to find the conversation on both sides of the gap. The index
// knows these names. If naming is nil, every session in the store is read instead.
func FindChain(ctx context.Context, st store.Store, id string, naming func(ctx context.Context, id string) ([]string, error)) (Linked, error) {
	return (&finder{ctx: ctx, st: st}).find(id, naming)
}

// FindChain is the function FindChain for a session that is open: its log is not opened
// again. What others have written since it was opened counts after Refresh.
func (s *Session) FindChain(ctx context.Context, naming func(ctx context.Context, id string) ([]string, error)) (Linked, error) {
	if l, err := s.linked.read(ctx, s); err == nil && l.isAlone() {
		return Linked{ID: s.name, Links: []string{s.name}}, nil
	}
	return (&finder{ctx: ctx, st: s.store, open: s}).find(s.name, naming)
}

func (f *finder) find(id string, naming func(ctx context.Context, id string) ([]string, error)) (Linked, error) {
	f.links, f.asked = make(map[string]Link), make(map[string]bool)
	err := f.follow(id)
	unread := f.unread
	if err == nil && f.isBroken(id) {
		err = f.widen(naming)
	}
	if err != nil {
		return Linked{}, err
	}
	for _, c := range JoinLinks(slices.Collect(maps.Values(f.links))) {
		if slices.Contains(c.Links, id) || slices.Contains(c.Missing, id) {
			return c, nil
		}
	}
	if unread != nil {
		return Linked{}, unread
	}
	return Linked{}, &Error{Op: "find", Name: id, Kind: ErrNotExist}
}

// finder collects what FindChain puts together.
type finder struct {
	ctx   context.Context
	st    store.Store
	open  *Session // one of the sessions, or nil
	links map[string]Link
	asked map[string]bool
	// unread is why the requested session exists but cannot be read.
	unread error
}

// follow reads a session and all that it and the others name. Of those one that
// cannot be read is as good as missing: its content is lost and nothing else.
func (f *finder) follow(wanted string) error {
	todo := []string{wanted}
	for len(todo) > 0 {
		id := todo[0]
		if todo = todo[1:]; id == "" || f.asked[id] {
			continue
		}
		f.asked[id] = true
		l, err := f.read(id)
		switch {
		case err == nil:
			f.links[id] = l
			todo = append(append(todo, l.Continues, l.ContinuedTo, l.Original), l.Replaced...)
		case f.ctx.Err() != nil:
			return f.ctx.Err()
		case id == wanted && !errors.Is(err, ErrNotExist) && store.CheckName(id) == nil:
			f.unread = err
		}
	}
	return nil
}

func (f *finder) read(id string) (Link, error) {
	if f.open != nil && f.open.name == id {
		return f.open.linked.read(f.ctx, f.open)
	}
	return ReadLink(f.ctx, f.st, id)
}

// isBroken reports whether a session is missing, so that others may belong to the
// conversation that those which were found do not name. One that was replaced breaks
// nothing: the conversation has gone on without it.
func (f *finder) isBroken(wanted string) bool {
	isMissing := func(id string) bool {
		_, there := f.links[id]
		return id != "" && !there
	}
	for _, l := range f.links {
		if isMissing(l.Continues) || isMissing(l.ContinuedTo) {
			return true
		}
	}
	return isMissing(wanted)
}

// widen adds the sessions that name those which are named so far.
func (f *finder) widen(naming func(ctx context.Context, id string) ([]string, error)) error {
	if naming == nil {
		return f.followAll()
	}
	for done := make(map[string]bool); len(done) < len(f.asked); {
		for _, id := range slices.Sorted(maps.Keys(f.asked)) {
			if done[id] {
				continue
			}
			done[id] = true
			names, err := naming(f.ctx, id)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := f.follow(name); f.ctx.Err() != nil {
					return err
				}
			}
		}
	}
	return nil
}

// followAll reads all sessions of the store.
func (f *finder) followAll() error {
	all, err := store.All(f.ctx, f.st)
	for _, l := range all {
		if l.Err != nil {
			continue // what cannot be read names nothing
		}
		if err := f.follow(l.Name); f.ctx.Err() != nil {
			return err
		}
	}
	return err
}

// ReadLink returns the link of a session of a store. A session that
// cannot be opened (see Open) has no place in one.
func ReadLink(ctx context.Context, st store.Store, name string) (l Link, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return readLink(ctx, st, log, name)
}

func readLink(ctx context.Context, st store.Store, log store.Log, name string) (Link, error) {
	l, err := readOrigin(ctx, st, log, name)
	if err != nil {
		return l, err
	}
	now, err := continued{}.read(ctx, log, log.Forward(ctx, 0), name)
	l.ContinuedTo, l.Replaced = now.to, now.replaced
	return l, err
}

// linkCache is the link of an open session: its place in a chain. The next time only the lines that
// were added since are read.
type linkCache struct {
	mu    sync.Mutex // guards what follows, except end
	link  Link       // the members that do not change
	now   continued  // up to end
	known bool
	end   atomic.Int64 // a store.Pos
}

// read returns the link according to the lines that the session has read, and perhaps later ones.
func (k *linkCache) read(ctx context.Context, s *Session) (Link, error) {
	s.mu.RLock()
	known := s.tree.end
	s.mu.RUnlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known {
		l, err := readOrigin(ctx, s.store, s.log, s.name)
		if err != nil {
			return l, err
		}
		k.link, k.known = l, l.Continues == "" // the rest of a continuation may come later
	}
	for {
		from := k.end.Load()
		if store.Pos(from) >= known {
			break
		}
		now, end, err := k.readOn(ctx, s, store.Pos(from))
		if err != nil {
			return k.link, err
		}
		if k.end.CompareAndSwap(from, int64(end)) {
			k.now = now
			break
		}
	}
	l := k.link
	l.ContinuedTo, l.Replaced = k.now.to, slices.Clone(k.now.replaced)
	return l, nil
}

func (k *linkCache) readOn(ctx context.Context, s *Session, from store.Pos) (now continued, end store.Pos, err error) {
	end = from
	now, err = k.now.read(ctx, s.log, func(yield func(store.Line, error) bool) {
		for line, err := range s.log.Forward(ctx, from) {
			if err == nil {
				end = line.Next
			}
			if !yield(line, err) {
				return
			}
		}
	}, s.name)
	return now, end, err
}

// advance notes that the session itself has written a batch, whose lines need not be read.
func (k *linkCache) advance(b *batch, at, end store.Pos) {
	if !slices.ContainsFunc(b.heads, func(h headLine) bool { return h.kind == kindCustom }) {
		k.end.CompareAndSwap(int64(at), int64(end))
	}
}

// isAlone reports whether a session names no other one.
func (l *Link) isAlone() bool {
	return l.Continues == "" && l.ContinuedTo == "" && l.Original == "" && len(l.Replaced) == 0
}

// readOrigin returns the part of a link that the beginning of a log has.
func readOrigin(ctx context.Context, st store.Store, log store.Log, name string) (l Link, err error) {
	l.ID = name
	h, err := FindHeader(ctx, log)
	if err == nil && h == nil {
		h, err = headerWithout(ctx, st, log, name)
	}
	if err == nil {
		err = h.CheckVersion(name)
	}
	if err != nil {
		return l, err
	}
	l.Index, l.Created = h.Continuation, h.CreatedAt
	if h.Relation == RelationContinuation {
		l.Continues = h.ParentSession
		l.Original, err = originalOf(ctx, log)
	}
	return l, err
}

// headerWithout returns the header of a session whose log has none.
func headerWithout(ctx context.Context, st store.Store, log store.Log, name string) (*Header, error) {
	s := &Session{core: &core{opts: (*Options)(nil).withDefaults(), store: st, log: log, name: name}}
	err := s.load(ctx)
	return &s.header, err
}

// originalOf returns the original session as the marker of a continuation names it, or "".
func originalOf(ctx context.Context, log store.Log) (string, error) {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return "", err
		}
		if h, ok := entryHead(line); ok && string(h.Type) == string(TypeContinues) {
			e, err := decodeEntry(bytes.Clone(line.Data))
			if err != nil {
				return "", nil // its rest is lost
			}
			return e.Continues.Original, nil
		}
	}
	return "", nil
}
