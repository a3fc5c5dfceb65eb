//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

// A window is short, and each worker does little in it: to find an order for its operations,
// there may be many to try.
const (
	windowTime = 60 * time.Millisecond
	windowOps  = 7
)

// windower does everything that can be done to one log, one lease and one note, and after a
// moment to others.
type windower struct {
	st   store.Store
	rec  *record
	name string // of the window

	log   store.Log
	ids   []int64 // what it has
	life  int
	end   store.Pos
	forks []int64

	held  *lease.Lease
	place *lease.Place
	owner int64
}

// work goes on until enough is done.
func (w *windower) work(ctx, enough context.Context) error {
	for enough.Err() == nil && w.rec.err == nil {
		now := clock()
		w.name = fmt.Sprintf("window-%d", now/int64(windowTime))
		w.create(ctx)
		for range windowOps {
			w.one(ctx)
		}
		w.leave(ctx)
		select {
		case <-time.After(windowTime - time.Duration(now%int64(windowTime))):
		case <-enough.Done():
		}
	}
	return w.rec.err
}

// leave lets go of everything in the window.
func (w *windower) leave(ctx context.Context) {
	if w.held != nil {
		w.release(ctx)
	}
	if w.log != nil {
		_ = w.log.Close()
	}
	*w = windower{st: w.st, rec: w.rec}
}

func (w *windower) one(ctx context.Context) {
	actions := []func(context.Context){w.look, w.change, w.note, w.take}
	if w.log != nil {
		actions = append(actions, w.add, w.add, w.again, w.redact, w.fork)
	}
	if w.held != nil {
		actions = append(actions, w.check, w.release)
	}
	actions[rand.IntN(len(actions))](ctx)
}

func (w *windower) create(ctx context.Context) {
	o := op{Kind: kindCreate, Object: w.name}
	w.rec.do(&o, func() error {
		log, err := w.st.Create(ctx, w.name, store.Lines(entry{Life: 1}.line()))
		if err == nil {
			err = log.Close()
		}
		return err
	})
}

// look opens the log and reads it.
func (w *windower) look(ctx context.Context) {
	o := op{Kind: kindLook, Object: w.name}
	var log store.Log
	result := w.rec.do(&o, func() (err error) {
		if log, err = w.st.Open(ctx, w.name); err != nil {
			return err
		}
		return readTo(ctx, log, &o)
	})
	if result == ok {
		w.log, w.life = log, o.Life
		w.keep(&o)
	}
}

func (w *windower) keep(o *op) { w.ids, w.end = o.IDs, store.Pos(o.End) }

// again reads the log through the handle that it has.
func (w *windower) again(ctx context.Context) {
	o := op{Kind: kindAgain, Object: w.name, Life: w.life}
	if w.rec.do(&o, func() error { return readTo(ctx, w.log, &o) }) == ok {
		w.keep(&o)
	}
}

func (w *windower) add(ctx context.Context) {
	o := op{Kind: kindAppend, Object: w.name, ID: w.rec.id(), Life: w.life, At: int64(len(w.ids))}
	result := w.rec.do(&o, func() error {
		end, err := w.log.Append(ctx, w.end, entry{ID: o.ID}.line())
		o.End = int64(end)
		return err
	})
	if result == ok {
		w.ids, w.end = append(w.ids, o.ID), store.Pos(o.End)
	} else if result != conflict {
		w.log = nil
	}
}

// redact takes an entry out of the log, and counts its life up.
func (w *windower) redact(ctx context.Context) {
	if len(w.ids) == 0 {
		return
	}
	o := op{Kind: kindRedact, Object: w.name, ID: w.ids[rand.IntN(len(w.ids))]}
	w.rec.do(&o, func() error {
		part := store.Part{Kind: store.PartLog, Name: w.name, Place: w.st.Parts().Where(store.PartLog, w.name)}
		return w.st.Parts().Edit(ctx, part, func(line []byte) ([]byte, error) {
			var e entry
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, err
			}
			switch {
			case e.Life != 0:
				o.Life = e.Life
				e.Life++
			case e.ID == o.ID:
				e.ID = redacted
			}
			return e.line(), nil
		})
	})
}

// redacted is the id of an entry that was taken out.
const redacted = -1

// fork makes a log of the lines that it has read, and looks at it or another.
func (w *windower) fork(ctx context.Context) {
	if len(w.forks) > 0 && rand.IntN(2) == 0 {
		w.lookFork(ctx)
		return
	}
	o := op{Kind: kindFork, Object: w.name, ID: w.rec.id(), Life: w.life, IDs: w.ids}
	lines := [][]byte{entry{Life: w.life}.line()}
	for _, id := range w.ids {
		lines = append(lines, entry{ID: id}.line())
	}
	result := w.rec.do(&o, func() error {
		log, err := w.st.CreateCopy(ctx, w.forkName(o.ID), store.Lines(lines...), w.log)
		if err == nil {
			err = log.Close()
		}
		return err
	})
	if result == ok {
		w.forks = append(w.forks, o.ID)
	}
}

func (w *windower) forkName(id int64) string { return fmt.Sprintf("%s-fork-%d", w.name, id) }

func (w *windower) lookFork(ctx context.Context) {
	o := op{Kind: kindLookFork, Object: w.name, ID: w.forks[rand.IntN(len(w.forks))]}
	w.rec.do(&o, func() error {
		log, err := w.st.Open(ctx, w.forkName(o.ID))
		if err != nil {
			return err
		}
		defer log.Close()
		return readTo(ctx, log, &o)
	})
}

func (w *windower) take(ctx context.Context) {
	if w.held != nil {
		return
	}
	if w.place == nil {
		w.place = lease.At(w.st, w.name)
	}
	o := op{Kind: kindTake, Object: w.name, ID: w.rec.id()}
	result := w.rec.do(&o, func() (err error) {
		w.held, err = w.place.Take(ctx, nil)
		return err
	})
	if result == ok {
		w.owner = o.ID
	} else {
		w.held = nil
	}
}

func (w *windower) check(ctx context.Context) {
	o := op{Kind: kindHeld, Object: w.name, ID: w.owner}
	w.rec.do(&o, func() error { return w.held.Check(ctx) })
}

func (w *windower) release(ctx context.Context) {
	o := op{Kind: kindRelease, Object: w.name, ID: w.owner}
	w.rec.do(&o, func() error { return w.held.Release(ctx) })
	w.held = nil
}

// room is where the notes are.
const room = "histories"

func (w *windower) change(ctx context.Context) {
	o := op{Kind: kindChange, Object: w.name, ID: w.rec.id()}
	w.rec.do(&o, func() error {
		return w.st.Notes(room).Change(ctx, w.name, func(old []byte) ([]byte, error) {
			o.At = 0
			if old != nil {
				var err error
				if o.At, err = strconv.ParseInt(string(old), 10, 64); err != nil {
					return nil, err
				}
			}
			return strconv.AppendInt(nil, o.ID, 10), nil
		})
	})
}

func (w *windower) note(ctx context.Context) {
	o := op{Kind: kindNote, Object: w.name}
	w.rec.do(&o, func() error {
		text, err := w.st.Notes(room).Read(ctx, w.name)
		if errors.Is(err, store.ErrNotExist) {
			return nil
		}
		if err == nil {
			o.At, err = strconv.ParseInt(string(text), 10, 64)
		}
		return err
	})
}
