package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// chainLog joins the logs of a chain into one log. Positions count through the logs, one
// after the other. What is appended goes to the last of them.
//
// An example, with the logs at the top of join.go. Say that they have no headers and that
// each line has 100 bytes. The log of s0 then has 300, so the part of s1 has base 300. In its patch the lines of a' and m are empty, which leaves them out,
// and the line of b has the id b~2 and the parent c; was says that b~2 is b in that log.
//
//	position in the chain   0    100  200  300  400  500    600
//	line                    a    b    c    a'   m    b~2    d
//	part, position in it    s0 0 100  200  s1 0 100  200    300
//
// Forward from 300 reads s1 from 0, skips two lines, and yields b~2 at 500. An append at 700
// is an append to s1 at 400.
//
// Readers see what has been joined. Only absorb and write join more, under the session's
// lock.
type chainLog struct {
	name string
	live *linkJoiner // of the last log

	mu    sync.RWMutex // guards what follows, and what it says in chainPart
	parts []*chainPart
	ready int    // how many of parts readers may see
	leaf  string // the leaf according to the lines, which may differ from the conversation's
}

// chainPart is one of the logs, as far as it has been joined.
type chainPart struct {
	name string
	log  store.Log
	base store.Pos

	// The log's mu guards these.
	end   store.Pos
	patch map[store.Pos][]byte // lines that differ in the chain; an empty one is left out
	was   map[string]string    // for entries whose id differs in the chain, the id in the log
}

// joined returns the logs.
func (l *chainLog) joined() []*chainPart {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.parts[:l.ready:l.ready]
}

// last returns the log that takes what is appended.
func (l *chainLog) last() *chainPart {
	parts := l.joined()
	return parts[len(parts)-1]
}

// endOf returns up to where a log has been joined.
func (l *chainLog) endOf(p *chainPart) store.Pos {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return p.end
}

// shown returns a line as it is in the chain, and whether it is there.
func (l *chainLog) shown(p *chainPart, line store.Line) (store.Line, bool) {
	l.mu.RLock()
	data, ok := p.patch[line.Pos]
	l.mu.RUnlock()
	if ok {
		line.Data, line.Cut = slices.Clone(data), false
		if len(data) == 0 {
			return line, false
		}
	}
	line.Pos += p.base
	line.Next += p.base
	return line, true
}

func (l *chainLog) lines(ctx context.Context, p *chainPart, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		end := l.endOf(p)
		for line, err := range p.log.Forward(ctx, from) {
			if err == nil && line.Next > end {
				return
			}
			there := true
			if err == nil {
				line, there = l.shown(p, line)
			}
			if there && !yield(line, err) {
				return
			}
		}
	}
}

func (l *chainLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range l.joined() {
			if p.base+l.endOf(p) <= from {
				continue
			}
			for line, err := range l.lines(ctx, p, max(from-p.base, 0)) {
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range slices.Backward(l.joined()) {
			if p.base >= from {
				continue
			}
			for line, err := range p.log.Backward(ctx, min(from-p.base, l.endOf(p))) {
				there := true
				if err == nil {
					line, there = l.shown(p, line)
				}
				if there && !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	end, commit, err := l.Start(ctx, at, lines...)
	if err == nil {
		err = commit()
	}
	return end, err
}

// Start appends lines, in the words of the last session: see linkJoiner.inLink.
func (l *chainLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	p := l.last()
	end, commit, err := p.log.Start(ctx, at-p.base, lines...)
	if err != nil {
		return 0, nil, err
	}
	if err := l.join(context.WithoutCancel(ctx), end); err != nil {
		return 0, nil, errUnread("append", p.name, err, commit())
	}
	return p.base + end, commit, nil
}

// join joins what has come to the last log, up to a position; 0 is its end. It is called
// with the session's mu held for writing.
func (l *chainLog) join(ctx context.Context, upTo store.Pos) error {
	p := l.last()
	for line, err := range p.log.Forward(ctx, p.end) {
		if err != nil {
			return err
		}
		l.live.takeLine(line)
		if line.Next == upTo {
			break
		}
	}
	return nil
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

func (l *chainLog) End(context.Context) (store.Pos, error) {
	p := l.last()
	return p.base + l.endOf(p), nil
}

func (l *chainLog) Flush(ctx context.Context) error { return l.last().log.Flush(ctx) }

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
	for _, p := range l.joined() {
		r, err := p.log.Pin(ctx)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, r)
	}
	return release, nil
}

// Current reports whether one of the logs was rewritten: see store.Log.
func (l *chainLog) Current() error {
	for _, p := range l.joined() {
		if err := p.log.Current(); err != nil {
			return err
		}
	}
	return nil
}
