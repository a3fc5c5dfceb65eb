package agent

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider"
)

// defaultBuffer is how many events wait for a subscriber that sets no limit.
const defaultBuffer = 1024

// hub passes events on to the subscribers. Publishing never waits for one of them.
type hub struct {
	mu     sync.Mutex
	number int64
	subs   map[*Subscription]bool
	closed bool
}

// Subscription is a listener's queue of events. Close it when it is no longer read.
type Subscription struct {
	hub  *hub
	max  int
	wake chan struct{} // has one element when there may be news
	done chan struct{} // closed when no more events come

	mu     sync.Mutex // guards what follows
	queue  []waiting
	missed int64
	closed bool

	readers int           // that wait in Next
	isRead  bool          // there has been a reader since the turn began
	empty   chan struct{} // closed when the queue is empty, or nil
}

// waiting is an event that waits to be read, with the pieces of text that were joined to
// it. They become one text when it is read: appending to a long text repeatedly would
// get slower and slower, and the agent would wait for it.
type waiting struct {
	Event
	more []string
}

func (h *hub) subscribe(buffer int) *Subscription {
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	s := &Subscription{hub: h, max: buffer, wake: make(chan struct{}, 1), done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.end()
		return s
	}
	if h.subs == nil {
		h.subs = make(map[*Subscription]bool)
	}
	h.subs[s] = true
	return s
}

// hasListeners reports whether there are subscribers.
func (h *hub) hasListeners() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// publish numbers an event and hands it to every subscriber, in the same order to all.
func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	e.Number, e.Time = h.number, time.Now()
	if e.Err != nil {
		e.Error = e.Err.Error()
	}
	for s := range h.subs {
		s.add(e)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.subs {
		s.end()
	}
	h.subs = nil
}

// drain waits until the subscribers have read all events. It does not wait for one that does
// not read or takes too long.
func (h *hub) drain() {
	h.mu.Lock()
	var unread []<-chan struct{}
	for s := range h.subs {
		if c := s.unread(); c != nil {
			unread = append(unread, c)
		}
	}
	h.mu.Unlock()
	late := time.NewTimer(grace)
	defer late.Stop()
	for _, c := range unread {
		select {
		case <-c:
		case <-late.C:
			return
		}
	}
}

// unread returns a channel that is closed when everything was read. It returns nil if nothing
// is left to read, or if there is no reader.
func (s *Subscription) unread() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || !s.isRead || s.closed {
		return nil
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	return s.empty
}

// allRead ends the waiting of drain.
func (s *Subscription) allRead() {
	if s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

func (s *Subscription) add(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Type == TurnStart {
		s.isRead = s.readers > 0
	}
	switch last := len(s.queue) - 1; {
	case s.closed:
		return
	case last >= 0 && s.missed == 0 && s.queue[last].join(&e):
	case len(s.queue) >= s.max:
		s.missed++
	default:
		s.noteMissed()
		s.queue = append(s.queue, waiting{Event: e})
	}
	s.signal()
}

// noteMissed queues an event for those that were left out, where it happened.
func (s *Subscription) noteMissed() {
	if s.missed > 0 {
		s.queue = append(s.queue, waiting{Event: Event{Type: Missed, Missed: s.missed, Time: time.Now()}})
		s.missed = 0
	}
}

// join adds a piece of text to the piece before it, if both belong to one block. What a tool
// says so far replaces what it said before.
func (w *waiting) join(next *Event) bool {
	if w.Type == ToolUpdate && next.Type == ToolUpdate && w.Call.ID == next.Call.ID {
		w.Event = *next
		return true
	}
	if w.Type != MessageUpdate || next.Type != MessageUpdate {
		return false
	}
	a, b := w.Update, next.Update
	if a.Type != b.Type || a.Block != b.Block {
		return false
	}
	switch a.Type {
	case provider.EventText, provider.EventThinking, provider.EventCallDelta:
	default:
		return false
	}
	w.more = append(w.more, b.Text)
	w.Number, w.Time = next.Number, next.Time
	return true
}

// event returns the event as it is read. Its update is shared with other subscribers, so
// joined text goes into a copy.
func (w *waiting) event() Event {
	e := w.Event
	if len(w.more) > 0 {
		whole := *e.Update
		whole.Text += strings.Join(w.more, "")
		e.Update = &whole
	}
	return e
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allRead()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

// Next waits for the next event. ok is false when ctx ends, or when the agent or the
// subscription is closed and everything was read. Several goroutines may share a
// subscription: each event goes to one of them.
func (s *Subscription) Next(ctx context.Context) (e Event, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isRead = true
	s.readers++
	defer func() { s.readers-- }()
	for {
		if len(s.queue) == 0 {
			s.noteMissed()
		}
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue[0] = waiting{} // so that the event can be freed
			if s.queue = s.queue[1:]; len(s.queue) > 0 {
				s.signal() // for another reader
			} else {
				s.allRead()
			}
			return next.event(), true
		}
		if s.closed {
			return Event{}, false
		}
		s.mu.Unlock()
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil && len(s.queue) == 0 {
			s.leave()
			return Event{}, false
		}
	}
}

// leave records that a reader no longer waits.
func (s *Subscription) leave() {
	s.isRead = false
	s.allRead()
}

// Events yields the events until ctx ends or the subscription does.
func (s *Subscription) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, ok := s.Next(ctx)
			if !ok {
				return
			}
			if !yield(e) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.leave()
				return
			}
		}
	}
}

// Close ends the subscription. Events that wait can still be read.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	delete(s.hub.subs, s)
	s.hub.mu.Unlock()
	s.end()
}
