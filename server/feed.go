package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// feed keeps the latest arrivals in all sessions, so that any number of callers can follow
// them for the price of one, and a caller that comes back continues where it was. A caller
// that is too slow, or was away for too long, gets a reset; the feed does not wait for it.
//
//	oldest                          next
//	  │ arrival │ arrival │ arrival │  (numbers grow by one; the epoch is new with each start)
//	        ▲ a caller reads here; when it has read the last one, it waits for changed
type feed struct {
	home     *home.Home
	stopping context.Context
	begin    sync.Once
	done     chan struct{} // closed when nothing more comes

	mu      sync.Mutex
	epoch   string
	next    uint64
	kept    []arrival // the last of them has the number next-1
	size    int       // of kept, in bytes
	changed chan struct{}
	live    chan struct{} // closed when nothing that is appended from then on is missed
}

type arrival = json.RawMessage

// maxKept is how many bytes of arrivals are kept.
const maxKept = 16 << 20

func newFeed(stopping context.Context, h *home.Home) *feed {
	return &feed{home: h, stopping: stopping, epoch: rand.Text()[:8], next: 1, changed: make(chan struct{}), live: make(chan struct{})}
}

func (f *feed) close() {
	f.begin.Do(func() {}) // it can no longer begin
	if f.done != nil {
		<-f.done
	}
}

// start begins to follow the home when the first caller follows.
func (f *feed) start() {
	f.begin.Do(func() {
		f.done = make(chan struct{})
		go func() {
			defer close(f.done)
			for f.stopping.Err() == nil {
				if _, err := f.home.Entries.Follow(home.WithBegun(f.stopping, f.begun), home.FollowRequest{}, f.add); err != nil {
					f.again() // arrivals in the meantime are lost
				}
			}
		}()
	})
}

// again begins a new epoch after a moment, so that every caller gets a reset: the home may be
// readable again by then.
func (f *feed) again() {
	f.mu.Lock()
	f.epoch, f.kept, f.size = rand.Text()[:8], nil, 0
	f.next += 1 << 32 // no caller waits for a number of the new epoch
	f.live = make(chan struct{})
	f.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-f.stopping.Done():
	}
}

func (f *feed) begun() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.live:
	default:
		close(f.live)
	}
}

// isLive waits until nothing is missed any more. It reports false if ctx ends before that.
func (f *feed) isLive(ctx context.Context) bool {
	f.mu.Lock()
	live := f.live
	f.mu.Unlock()
	select {
	case <-live:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *feed) add(a home.Arrival) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, text)
	f.next++
	f.size += len(text)
	for f.size > maxKept && len(f.kept) > 1 {
		f.size -= len(f.kept[0])
		f.kept = f.kept[1:]
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// id names an arrival for a caller.
func (f *feed) id(n uint64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%s-%d", f.epoch, n)
}

// place returns the number of the arrival after the one with an id; ok is false if the feed
// no longer knows it.
func (f *feed) place(id string) (n uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" {
		return f.next, true
	}
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch != f.epoch || n >= f.next || n+1 < f.next-uint64(len(f.kept)) {
		return f.next, false
	}
	return n + 1, true
}

// from returns the arrivals from a number on, or what to wait for if there are none yet; ok is
// false if some of them are no longer kept.
func (f *feed) from(n uint64) (found []arrival, wait <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.next - uint64(len(f.kept))
	if n < oldest {
		return nil, nil, false
	}
	return f.kept[n-oldest:], f.changed, true
}

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
func (s *Server) follow(ctx context.Context, request *http.Request, out *stream, h *home.Home, r *home.FollowRequest) {
	if r.Session != "" || r.Last > 0 || r.Filled || h != s.o.Home {
		// The feed is for the whole home: its numbers would tell a caller with a limited token
		// how much happens elsewhere. So only a caller that follows one session continues here.
		tell := out.mark
		if r.Session == "" && r.Last == 0 && r.After != "" {
			r.After, tell = "", out.reset
		}
		ctx = home.WithBegun(ctx, func() { _ = tell("") })
		result, err := h.Entries.Follow(ctx, *r, func(a home.Arrival) error { return out.send(a.Entry.ID, Message{Event: a}) })
		s.finish(ctx, request, out, result, err)
		return
	}
	s.feed.start()
	if !s.feed.isLive(ctx) {
		return
	}
	n, ok := s.feed.place(r.After)
	if !ok && out.reset(s.feed.id(n-1)) != nil {
		return
	}
	if r.After == "" && out.mark(s.feed.id(n-1)) != nil { // from now on nothing is missed
		return
	}
	for {
		found, wait, ok := s.feed.from(n)
		if !ok {
			if !s.feed.isLive(ctx) {
				return
			}
			n, _ = s.feed.place("")
			if out.reset(s.feed.id(n-1)) != nil {
				return
			}
			continue
		}
		for _, a := range found {
			if out.send(s.feed.id(n), Message{Event: a}) != nil {
				return
			}
			n++
		}
		if len(found) > 0 {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return
		}
	}
}
