package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

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

// Follow sends the entries that any program appends, until the context ends, whenever that is,
// which is not an error, or the session is removed. A line that is not an entry is skipped, with
// a LineSkipped.
func (e *Entries) Follow(ctx context.Context, r FollowRequest, send func(Arrival) error) (*Streamed, error) {
	return follow(ctx, e.home, "entries.follow", r, send, e.follow)
}

func (e *Entries) follow(ctx context.Context, r FollowRequest, send func(Arrival) error) (*Streamed, error) {
	f := &follower{home: e.home, filled: r.Filled, send: send}
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
	if f.failed == nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it ended as it should, if perhaps before anything was sent
	}
	return &f.sent, err
}

// follower passes entries to a caller of Follow.
type follower struct {
	home   *Home
	filled bool
	send   func(Arrival) error
	sent   Streamed
	failed error // what send returned
}

func (f *follower) one(ctx context.Context, r FollowRequest) (err error) {
	name, err := f.home.resolve(ctx, r.Session)
	if err != nil {
		return err
	}
	defer f.home.uses.begin(name)()
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end, err := log.End(ctx)
	if err != nil {
		return err
	}
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
	if err := f.sendAll(before...); err != nil {
		return err
	}
	if end, err = f.sendLines(ctx, name, log, end); err != nil {
		return err
	}
	begun(ctx)
	for line, err := range log.Watch(ctx, end) {
		if err == nil {
			err = f.sendLine(ctx, name, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) sendAll(arrivals ...Arrival) error {
	for _, a := range arrivals {
		if f.failed = pass(&f.sent, f.send, a); f.failed != nil {
			return f.failed
		}
	}
	return nil
}

func (f *follower) sendLine(ctx context.Context, name string, line store.Line) error {
	if e, ok := f.decode(ctx, name, line); ok {
		return f.sendAll(Arrival{name, e})
	}
	return nil
}

// after returns the position after the entry with an id. It looks from the end: a caller that
// comes back has not missed much.
func (f *follower) after(ctx context.Context, log store.Log, name string, end store.Pos, id string) (store.Pos, error) {
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
func (f *follower) lastOf(ctx context.Context, log store.Log, name string, end store.Pos, n int) ([]Arrival, error) {
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
func (f *follower) decode(ctx context.Context, name string, line store.Line) (e session.Entry, ok bool) {
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
func (f *follower) fill(ctx context.Context, name string, e session.Entry) session.Entry {
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

func (f *follower) all(ctx context.Context, last int) error {
	known := make(map[string]store.Pos) // how far each session has been read
	for name, err := range store.Watch(ctx, f.home.store) {
		switch {
		case err != nil && !errors.Is(err, store.ErrUntold):
			return err
		case name == "":
			if err != nil {
				f.home.notify(ctx, Notice{Kind: ChangesUntold, Error: described(err)})
			}
			err = f.beginAll(ctx, known, last)
		default:
			known[name], err = f.sendNew(ctx, name, known[name])
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// beginAll finds out where the sessions end, and passes on their last entries.
func (f *follower) beginAll(ctx context.Context, known map[string]store.Pos, last int) error {
	var latest []store.Stat
	all, err := store.All(ctx, f.home.store)
	if err != nil {
		return err
	}
	for _, l := range all {
		end, err := f.endOf(ctx, l.Name)
		if err != nil {
			f.home.notify(ctx, Notice{Kind: SessionUnread, Session: l.Name, Error: described(err)}) // the others can still be followed
			continue
		}
		known[l.Name] = end
		latest = append(latest, l.Stat)
	}
	if err := f.sendLast(ctx, latest, known, last); err != nil {
		return err
	}
	begun(ctx)
	return nil
}

func (f *follower) endOf(ctx context.Context, name string) (store.Pos, error) {
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	end, err := log.End(ctx)
	return end, errors.Join(err, log.Close())
}

// sendNew passes on the new entries of a session, and returns how far it was read.
func (f *follower) sendNew(ctx context.Context, name string, from store.Pos) (store.Pos, error) {
	end, err := f.sendFrom(ctx, name, from)
	switch {
	case f.failed != nil:
		return end, f.failed
	case err != nil && !errors.Is(err, session.ErrNotExist) && ctx.Err() == nil: // or it was removed
		// The others can still be followed; this one is tried again when it changes.
		f.home.notify(ctx, Notice{Kind: SessionUnread, Session: name, Error: described(err)})
	}
	return end, nil
}

// sendFrom passes on the entries of a log from a position on, and returns the log's end.
func (f *follower) sendFrom(ctx context.Context, name string, from store.Pos) (end store.Pos, err error) {
	log, err := f.home.store.Open(ctx, name)
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return f.sendLines(ctx, name, log, from)
}

func (f *follower) sendLines(ctx context.Context, name string, log store.Log, from store.Pos) (end store.Pos, err error) {
	end = from
	for line, err := range log.Forward(ctx, from) {
		if err == nil {
			err = f.sendLine(ctx, name, line)
		}
		if err != nil {
			return end, err
		}
		end = line.Next
	}
	return end, nil
}

// sendLast passes on the last entries of all sessions together, in the order in which
// they were written.
func (f *follower) sendLast(ctx context.Context, stats []store.Stat, known map[string]store.Pos, n int) error {
	slices.SortFunc(stats, func(a, b store.Stat) int { return b.Modified.Compare(a.Modified) })
	var found []Arrival
	for _, stat := range stats[:min(n, len(stats))] { // the last n entries are in the n most recent sessions
		log, err := f.home.store.Open(ctx, stat.Name)
		if err != nil {
			return err
		}
		some, err := f.lastOf(ctx, log, stat.Name, known[stat.Name], n)
		if err := errors.Join(err, log.Close()); err != nil {
			return err
		}
		found = append(found, some...)
	}
	slices.SortStableFunc(found, func(a, b Arrival) int { return a.Entry.Timestamp.Compare(b.Entry.Timestamp) })
	return f.sendAll(found[max(len(found)-n, 0):]...)
}
