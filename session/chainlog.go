package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// chainLog joins the logs of a chain into one log that can only be read. Positions count
// through the logs, one after the other.
type chainLog struct {
	name  string
	parts []*chainPart
	end   store.Pos
	leaf  string // the leaf according to the lines, which may differ from the conversation's
}

// chainPart is one of the logs, up to its end at the time when the chain was opened.
type chainPart struct {
	name      string
	log       store.Log
	base, end store.Pos
	patch     map[store.Pos][]byte // lines that differ in the chain; an empty one is left out
	was       map[string]string    // for entries whose id differs in the chain, the id in the log
}

// partAt returns the part that a position is in.
func (l *chainLog) partAt(pos store.Pos) *chainPart {
	for _, p := range slices.Backward(l.parts) {
		if p.base <= pos {
			return p
		}
	}
	return l.parts[0]
}

// shown returns a line as it is in the chain, and whether it is there.
func (p *chainPart) shown(line store.Line) (store.Line, bool) {
	if data, ok := p.patch[line.Pos]; ok {
		line.Data, line.Cut = slices.Clone(data), false
		if len(data) == 0 {
			return line, false
		}
	}
	line.Pos += p.base
	line.Next += p.base
	return line, true
}

func (p *chainPart) lines(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range p.log.Forward(ctx, from) {
			if err == nil && line.Next > p.end {
				return
			}
			there := true
			if err == nil {
				line, there = p.shown(line)
			}
			if there && !yield(line, err) {
				return
			}
		}
	}
}

func (l *chainLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range l.parts {
			if p.base+p.end <= from {
				continue
			}
			for line, err := range p.lines(ctx, max(from-p.base, 0)) {
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range slices.Backward(l.parts) {
			if p.base >= from {
				continue
			}
			for line, err := range p.log.Backward(ctx, min(from-p.base, p.end)) {
				there := true
				if err == nil {
					line, there = p.shown(line)
				}
				if there && !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Append(context.Context, store.Pos, ...[]byte) (store.Pos, error) {
	return 0, &store.Error{
		Op: "append", Name: l.name, Kind: ErrInvalid, Err: errors.New("the sessions of a chain can only be read together"),
		Hint: "append to the last of them",
	}
}

func (l *chainLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, err := l.Append(ctx, at, lines...)
	return end, nil, err
}

// Watch yields what is there and then waits until ctx ends: others append to the logs, not
// to the chain as it was opened.
func (l *chainLog) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range l.Forward(ctx, from) {
			if !yield(line, err) {
				return
			}
		}
		<-ctx.Done()
	}
}

func (l *chainLog) End(context.Context) (store.Pos, error) { return l.end, nil }

func (l *chainLog) Flush(context.Context) error { return nil }

func (l *chainLog) Close() error {
	var errs []error
	for _, p := range l.parts {
		if err := p.log.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

// Pin keeps all logs as they are: see store.Log.
func (l *chainLog) Pin(ctx context.Context) (func(), error) {
	var releases []func()
	release := func() {
		for _, r := range releases {
			r()
		}
	}
	for _, p := range l.parts {
		r, err := p.log.Pin(ctx)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, r)
	}
	return release, nil
}

// Current reports whether somebody rewrote one of the logs: see store.Log.
func (l *chainLog) Current() error {
	for _, p := range l.parts {
		if err := p.log.Current(); err != nil {
			return err
		}
	}
	return nil
}
