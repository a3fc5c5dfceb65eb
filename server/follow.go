package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// mark tells a caller that nothing is missed from now on.
func (out *stream) mark(id string) error { return out.send(id, Message{Begun: true}) }

// reset tells a caller that arrivals before this point may be missing.
func (out *stream) reset(id string) error {
	if out.events {
		return out.write(id, "reset", []byte("{}"))
	}
	return out.send(id, Message{Notice: &home.Notice{Kind: home.EntriesMissed}})
}

// follow sends arrivals until the caller leaves or the server stops.
func (s *Server) follow(ctx context.Context, request *http.Request, out *stream, r *home.FollowRequest) {
	if r.Last < 0 || r.Last > 0 && r.After != "" { // the operation says what is wrong
		result, err := s.o.Home.Entries.Follow(ctx, *r, nil)
		s.finish(request, out, result, err)
		return
	}
	what := followed{filled: r.Filled}
	if r.Session != "" {
		found, err := s.o.Home.Sessions.Resolve(ctx, home.SessionRequest{Session: r.Session})
		if err != nil {
			s.finish(request, out, &home.Streamed{}, err)
			return
		}
		what.session = found.Session
	}
	f := &follower{server: s, feed: s.feeds.join(what), out: out, request: *r}
	defer f.feed.leave()
	err := f.begin(ctx)
	for err == nil {
		err = f.step(ctx)
	}
	if over, why := f.feed.ended(); over && errors.Is(err, errOver) {
		err = why
	}
	switch {
	case out.failure() != nil:
	case ctx.Err() == nil:
		s.finish(request, out, &home.Streamed{Events: f.sent}, err)
	case what.session != "":
		s.finish(request, out, &home.Streamed{Events: f.sent}, nil)
	}
}

// follower is a caller that follows a feed.
type follower struct {
	server      *Server
	feed        *feed
	out         *stream
	request     home.FollowRequest
	next        uint64          // the number of the next arrival
	last        string          // the entry that was sent last
	alreadySent map[string]bool // entries that were sent before the feed came to them
	sent        int
}

// isNumbered reports whether the caller continues after a number of the feed, and not after an
// entry.
func (f *follower) isNumbered() bool { return f.feed.what == followed{} }

// begin finds the place to begin at, and sends what comes before it.
func (f *follower) begin(ctx context.Context) error {
	if !f.feed.isLive(ctx) {
		return errOver
	}
	r := &f.request
	id, tell := "", f.out.mark
	n, ok := f.feed.position("")
	if f.isNumbered() {
		if n, ok = f.feed.position(r.After); !ok {
			tell = f.out.reset
		}
		id = f.feed.id(n - 1)
	} else if r.Session == "" && r.After != "" {
		tell = f.out.reset
	}
	f.next = n
	if !f.isNumbered() || r.After == "" || !ok {
		if err := tell(id); err != nil {
			return err
		}
	}
	switch {
	case r.Session == "" && r.Last == 0, r.Session != "" && r.Last == 0 && r.After == "":
		if _, before, ok := f.feed.latest(0); ok {
			f.last = before
		}
		return nil
	case r.Last > 0 && r.Session != "":
		if n, before, ok := f.feed.latest(r.Last); ok {
			f.next, f.last = n, before
			return nil
		}
	}
	f.last = r.After
	return f.catchUp(ctx, r.Last)
}

// step sends the next arrival, or waits for it.
func (f *follower) step(ctx context.Context) error {
	a, wait, err := f.feed.at(f.next, f.out)
	switch {
	case err != nil && f.feed.what.session != "" && f.last != "":
		return f.catchUp(ctx, 0)
	case err != nil:
		return f.restart(ctx)
	case a == nil:
		if over, _ := f.feed.ended(); over {
			return errOver
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	defer f.feed.of.written(a, f.out)
	id := a.id
	if f.isNumbered() {
		id = f.feed.id(f.next)
	}
	f.next++
	if a.id != "" && f.alreadySent[a.id] {
		return nil
	}
	f.sent++
	if a.id != "" {
		f.last = a.id
	}
	return f.out.pass(id, a)
}

// restart goes on with the next arrival, and says that something is missing.
func (f *follower) restart(ctx context.Context) error {
	if !f.feed.isLive(ctx) {
		return errOver
	}
	f.next, _ = f.feed.position("")
	id := ""
	if f.isNumbered() {
		id = f.feed.id(f.next - 1)
	}
	return f.out.reset(id)
}

// settleTime is how long the feed may take until it comes to the entries that were read from the
// log.
const settleTime = 5 * time.Second

// catchUp sends what the log has after the last entry that was sent, or its last entries, and finds
// the place in the feed after that.
func (f *follower) catchUp(ctx context.Context, last int) error {
	for {
		if last == 0 {
			if n, _, ok := f.feed.after(f.last); ok {
				if f.next = n; !f.feed.hasDropped(n) {
					return nil
				}
			}
		}
		if err := f.read(ctx, last); err != nil {
			return err
		}
		if f.feed.what.session == "" || f.last == "" {
			return nil // the entries that came meanwhile are in the feed, and were sent
		}
		last = 0
		late := time.NewTimer(settleTime)
		for found := false; !found; {
			n, wait, ok := f.feed.after(f.last)
			if over, _ := f.feed.ended(); over && !ok {
				late.Stop()
				return errOver
			}
			if found = ok; ok {
				f.next = n
				break
			}
			select {
			case <-wait:
			case <-late.C:
				found = true // not in the feed any more: read on
			case <-ctx.Done():
				late.Stop()
				return ctx.Err()
			}
		}
		late.Stop()
	}
}

// hasDropped reports whether an arrival came and is no longer kept.
func (f *feed) hasDropped(n uint64) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return n < f.next-uint64(len(f.kept))
}

// read sends entries from the log until it has reached the end: later ones are in the feed.
func (f *follower) read(ctx context.Context, last int) error {
	slot := readSlot{of: f.feed.of.reading}
	if err := slot.enter(ctx); err != nil {
		return err
	}
	defer slot.leave()
	until, ready := context.WithCancel(ctx)
	defer ready()
	r := home.FollowRequest{Session: f.feed.what.session, Filled: f.feed.what.filled, Last: last}
	if last == 0 {
		r.After = f.last
	}
	_, err := f.server.o.Home.Entries.Follow(home.WithBegun(until, ready), r, func(a home.Arrival) error {
		if until.Err() != nil {
			return errOver // later entries are in the feed
		}
		if err := f.sendEntry(ctx, &slot, a); err != nil {
			return err
		}
		return slot.enter(ctx)
	})
	if until.Err() != nil && ctx.Err() == nil && f.out.failure() == nil {
		return nil // all was read
	}
	return err
}

// sendEntry sends an entry that was read, and gives up the slot meanwhile: the caller may be
// slow. The entry counts as memory of the caller as long as it is being written: three times,
// because the line and the entry are in memory, too.
func (f *follower) sendEntry(ctx context.Context, slot *readSlot, a home.Arrival) error {
	text, err := f.feed.of.encode(Message{Event: a})
	if err != nil {
		return err
	}
	held := reservationOf(ctx)
	size := min(3*int64(len(text)), held.of.share)
	if _, err := held.try(size); err != nil {
		return err
	}
	slot.leave()
	id := a.Entry.ID
	if f.isNumbered() {
		id = f.feed.id(f.next - 1)
	}
	err = f.out.pass(id, &arrival{name: "message", text: text})
	held.release(size)
	if f.sent++; f.feed.what.session == "" {
		if f.alreadySent == nil {
			f.alreadySent = make(map[string]bool)
		}
		f.alreadySent[a.Entry.ID] = true
	}
	f.last = a.Entry.ID
	return err
}

// readSlot is a place among the few followers that may read logs at the same time.
type readSlot struct {
	of   chan struct{} // has an element for each slot in use
	held bool
}

// enter waits for a free slot.
func (s *readSlot) enter(ctx context.Context) error {
	select {
	case s.of <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave frees the slot, if it is held.
func (s *readSlot) leave() {
	if s.held {
		<-s.of
	}
	s.held = false
}
