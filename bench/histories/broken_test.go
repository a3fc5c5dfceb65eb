//go:build unix

package main

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

// fault is what is wrong with a store.
type fault int

const (
	loses       fault = iota // an append that it acknowledges
	doubles                  // an append
	misplaces                // an append whose place is taken
	swaps                    // two lines
	isStale                  // does not show the last line yet
	deniesDone               // says that it met a conflict, and did it
	deniesFree               // says that there is a conflict, and there is none
	forgetsPast              // appends to what was rewritten
	racesLeases              // changes the note of a lease that has changed since
	racesNotes               // changes another note that has changed since
	keepsSecret              // does not redact
	revives                  // forks what was redacted
)

// broken are the faults, which check must find them, and what it must say.
var broken = map[string]struct {
	fault  fault
	window bool
	found  string
}{
	"loses an acknowledged append":    {loses, false, "an acknowledged entry is lost"},
	"loses one in a window":           {loses, true, "became of the log"},
	"doubles an append":               {doubles, false, "is there twice"},
	"appends at another place":        {misplaces, false, "the entry is number"},
	"swaps lines":                     {swaps, false, "the entry is number"},
	"answers stale reads":             {isStale, false, "a stale answer"},
	"answers stale reads in a window": {isStale, true, "became of the log"},
	"denies what it did":              {deniesDone, false, "that met a conflict has happened"},
	"denies for no reason":            {deniesFree, false, "nobody had appended there"},
	"appends to a redacted log":       {forgetsPast, true, "became of the log"},
	"lets two hold a lease":           {racesLeases, true, "became of the lease"},
	"loses a change of a note":        {racesNotes, true, "became of the note"},
	"does not redact":                 {keepsSecret, true, "became of the log"},
	"revives what was redacted":       {revives, true, "became of the log"},
}

// faulty is a store with a fault.
type faulty struct {
	store.Store
	fault fault
	rand  *rand.Rand
}

func (s *faulty) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return s.log(s.Store.Create(ctx, name, lines))
}

func (s *faulty) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	if s.fault == revives {
		return s.Create(ctx, name, lines)
	}
	return s.log(s.Store.CreateCopy(ctx, name, lines, of))
}

func (s *faulty) Open(ctx context.Context, name string) (store.Log, error) {
	l, err := s.log(s.Store.Open(ctx, name))
	if f, ok := l.(*faultyLog); ok {
		f.name = name
	}
	return l, err
}

func (s *faulty) log(l store.Log, err error) (store.Log, error) {
	if err != nil {
		return nil, err
	}
	return &faultyLog{Log: l, store: s}, nil
}

func (s *faulty) Notes(room string) store.Notes {
	if s.fault == racesLeases && room == lease.Room || s.fault == racesNotes && room != lease.Room {
		return racyNotes{s.Store.Notes(room)}
	}
	return s.Store.Notes(room)
}

func (s *faulty) Parts() store.Parts {
	if s.fault == keepsSecret {
		return forgetfulParts{s.Store.Parts()}
	}
	return s.Store.Parts()
}

type faultyLog struct {
	store.Log
	store *faulty
	name  string
}

func (s *faulty) sometimes() bool { return s.rand.IntN(4) == 0 }

func (l *faultyLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	refuse := &store.Error{Op: "append", Kind: store.ErrConflict}
	switch fault := l.store.fault; {
	case fault == loses && l.store.sometimes():
		return at + store.Pos(len(lines[0])) + 1, nil
	case fault == deniesFree && l.store.sometimes():
		return 0, refuse
	}
	end, err := l.Log.Append(ctx, at, lines...)
	switch fault := l.store.fault; {
	case err == nil && fault == doubles && l.store.sometimes():
		_, err := l.Log.Append(ctx, end, lines...)
		return end, err
	case err == nil && fault == deniesDone && l.store.sometimes():
		return 0, refuse
	case errors.Is(err, store.ErrConflict) && fault == misplaces:
		if end, err = l.End(ctx); err == nil {
			_, err = l.Log.Append(ctx, end, lines...)
		}
		return at + store.Pos(len(lines[0])) + 1, err
	case errors.Is(err, store.ErrReplaced) && fault == forgetsPast:
		now, err := l.store.Store.Open(ctx, l.name)
		if err != nil {
			return 0, err
		}
		if end, err = now.End(ctx); err == nil {
			end, err = now.Append(ctx, end, lines...)
		}
		return end, err
	}
	return end, err
}

func (l *faultyLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	switch l.store.fault {
	case isStale:
		return l.withoutLast(ctx, from)
	case swaps:
		return l.swapped(ctx, from)
	}
	return l.Log.Forward(ctx, from)
}

func (l *faultyLog) withoutLast(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		lines, err := collect(l.Log.Forward(ctx, from))
		if len(lines) > 1 && l.store.sometimes() {
			lines = lines[:len(lines)-1]
		}
		give(lines, err, yield)
	}
}

func (l *faultyLog) swapped(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		lines, err := collect(l.Log.Forward(ctx, from))
		for i := 3; i < len(lines) && from == 0; i += 4 {
			if len(lines[i].Data) == len(lines[i-1].Data) {
				lines[i].Data, lines[i-1].Data = lines[i-1].Data, lines[i].Data
			}
		}
		give(lines, err, yield)
	}
}

func collect(lines iter.Seq2[store.Line, error]) (all []store.Line, err error) {
	for line, err := range lines {
		if err != nil {
			return all, err
		}
		line.Data = append([]byte{}, line.Data...)
		all = append(all, line)
	}
	return all, nil
}

func give(lines []store.Line, err error, yield func(store.Line, error) bool) {
	for _, line := range lines {
		if !yield(line, nil) {
			return
		}
	}
	if err != nil {
		yield(store.Line{}, err)
	}
}

type racyNotes struct{ store.Notes }

func (n racyNotes) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	old, err := n.Read(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	data, err := change(old)
	if err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return n.Write(ctx, name, data)
}

type forgetfulParts struct{ store.Parts }

func (p forgetfulParts) Edit(ctx context.Context, part store.Part, edit func([]byte) ([]byte, error)) error {
	return p.Parts.Edit(ctx, part, func(line []byte) ([]byte, error) {
		_, err := edit(line)
		return line, err
	})
}
