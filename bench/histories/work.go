//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Everyone works on the same few logs, and after a while on others, so that none becomes long.
// The clock says on which, so that nobody has to agree with anybody.
const (
	lists    = 8
	listTime = 2 * time.Second
)

// lister appends to logs and reads them.
type lister struct {
	st   store.Store
	rec  *record
	logs map[string]*list
}

// list is a log as one worker knows it.
type list struct {
	name   string
	log    store.Log
	end    store.Pos // the last one that it heard of
	behind bool      // there is a later one
}

// entry is what the lines of all logs here are. In a window, the first line says which life of
// the log it is.
type entry struct {
	ID   int64 `json:"id,omitempty"`
	Life int   `json:"life,omitempty"`
}

func (e entry) line() []byte {
	text, _ := json.Marshal(e) // cannot fail
	return text
}

// work does so many operations, or fewer if ctx ends before.
func (w *lister) work(ctx context.Context, n int) error {
	for range n {
		if ctx.Err() != nil || w.rec.err != nil {
			break
		}
		l, err := w.pick(ctx)
		if err != nil {
			return err
		}
		switch p := rand.IntN(100); {
		case l.behind || p < 35:
			w.read(ctx, l, l.end)
		case p < 97:
			w.add(ctx, l)
		case p < 99:
			w.read(ctx, l, 0)
		default:
			w.readBackward(ctx, l)
		}
	}
	w.forget()
	return w.rec.err
}

func (w *lister) forget() {
	for _, l := range w.logs {
		_ = l.log.Close()
	}
	w.logs = make(map[string]*list)
}

// pick returns the log to work on now.
func (w *lister) pick(ctx context.Context) (*list, error) {
	name := fmt.Sprintf("list-%d-%d", clock()/int64(listTime), rand.IntN(lists))
	if l := w.logs[name]; l != nil {
		return l, nil
	}
	if len(w.logs) >= 2*lists {
		w.forget()
	}
	log, err := w.st.Create(ctx, name, store.Lines())
	if errors.Is(err, store.ErrExist) {
		log, err = w.st.Open(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	w.logs[name] = &list{name: name, log: log}
	return w.logs[name], nil
}

func (w *lister) add(ctx context.Context, l *list) {
	o := op{Kind: kindAppend, Object: l.name, ID: w.rec.id(), At: int64(l.end)}
	result := w.rec.do(&o, func() error {
		end, err := l.log.Append(ctx, l.end, entry{ID: o.ID}.line())
		o.End = int64(end)
		return err
	})
	if result == ok {
		l.end = store.Pos(o.End)
		return
	}
	l.behind = true
	if result != conflict { // such a handle may take no more
		_ = l.log.Close()
		delete(w.logs, l.name)
	}
}

func (w *lister) read(ctx context.Context, l *list, from store.Pos) {
	o := op{Kind: kindRead, Object: l.name, At: int64(from), End: int64(from)}
	if w.rec.do(&o, func() error { return readTo(ctx, l.log, &o) }) == ok {
		l.end, l.behind = store.Pos(o.End), false
	}
}

func readTo(ctx context.Context, log store.Log, o *op) error {
	for line, err := range log.Forward(ctx, store.Pos(o.At)) {
		if err != nil {
			return err
		}
		note(o, line)
		o.End = int64(line.Next)
	}
	return nil
}

// note takes down the id of a line. What cannot be read was written by nobody.
func note(o *op, line store.Line) {
	var e entry
	if err := json.Unmarshal(line.Data, &e); err != nil || !bytes.Equal(line.Data, e.line()) {
		e = entry{}
	}
	if e.Life != 0 {
		o.Life = e.Life
		return
	}
	o.IDs = append(o.IDs, e.ID)
}

func (w *lister) readBackward(ctx context.Context, l *list) {
	o := op{Kind: kindBackward, Object: l.name, End: int64(l.end)}
	w.rec.do(&o, func() error {
		for line, err := range l.log.Backward(ctx, l.end) {
			if err != nil {
				return err
			}
			note(&o, line)
		}
		slices.Reverse(o.IDs)
		return nil
	})
}
