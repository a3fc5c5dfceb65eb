package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Append implements store.Log.
func (l *log) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	end, commit, err := l.Start(ctx, at, lines...)
	if err == nil {
		err = commit()
	}
	if err != nil {
		return at, err
	}
	return end, nil
}

// Start implements store.Log. The server answers twice: when it knows where the log ends, and
// when the lines are durable.
func (l *log) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	const op = "append"
	if err := l.ready(ctx, op); err != nil {
		return at, nil, err
	}
	size := int64(0)
	for _, line := range lines {
		if err := l.store.checkLine(op, l.name, line); err != nil {
			return at, nil, err
		}
		size += int64(len(line))
	}
	if size > maxData {
		return at, nil, tooLarge(op, maxData)
	}
	if err := l.beginAppend(); err != nil {
		return at, nil, err
	}
	a := &appending{log: l, at: at, lines: lines, sum: sumOf(lines...), began: make(chan struct{}), done: make(chan struct{})}
	go a.run(ctx)
	select {
	case <-a.began:
	case <-a.done:
		if a.err != nil {
			return at, nil, a.err
		}
	}
	return a.end, func() error { <-a.done; return a.err }, nil
}

// beginAppend makes Close wait for an append.
func (l *log) beginAppend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &store.Error{Op: "append", Name: l.name, Kind: store.ErrClosed}
	}
	if l.broken != nil {
		return l.broken
	}
	l.appends.Add(1)
	return nil
}

// appending is an append that is under way.
type appending struct {
	log   *log
	at    store.Pos
	lines [][]byte // the caller's: only until began is closed
	sum   sum      // of the lines
	maybe bool     // the lines may be in the log although no answer came

	end   store.Pos
	began chan struct{} // closed when end is known
	done  chan struct{} // closed when err is known
	err   error
}

func (a *appending) run(ctx context.Context) {
	l := a.log
	defer l.appends.Done()
	defer close(a.done)
	ctx, cancel := detached(ctx)
	defer cancel()
	if a.err = a.insist(ctx); errors.Is(a.err, store.ErrUnknown) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken = a.err
	}
}

// detached returns a context that lasts for a while after ctx is done, to find out what
// became of an append.
func detached(ctx context.Context) (context.Context, func()) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return late, func() { stop(); cancel(nil) }
}

// step is what an append does next.
type step int

const (
	sendLines step = iota
	lookForLines
	stop // it is known what became of the lines, or cannot be known
)

// insist appends until it is known whether the lines are in the log: neither may they be lost
// nor be there twice. Whether they were sent before (maybe) and whether the server has told
// their end (hasBegun) decide what an answer means:
//
//	did   answer                                      next
//	send  durable                                     stop: they are there
//	send  lost before anything was sent               send
//	send  lost, or lost the last time                 look
//	send  conflict, sent before, no end told          look: the others may be ours
//	send  any other refusal                           stop
//	look  they are there and durable                  stop: they are there
//	look  lost                                        look
//	look  not there, no end told                      send
//	look  not there, though their end was told        stop
//	look  others or a part of ours there, refused     stop
//
// It waits a little whenever an answer was lost, and gives up when the client's patience ends.
func (a *appending) insist(ctx context.Context) error {
	next, retry := sendLines, pauses{}
	for {
		var err error
		if next == sendLines {
			next, err = a.send(ctx)
		} else {
			next, err = a.look(ctx)
		}
		if next == stop && err == nil {
			return nil
		}
		if next == stop || isLost(err) && !retry.wait(ctx, a.log.store.patience) {
			return a.failed(err)
		}
	}
}

func isLost(err error) bool {
	_, ok := err.(*lost)
	return ok
}

// send sends the lines.
func (a *appending) send(ctx context.Context) (next step, err error) {
	err = a.log.once(ctx, &query{op: "append", args: request{At: a.at}, data: a.lines, each: a.ended})
	if err == nil && !a.hasBegun() {
		err = malformed("an append without an end")
	}
	unanswered, isLost := err.(*lost)
	a.maybe = a.maybe || isLost && unanswered.sent || errors.Is(err, errFrame)
	switch {
	case isLost && !a.maybe:
		return sendLines, err
	case isLost, a.maybe && errors.Is(err, store.ErrConflict) && !a.hasBegun():
		return lookForLines, err
	}
	return stop, err
}

// look looks whether lines that may have been sent are in the log, durably.
func (a *appending) look(ctx context.Context) (next step, err error) {
	there, err := a.areThere(ctx)
	switch {
	case isLost(err):
		return lookForLines, err
	case err != nil || there:
		return stop, err
	case a.hasBegun():
		return stop, errors.New("the lines are no longer there")
	}
	return sendLines, nil
}

// failed is the error of an append that failed or may have failed.
func (a *appending) failed(err error) error {
	err = a.log.fail("append", err)
	if !a.maybe || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
		return err
	}
	return &store.Error{
		Op: "append", Name: a.log.name, Offset: int64(a.at), At: true, Kind: store.ErrUnknown, Err: err,
		Hint: "open the log again and look for them",
	}
}

// ended handles the first answer.
func (a *appending) ended(f frame) error {
	var r result
	if err := f.result(&r); err != nil {
		return err
	}
	if a.hasBegun() || r.End < a.at || (r.End == a.at) != (len(a.lines) == 0) {
		return malformed(fmt.Sprintf("an append at %d that ends at %d", a.at, r.End))
	}
	a.begin(r.End)
	return nil
}

func (a *appending) begin(end store.Pos) {
	if end > a.at {
		a.log.saw(a.at, end, a.lines...)
	}
	a.end = end
	close(a.began)
}

func (a *appending) hasBegun() bool {
	select {
	case <-a.began:
		return true
	default:
		return false
	}
}

// areThere reports whether the lines are in the log, durably. The error is a store.ErrConflict if
// others are in their place, and a *lost if that cannot be read now.
func (a *appending) areThere(ctx context.Context) (bool, error) {
	l := a.log
	var found sum
	end, n, wrong := a.at, 0, false
	err := l.once(ctx, &query{op: "read", args: request{At: a.at}, each: func(f frame) error {
		if f.kind != kindLine {
			return malformed("a line")
		}
		line := parseLine(f.payload)
		if !a.hasBegun() && n < len(a.lines) && !bytes.Equal(line.Data, a.lines[n]) {
			wrong = true
			return errStop
		}
		found.add(sumOf(line.Data))
		end = line.Next
		if n++; n == len(a.lines) {
			return errStop
		}
		return nil
	}})
	switch {
	case err != nil && err != errStop:
		return false, err
	case wrong && n == 0:
		return false, &store.Error{Op: "append", Name: l.name, Offset: int64(a.at), At: true, Kind: store.ErrConflict}
	case wrong || n > 0 && found != a.sum:
		return false, errors.New("a part of the lines is in the log")
	case n == 0:
		return false, nil
	}
	if !a.hasBegun() {
		a.begin(end)
	}
	return true, l.once(ctx, &query{op: "flush"})
}
