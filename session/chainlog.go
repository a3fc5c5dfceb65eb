package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// chainLog joins the logs of a chain into one: they come one after the other, without the
// headers of the later ones. No line is changed, so the meaning of the lines together is for the
// tree to say: see tree_join.go. What is appended goes to the last log.
//
// Positions count through the logs. Say that s0 has 300 bytes and s1 has 500:
//
//	position in the chain   0    100  200  300  400  500  600  700
//	line                    a    b    c    -    a    m    d    e
//	log, position in it     s0 0 100  200  s1 0 100  200  300  400
//
// The header of s1 is left out, and a is there twice: s1 begins with a copy of it, before its
// marker m. So the part of s1 has shift 300, header 0, and marker 200.
//
// Earlier logs are read up to where they ended when they were joined, the last one as far as it
// goes. Only Refresh and what writes join more, under the session's lock.
type chainLog struct {
	name  string
	store store.Store

	mu    sync.RWMutex // guards what follows
	parts []*chainPart // never empty; the list is replaced, not changed

	now      continued // the continuation according to the last log,
	searched store.Pos // up to here
}

// chainPart is one of the logs. It never changes: when another one follows, a copy takes its place.
type chainPart struct {
	name    string
	log     store.Log
	shift   store.Pos // how many bytes come before it in the chain
	end     store.Pos // up to where it is read; 0 for the last one
	header  store.Pos // where its header is, or noLine
	first   []byte    // the header of the chain, if that is not the one in the first log
	follows bool      // it continues the session before it, and that is there
	marker  store.Pos // where its marker is, or noLine

	given map[string]bool // the ids before the marker: the session has these entries, too
	isOdd bool            // up to the marker is something that is neither a copy nor the marker
}

// noLine is the position of a line that a log does not have.
const noLine store.Pos = -1

// severalIn returns the log of a chain of several sessions, or nil.
func severalIn(log store.Log) *chainLog {
	if chain, ok := log.(*chainLog); ok && len(chain.joined()) > 1 {
		return chain
	}
	return nil
}

// joined returns the logs.
func (l *chainLog) joined() []*chainPart {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.parts
}

// last returns the log that lines are appended to.
func (l *chainLog) last() *chainPart {
	parts := l.joined()
	return parts[len(parts)-1]
}

// partAt returns the number of the log that has a position.
func (l *chainLog) partAt(pos store.Pos) int {
	parts := l.joined()
	at := len(parts) - 1
	for at > 0 && parts[at].shift > pos {
		at--
	}
	return at
}

// isRegular reports whether all later sessions begin with what may be copies and a marker.
func (l *chainLog) isRegular() bool {
	parts := l.joined()
	return !slices.ContainsFunc(parts[1:], func(p *chainPart) bool { return p.isOdd || p.marker == noLine })
}

// add joins a log to the others.
func (l *chainLog) add(ctx context.Context, p *chainPart) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := slices.Clone(l.parts)
	if n := len(parts); n > 0 {
		before := *parts[n-1]
		end, err := before.log.End(ctx)
		if err != nil {
			return err
		}
		before.end, p.shift = end, before.shift+end
		parts[n-1] = &before
	}
	l.parts = append(parts, p)
	l.now, l.searched = continued{}, 0
	return nil
}

// replace replaces all parts.
func (l *chainLog) replace(parts []*chainPart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts, l.now, l.searched = parts, continued{}, 0
}

// hasGrown reports whether something was added to an earlier log.
func (l *chainLog) hasGrown(ctx context.Context) (bool, error) {
	parts := l.joined()
	for _, p := range parts[:len(parts)-1] {
		if end, err := p.log.End(ctx); err != nil || end != p.end {
			return true, err
		}
	}
	return false, nil
}

// read yields the lines of a log from a position in it, as they are in the chain.
func (p *chainPart) read(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range p.log.Forward(ctx, from) {
			if err == nil && p.end > 0 && line.Next > p.end {
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

// shown returns a line as it is in the chain, and whether it is there.
func (p *chainPart) shown(line store.Line) (store.Line, bool) {
	if line.Pos == p.header {
		if p.shift > 0 {
			return line, false
		}
		if p.first != nil {
			line.Data = slices.Clone(p.first)
		}
	}
	line.Pos += p.shift
	line.Next += p.shift
	return line, true
}

func (l *chainLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range l.joined() {
			if p.end > 0 && p.shift+p.end <= from {
				continue
			}
			for line, err := range p.read(ctx, max(from-p.shift, 0)) {
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

// Backward leaves out the lines before the marker of a later session.
func (l *chainLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range slices.Backward(l.joined()) {
			if p.shift >= from {
				continue
			}
			end := from - p.shift
			if p.end > 0 {
				end = min(end, p.end)
			}
			for line, err := range p.log.Backward(ctx, end) {
				there := true
				if err == nil {
					line, there = p.shown(line)
				}
				if there && !yield(line, err) {
					return
				}
				if err == nil && p.isSeam(line.Pos) {
					break
				}
			}
		}
	}
}

// isOwn reports whether a position is after the marker of the last log, and so in lines that are in
// the chain as they are.
func (l *chainLog) isOwn(pos store.Pos) bool {
	last := l.last()
	return last.marker != noLine && pos > last.shift+last.marker
}

// isSeam reports whether a position in the chain is that of the marker with which a later session
// begins.
func (p *chainPart) isSeam(pos store.Pos) bool {
	return p.shift > 0 && p.marker != noLine && pos == p.shift+p.marker
}

func (l *chainLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	end, commit, err := l.Start(ctx, at, lines...)
	if err == nil {
		err = commit()
	}
	return end, err
}

func (l *chainLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	p := l.last()
	end, commit, err := p.log.Start(ctx, at-p.shift, lines...)
	return p.shift + end, commit, err
}

func (l *chainLog) End(ctx context.Context) (store.Pos, error) {
	p := l.last()
	end, err := p.log.End(ctx)
	return p.shift + end, err
}

// continuation returns the continuation according to the last log. It reads what has come
// since it was asked before.
func (l *chainLog) continuation(ctx context.Context) (continued, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[len(l.parts)-1]
	end := l.searched
	lines := func(yield func(store.Line, error) bool) {
		for line, err := range p.log.Forward(ctx, end) {
			end = line.Next
			if !yield(line, err) {
				return
			}
		}
	}
	now, err := l.now.read(ctx, p.log, lines, p.name)
	if err == nil {
		l.now, l.searched = now, end
	}
	return now, err
}

// Watch yields the lines of the chain, those that exist and those to come, and goes on in the sessions
// that continue the chain. Of these, it leaves out the lines before the marker.
func (l *chainLog) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		ours := &chainLog{name: l.name, store: l.store, parts: l.joined()} // so that what we join changes nothing for others
		last := ours.last()
		for line, err := range l.Forward(ctx, from) {
			if err == nil && line.Pos >= last.shift {
				break
			}
			if !yield(line, err) {
				return
			}
		}
		from = max(from-last.shift, 0)
		for {
			next, ok := ours.watchLast(ctx, from, yield)
			if !ok {
				return
			}
			defer next.log.Close()
			leaf, err := leafIn(ctx, ours)
			if err == nil {
				err = ours.add(ctx, next)
			}
			if err != nil {
				yield(store.Line{}, err)
				return
			}
			if from = max(next.marker, 0); next.isSeam(next.shift + next.marker) {
				for line, err := range next.read(ctx, from) {
					if from = line.Next - next.shift; err == nil {
						line.Data = withParent(line.Data, leaf)
					}
					if !yield(line, err) || err != nil {
						return
					}
					break
				}
			}
		}
	}
}

// maxPause is the longest pause between two looks for the continuation of a log.
const maxPause = time.Second

// watchLast yields the lines of the last log, also those to come, until there is a session that
// continues it.
func (l *chainLog) watchLast(ctx context.Context, from store.Pos, yield func(store.Line, error) bool) (next *chainPart, ok bool) {
	p := l.last()
	show := func(line store.Line, err error) bool {
		if err == nil {
			from = line.Next
			line, ok = p.shown(line)
			return !ok || yield(line, nil)
		}
		return ctx.Err() == nil && yield(line, err)
	}
	now, err := l.continuation(ctx)
	if err == nil && now.to == "" {
		for line, err := range p.log.Watch(ctx, from) {
			if !show(line, err) {
				return nil, false
			}
			if now, err = l.continuation(ctx); err != nil || now.to != "" {
				break
			}
		}
	}
	// It is named. It may not be there yet, and others may still append to the log.
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, maxPause) {
		if err == nil {
			next, err = openPart(ctx, l.store, now.to, p.name)
		}
		if err == nil && !next.follows { // it has nothing to do with the chain
			next, err = nil, next.log.Close()
		}
		if err != nil && !isMissing(err) {
			return nil, show(store.Line{}, err) && false
		}
		for line, err := range p.log.Forward(ctx, from) {
			if !show(line, err) {
				return nil, false
			}
		}
		if next != nil {
			return next, true
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-time.After(pause):
		}
		now, err = l.continuation(ctx) // another may have taken its place
	}
}

// isMissing reports whether an error means that a session is as good as not there.
func isMissing(err error) bool { return errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) }

func (l *chainLog) Flush(ctx context.Context) error { return l.last().log.Flush(ctx) }

func (l *chainLog) Close() error {
	var errs []error
	for _, p := range l.joined() {
		if err := p.log.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", p.name, err))
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

// withParent returns the line of an entry with another parent; "" is none. It leaves the rest as it
// is, if the line begins as our writers begin it, even if that cannot be read.
func withParent(line []byte, parent string) []byte {
	named := []byte("null")
	if parent != "" {
		named = rawjson.AppendString(nil, parent)
	}
	h, _ := rawjson.ScanHead(line)
	lead := fmt.Appendf(nil, `{"type":"%s","id":"%s","parent_id":`, h.Type, h.ID)
	if at := bytes.Index(line, lead); at >= 0 && len(bytes.TrimLeft(line[:at], "\xef\xbb\xbf \t\r")) == 0 {
		rest := line[at+len(lead):]
		was := []byte("null")
		if !bytes.HasPrefix(rest, was) {
			was = fmt.Appendf(nil, `"%s"`, h.Parent)
		}
		if after, ok := bytes.CutPrefix(rest, was); ok {
			return slices.Concat(line[:at+len(lead)], named, after)
		}
	}
	e, err := decodeEntry(bytes.Clone(line))
	if err != nil {
		return line
	}
	e.moveTo(parent)
	again, err := appendEntry(nil, e)
	if err != nil {
		return line
	}
	return again
}
