package adk

import (
	"iter"
	"maps"
	"sync"
	"time"

	"google.golang.org/adk/v2/session"
)

// handle is the session that Create, Get and List return: the log at one moment, and what was
// appended through the handle since.
type handle struct {
	place

	mu    sync.RWMutex // guards what follows, and keeps appends through one handle in order
	view               // see view; own changes only with the log
	state map[string]any
}

func (h *handle) ID() string      { return h.id }
func (h *handle) AppName() string { return h.app }
func (h *handle) UserID() string  { return h.user }

func (h *handle) State() session.State { return (*handleState)(h) }

func (h *handle) Events() session.Events {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return eventList(h.events[:len(h.events):len(h.events)])
}

func (h *handle) LastUpdateTime() time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.updated
}

// add adds an event that was appended as an entry. The caller holds mu.
func (h *handle) add(entryID string, event, stored *session.Event) {
	h.events = append(h.events, stored)
	h.last, h.updated = entryID, event.Timestamp
	h.since++
	h.newest = later(h.newest, event.Timestamp)
	_, _, own := split(event.Actions.StateDelta)
	maps.Copy(h.own, own)
	maps.Copy(h.state, event.Actions.StateDelta) // temporary state included, for this invocation
}

// eventList is events in order.
type eventList []*session.Event

func (l eventList) Len() int { return len(l) }

func (l eventList) At(i int) *session.Event {
	if i < 0 || i >= len(l) {
		return nil
	}
	return l[i]
}

func (l eventList) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for _, e := range l {
			if !yield(e) {
				return
			}
		}
	}
}

// handleState is the state of a handle. As with all services of ADK, Set changes only the
// handle: lasting changes go into an event.
type handleState handle

func (s *handleState) Get(key string) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.state[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return v, nil
}

func (s *handleState) Set(key string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[key] = value
	return nil
}

func (s *handleState) All() iter.Seq2[string, any] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.All(maps.Clone(s.state))
}
