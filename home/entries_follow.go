package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// FollowRequest says what to watch.
type FollowRequest struct {
	Session string `json:"session,omitempty"` // as a person names it; "" means every session, including those that begin later
	Last    int    `json:"last,omitempty"`    // how many of the last entries to begin with
	// After is the id of an entry of the session: the entries after it in the log are sent
	// first, so a caller that was away misses nothing and gets nothing twice.
	After  string `json:"after,omitempty"`
	Filled bool   `json:"filled,omitempty"` // fill in content that is kept apart from the log
}

// Arrival is an entry that was appended to a session.
type Arrival struct {
	Session string        `json:"session"`
	Entry   session.Entry `json:"entry"`
}

// pollEvery is how often all sessions are checked for changes. A check costs one stat per
// session; a watch for each would cost a file handle.
const pollEvery = 300 * time.Millisecond

// Follow sends the entries that any program appends, until the context ends, which is not
// an error, or the session is removed. A line that is not an entry is skipped, with a
// LineSkipped.
func (e *Entries) Follow(ctx context.Context, r FollowRequest, send func(Arrival) error) (*Streamed, error) {
	return follow(ctx, e.home, "entries.follow", r, send, e.follow)
}

func (e *Entries) follow(ctx context.Context, r FollowRequest, send func(Arrival) error) (*Streamed, error) {
	f := &following{home: e.home, filled: r.Filled, send: send}
	err := notNegative("last", r.Last)
	switch {
	case err != nil:
	case r.After != "" && r.Last > 0:
		err = exclude("after", "last")
	case r.After != "" && r.Session == "":
		err = wrong("after", "{after} needs a {session}")
	case r.Session == "":
		err = f.all(ctx, r.Last)
	default:
		err = f.one(ctx, r)
	}
	return &f.sent, err
}

// following passes entries to a caller of Follow.
type following struct {
	home   *Home
	filled bool
	send   func(Arrival) error
	sent   Streamed
	failed error // what send returned
}

func (f *following) one(ctx context.Context, r FollowRequest) (err error) {
	name, err := f.home.resolve(ctx, r.Session)
	if err != nil {
		return err
	}
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end, err := log.End(ctx)
	if err != nil {
		return err
	}
	begun(ctx)
	if r.After != "" {
		end, err = f.after(ctx, log, name, end, r.After)
	}
	if err != nil {
		return err
	}
	before, err := f.lastOf(ctx, log, name, end, r.Last)
	if err != nil {
		return err
	}
	if err := f.tell(before...); err != nil {
		return err
	}
	for line, err := range log.Watch(ctx, end) {
		if err == nil {
			err = f.tellLine(ctx, name, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *following) tell(arrivals ...Arrival) error {
	for _, a := range arrivals {
		if f.failed = pass(&f.sent, f.send, a); f.failed != nil {
			return f.failed
		}
	}
	return nil
}

func (f *following) tellLine(ctx context.Context, name string, line store.Line) error {
	if e, ok := f.decode(ctx, name, line); ok {
		return f.tell(Arrival{name, e})
	}
	return nil
}

// after returns the position after the entry with an id. It looks from the end: a caller that
// comes back has not missed much.
func (f *following) after(ctx context.Context, log store.Log, name string, end store.Pos, id string) (store.Pos, error) {
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return 0, err
		}
		if e, ok := f.decode(ctx, name, line); ok && e.ID == id {
			return line.Next, nil
		}
	}
	return 0, wrong("after", "{after} is %q, and the session has no such entry", id)
}

// lastOf returns the last entries of a log before a position, latest last.
func (f *following) lastOf(ctx context.Context, log store.Log, name string, end store.Pos, n int) ([]Arrival, error) {
	var found []Arrival
	if n <= 0 {
		return nil, nil
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return nil, err
		}
		if e, ok := f.decode(ctx, name, line); ok {
			found = append(found, Arrival{name, e})
		}
		if len(found) == n {
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// decode reads a line. A header is not an entry.
func (f *following) decode(ctx context.Context, name string, line store.Line) (e session.Entry, ok bool) {
	err := json.Unmarshal(line.Data, &e)
	switch {
	case err == nil && e.Type == session.TypeSession:
		return e, false
	case err != nil || line.Cut:
		f.home.notify(ctx, Notice{Kind: LineSkipped, Session: name, Offset: int64(line.Pos)})
		return e, false
	}
	if f.filled && bytes.Contains(line.Data, []byte(`"blob"`)) {
		return f.fill(ctx, name, e), true
	}
	return e, true
}

// fill returns an entry with the content from blobs that can be read.
func (f *following) fill(ctx context.Context, name string, e session.Entry) session.Entry {
	s, err := session.Open(ctx, f.home.store, name, f.home.sessionOptions(ctx))
	if err != nil {
		return e
	}
	defer s.Close()
	whole, err := s.Entry(e.ID)
	if err != nil {
		return e
	}
	return whole
}

// seen is how far a session has been read.
type seen struct {
	pos      store.Pos
	size     int64
	modified time.Time
}

func (f *following) all(ctx context.Context, last int) error {
	known := make(map[string]seen)
	var latest []store.Stat
	all, err := store.All(ctx, f.home.store)
	if err != nil {
		return err
	}
	for _, l := range all {
		end, err := f.endOf(ctx, l.Name)
		if err != nil {
			f.home.notify(ctx, Notice{Kind: SessionUnread, Session: l.Name, Error: described(err)}) // the others can still be followed
			known[l.Name] = seen{0, l.Size, l.Modified}
			continue
		}
		known[l.Name] = seen{end, l.Size, l.Modified}
		latest = append(latest, l.Stat)
	}
	begun(ctx)
	if err := f.tellLast(ctx, latest, known, last); err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := f.poll(ctx, known); err != nil {
			return err
		}
	}
}

func (f *following) endOf(ctx context.Context, name string) (store.Pos, error) {
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	end, err := log.End(ctx)
	return end, errors.Join(err, log.Close())
}

// poll passes on what is new since the last time.
func (f *following) poll(ctx context.Context, known map[string]seen) error {
	all, err := store.All(ctx, f.home.store)
	if err != nil && ctx.Err() == nil {
		return err
	}
	for _, stat := range all {
		if ctx.Err() != nil {
			return nil
		}
		was, old := known[stat.Name]
		if old && was.size == stat.Size && was.modified.Equal(stat.Modified) {
			continue
		}
		now := seen{was.pos, stat.Size, stat.Modified}
		now.pos, err = f.tellFrom(ctx, stat.Name, was.pos)
		switch {
		case err == nil || errors.Is(err, session.ErrNotExist): // or it was removed after it was listed
		case f.failed != nil:
			return f.failed
		case ctx.Err() != nil:
			return nil
		default: // the others can still be followed; this one is tried again when it changes
			f.home.notify(ctx, Notice{Kind: SessionUnread, Session: stat.Name, Error: described(err)})
		}
		known[stat.Name] = now
	}
	return nil
}

// tellFrom passes on the entries of a log from a position on, and returns the log's end.
func (f *following) tellFrom(ctx context.Context, name string, from store.Pos) (end store.Pos, err error) {
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end = from
	for line, err := range log.Forward(ctx, from) {
		if err == nil {
			err = f.tellLine(ctx, name, line)
		}
		if err != nil {
			return end, err
		}
		end = line.Next
	}
	return end, nil
}

// tellLast passes on the last entries of all sessions together, in the order in which
// they were written.
func (f *following) tellLast(ctx context.Context, stats []store.Stat, known map[string]seen, n int) error {
	slices.SortFunc(stats, func(a, b store.Stat) int { return b.Modified.Compare(a.Modified) })
	var found []Arrival
	for _, stat := range stats[:min(n, len(stats))] { // the last n entries are in the n most recent sessions
		log, err := f.home.store.Open(ctx, stat.Name)
		if err != nil {
			return err
		}
		some, err := f.lastOf(ctx, log, stat.Name, known[stat.Name].pos, n)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		found = append(found, some...)
	}
	slices.SortStableFunc(found, func(a, b Arrival) int { return a.Entry.Timestamp.Compare(b.Entry.Timestamp) })
	return f.tell(found[max(len(found)-n, 0):]...)
}
