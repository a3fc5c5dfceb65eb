package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// feeds are what callers follow: the whole home, or one session. Any number of callers follow the
// same feed for the price of one: an entry is read and encoded once, and its text is in memory
// once. A feed ends some time after its last follower has left.
//
// A feed waits for nobody. It keeps the latest arrivals; who is further behind reads the log, or
// gets a reset. What is being written stays in memory until it is written, so those who do not read
// are cut off when it gets too much; they can continue after the last piece that they have. Half of
// max is for what is kept, half for what is not kept any more and waits to be written. Beyond that
// there is only the latest arrival.
type feeds struct {
	home     *home.Home
	stopping context.Context
	encode   func(any) ([]byte, error)
	word     func(home.Notice) *home.Notice // returns a notice as callers may see it
	linger   time.Duration                  // how long a feed goes on without followers
	max      int64
	reading  chan struct{} // has an element for each who reads the log for themselves

	mu     sync.Mutex // guards what follows, and what feeds and arrivals have
	all    map[followed]*feed
	size   int64      // of all texts that are kept or being written
	unsent []*arrival // those that are not kept any more, the oldest first
	wg     sync.WaitGroup
}

// followed is what a feed is of: a session, or everything if that is "".
type followed struct {
	session string
	filled  bool
}

// feed is one feed.
//
//	kept, from first                next
//	  │ arrival │ arrival │ arrival │  (numbers grow by one; the epoch is new with each start)
//	        ▲ a caller reads here; when it has read the last one, it waits for changed
type feed struct {
	of        *feeds
	what      followed
	cancel    context.CancelFunc
	followers int
	idle      *time.Timer // ends the feed

	epoch   string
	next    uint64
	kept    []*arrival // the last of them has the number next-1
	size    int64      // of kept
	ids     []string   // of the latest entries; the last of them has the number next-1
	changed chan struct{}
	live    chan struct{} // closed when nothing that is appended from then on is missed
	isOver  bool          // nothing more comes
	err     error         // why
}

// arrival is a piece for those who follow.
type arrival struct {
	id      string // of the entry; "" for a notice
	name    string // of a server-sent event
	text    []byte // a Message without ID
	kept    bool
	writers []*stream // those to whom it is being written
}

const (
	// maxKept is how many bytes of arrivals a feed keeps, and maxIDs of how many it knows the
	// place.
	maxKept = 16 << 20
	maxIDs  = 1000
	// maxReading is how many callers may read what they missed at the same time.
	maxReading = 4
)

func newFeeds(s *Server) *feeds {
	return &feeds{
		home: s.o.Home, stopping: s.stopping, encode: json.Marshal, word: s.visibleNotice, linger: time.Minute, max: s.o.Limits.Memory / 4,
		reading: make(chan struct{}, maxReading), all: make(map[followed]*feed),
	}
}

// close waits until all feeds have ended. The server is stopping.
func (fs *feeds) close() {
	fs.mu.Lock()
	for _, f := range fs.all {
		if f.idle != nil {
			f.idle.Stop()
		}
	}
	fs.mu.Unlock()
	fs.wg.Wait()
}

// join returns a feed, which the caller must leave.
func (fs *feeds) join(what followed) *feed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.all[what]
	if f == nil {
		f = &feed{of: fs, what: what, epoch: rand.Text()[:8], next: 1, changed: make(chan struct{}), live: make(chan struct{})}
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(fs.stopping)
		fs.all[what] = f
		if fs.stopping.Err() == nil {
			fs.wg.Go(func() { f.run(ctx) })
		}
	}
	if f.idle != nil {
		f.idle.Stop()
	}
	f.followers++
	return f
}

func (f *feed) leave() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	switch f.followers--; {
	case f.followers > 0:
	case f.isOver:
		f.drop(len(f.kept))
	default:
		f.idle = time.AfterFunc(f.of.linger, f.endIdle)
	}
}

func (f *feed) endIdle() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.followers == 0 {
		f.end(nil)
	}
}

// end ends the feed. The caller holds the mutex.
func (f *feed) end(err error) {
	if f.isOver {
		return
	}
	f.isOver, f.err = true, err
	f.cancel()
	if f.of.all[f.what] == f {
		delete(f.of.all, f.what)
	}
	if f.followers == 0 {
		f.drop(len(f.kept))
	}
	f.wakeWaiters()
}

// run follows until the feed ends. That of the whole home begins again after an error.
func (f *feed) run(ctx context.Context) {
	r := home.FollowRequest{Session: f.what.session, Filled: f.what.filled}
	if r.Session != "" {
		r.Last = 1 // so that the place of the last entry is known
	}
	follow := home.WithBegun(ctx, f.begun)
	if r.Session != "" {
		follow = home.WithNotify(follow, f.notice)
	}
	for ctx.Err() == nil {
		_, err := f.of.home.Entries.Follow(follow, r, f.add)
		switch {
		case ctx.Err() != nil:
		case r.Session != "":
			f.of.mu.Lock()
			f.end(err)
			f.of.mu.Unlock()
		case err != nil:
			f.beginEpoch(ctx) // arrivals in the meantime are lost
		}
	}
}

// beginEpoch begins a new epoch after a moment, so that every caller gets a reset: the home may be
// readable again by then.
func (f *feed) beginEpoch(ctx context.Context) {
	f.of.mu.Lock()
	f.drop(len(f.kept))
	f.epoch, f.ids = rand.Text()[:8], nil
	f.next += 1 << 32 // no caller waits for a number of the new epoch
	f.live = make(chan struct{})
	f.of.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

func (f *feed) begun() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	select {
	case <-f.live:
	default:
		close(f.live)
	}
}

// isLive waits until nothing is missed any more. It reports false if ctx or the feed ends before
// that.
func (f *feed) isLive(ctx context.Context) bool {
	for {
		f.of.mu.Lock()
		live, changed, over := f.live, f.changed, f.isOver
		f.of.mu.Unlock()
		select {
		case <-live:
			return true
		default:
		}
		if over {
			return false
		}
		select {
		case <-live:
			return true
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (f *feed) add(a home.Arrival) error {
	text, err := f.of.encode(Message{Event: a})
	if err == nil {
		f.put(&arrival{id: a.Entry.ID, name: "message", text: text})
	}
	return err
}

func (f *feed) notice(n home.Notice) {
	if text, err := f.of.encode(Message{Notice: f.of.word(n)}); err == nil {
		f.put(&arrival{name: "notice", text: text})
	}
}

func (f *feed) put(a *arrival) {
	fs := f.of
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.isOver {
		return
	}
	a.kept = true
	f.kept, f.ids = append(f.kept, a), append(f.ids, a.id)
	f.ids = f.ids[max(len(f.ids)-maxIDs, 0):]
	f.next++
	f.size += int64(len(a.text))
	fs.size += int64(len(a.text))
	f.wakeWaiters()
	for f.size > maxKept && len(f.kept) > 1 {
		f.drop(1)
	}
	fs.shrink(f)
}

// wakeWaiters wakes those who wait. The caller holds the mutex.
func (f *feed) wakeWaiters() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// drop keeps the oldest arrivals no longer. The caller holds the mutex.
func (f *feed) drop(n int) {
	for _, a := range f.kept[:n] {
		a.kept = false
		f.size -= int64(len(a.text))
		if len(a.writers) == 0 {
			f.of.size -= int64(len(a.text))
		} else {
			f.of.unsent = append(f.of.unsent, a)
		}
	}
	f.kept = slices.Delete(f.kept, 0, n) // which clears what is behind them
}

// shrink makes room after something was put into a feed, which is the last to give something up.
// The caller holds the mutex.
func (fs *feeds) shrink(latest *feed) {
	for fs.size-fs.waiting() > fs.max/2 {
		largest := latest
		for _, f := range fs.all {
			if len(f.kept) > 0 && f != latest && (f.size > largest.size || largest == latest && len(latest.kept) <= 1) {
				largest = f
			}
		}
		if len(largest.kept) == 0 || largest == latest && len(latest.kept) == 1 {
			break
		}
		largest.drop(1)
	}
	for left := fs.waiting(); left > fs.max/2; {
		a := fs.unsent[0]
		fs.unsent = fs.unsent[1:]
		left -= int64(len(a.text))
		for _, out := range a.writers {
			out.cutOff()
		}
	}
}

// waiting is how many bytes are not kept any more, and only wait to be written. The caller holds
// the mutex.
func (fs *feeds) waiting() (n int64) {
	for _, a := range fs.unsent {
		n += int64(len(a.text))
	}
	return n
}

// written ends the writing of an arrival.
func (fs *feeds) written(a *arrival, out *stream) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	a.writers = slices.DeleteFunc(a.writers, func(w *stream) bool { return w == out })
	if !a.kept && len(a.writers) == 0 {
		fs.size -= int64(len(a.text))
		fs.unsent = slices.DeleteFunc(fs.unsent, func(s *arrival) bool { return s == a })
	}
}

// id names an arrival for a caller.
func (f *feed) id(n uint64) string {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return fmt.Sprintf("%s-%d", f.epoch, n)
}

// position returns the number of the arrival after the one with an id; ok is false if the feed
// no longer knows it.
func (f *feed) position(id string) (n uint64, ok bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if id == "" {
		return f.next, true
	}
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch != f.epoch || n >= f.next || n+1 < f.next-uint64(len(f.kept)) {
		return f.next, false
	}
	return n + 1, true
}

// after returns the number of the arrival after the one of an entry, and what to wait for if the
// feed does not know that.
func (f *feed) after(entry string) (n uint64, wait <-chan struct{}, ok bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for i := len(f.ids) - 1; i >= 0; i-- {
		if f.ids[i] == entry && entry != "" {
			return f.next - uint64(len(f.ids)-1-i), nil, true
		}
	}
	return 0, f.changed, false
}

// latest returns the number of the first of the last arrivals, and the entry before that, if all of
// them are kept.
func (f *feed) latest(n int) (first uint64, before string, ok bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if n > len(f.kept) || slices.ContainsFunc(f.kept[len(f.kept)-n:], func(a *arrival) bool { return a.id == "" }) {
		return 0, "", false
	}
	if at := len(f.ids) - n; at > 0 && at <= len(f.ids) {
		before = f.ids[at-1]
	}
	return f.next - uint64(n), before, true
}

// errMissed says that an arrival is no longer kept.
var errMissed = errors.New("arrivals were missed")

// at returns the arrival with a number, which is being written until the caller says that it is
// written; or what to wait for if there is none yet.
func (f *feed) at(n uint64, out *stream) (a *arrival, wait <-chan struct{}, err error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	oldest := f.next - uint64(len(f.kept))
	switch {
	case n < oldest || n > f.next:
		return nil, nil, errMissed
	case n < f.next:
		a = f.kept[n-oldest]
		a.writers = append(a.writers, out)
		return a, nil, nil
	}
	return nil, f.changed, nil
}

// ended returns why nothing more comes.
func (f *feed) ended() (over bool, err error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.isOver, f.err
}
