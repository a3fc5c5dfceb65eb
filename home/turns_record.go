package home

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/agent"
)

// maxRecord is how many bytes of events a turn keeps for its listeners.
const maxRecord = 4 << 20

// turnRecord has the events of a turn. Each listener reads it from its own place, at its own
// speed: the turn waits for none of them. When it gets too large, the oldest events are
// dropped.
type turnRecord struct {
	number func() int64  // returns the number of the next event
	done   chan struct{} // closed when the turn has ended

	mu        sync.Mutex    // guards what follows
	changed   chan struct{} // closed at the next change
	numbers   []int64       // of all events
	events    []kept        // the last of them
	size      int
	listeners int // who began the turn is one from the beginning
	result    *TurnResult
	err       error
}

// kept is an event with its size.
type kept struct {
	event TurnEvent
	size  int
}

func newTurnRecord(number func() int64) *turnRecord {
	return &turnRecord{number: number, done: make(chan struct{}), changed: make(chan struct{}), listeners: 1}
}

// record adds an event.
func (r *turnRecord) record(e TurnEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(e)
	r.wake()
}

func (r *turnRecord) add(e TurnEvent) {
	e.Number = r.number()
	text, _ := json.Marshal(&e) // if that fails, it fails for the listeners, too
	r.numbers = append(r.numbers, e.Number)
	r.events = append(r.events, kept{e, len(text)})
	r.size += len(text)
	for len(r.events) > 1 && r.size > maxRecord {
		r.size -= r.events[0].size
		r.events[0] = kept{}
		r.events = r.events[1:]
	}
}

// end records how the turn ended, with its last event if there is one.
func (r *turnRecord) end(last *TurnEvent, result *TurnResult, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last != nil {
		r.add(*last)
	}
	r.result, r.err = result, err
	close(r.done)
	r.wake()
}

func (r *turnRecord) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *turnRecord) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// hasListeners reports whether there are listeners, and returns what is closed when that may
// change.
func (r *turnRecord) hasListeners() (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listeners > 0, r.changed
}

func (r *turnRecord) count(listeners int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners += listeners
	r.wake()
}

// Listen sends the events of the turn, and waits for its end or that of ctx. It is for whoever
// began the turn, and called once.
func (r *turnRecord) Listen(ctx context.Context, send func(TurnEvent) error) (*TurnResult, error) {
	defer r.count(-1)
	return r.replay(ctx, 0, send)
}

// listen is Listen for others, who may have some of the events.
func (r *turnRecord) listen(ctx context.Context, after int64, send func(TurnEvent) error) (*TurnResult, error) {
	r.count(1)
	defer r.count(-1)
	return r.replay(ctx, after, send)
}

// replay sends the events after a number, and waits for the end of the turn.
func (r *turnRecord) replay(ctx context.Context, after int64, send func(TurnEvent) error) (*TurnResult, error) {
	var sent Streamed
	for {
		batch, changed, done := r.since(after)
		for _, e := range batch {
			if err := pass(&sent, send, e); err != nil {
				return nil, err
			}
			after = e.Number
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case len(batch) > 0:
		case done:
			return r.outcome(sent)
		default:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// maxBatch is how many events a listener takes at once.
const maxBatch = 64

// since returns the next events after a number, what is closed when there are more, and whether
// the turn has ended. If some are gone, the first one says how many.
func (r *turnRecord) since(after int64) (batch []TurnEvent, changed <-chan struct{}, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, has := slices.BinarySearch(r.numbers, after)
	if has {
		next++
	}
	first := len(r.numbers) - len(r.events)
	if gone := first - next; gone > 0 {
		next = first
		missed := agent.Event{Type: agent.Missed, Number: r.numbers[first-1], Time: r.events[0].event.Time, Missed: int64(gone)}
		batch = append(batch, TurnEvent{Event: missed})
	}
	rest := r.events[next-first:]
	for _, k := range rest[:min(len(rest), maxBatch)] {
		batch = append(batch, k.event)
	}
	return batch, r.changed, r.isDone()
}

// outcome returns how the turn ended, for a listener that got sent.Events events.
func (r *turnRecord) outcome(sent Streamed) (*TurnResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.result == nil {
		return nil, r.err
	}
	result := *r.result
	result.Streamed = sent
	return &result, r.err
}
