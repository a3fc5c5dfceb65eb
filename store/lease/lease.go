// Package lease lets one program at a time work on something in a store, such as a
// session. A lease is a note of the store, so every store has leases.
//
// A lease ends when its holder gives it back, and when the holder is dead. On the same
// machine that is a question to the system. Otherwise a holder is taken for dead when it
// has not renewed its lease for the time TTL. The one who waits measures that with its own
// clock, so the clocks of two machines are never compared.
//
// A holder that was stopped and wakes up later may not know that it has lost the lease.
// So it must first write down what it is about to do, and then ask Lease.Check: if the
// lease is still its own, everyone who takes it over later can read that.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// TTL is how long a holder may be silent. It renews its lease three times as often.
const TTL = 30 * time.Second

// Room is where a store notes who works on what.
const Room = "leases"

// Holder is who has a lease.
type Holder struct {
	Program string    `json:"program"`
	PID     int       `json:"pid"`
	Host    string    `json:"host,omitempty"`
	Since   time.Time `json:"since"` // by the holder's clock
}

func (h *Holder) String() string {
	return fmt.Sprintf("%s (process %d on %s)", h.Program, h.PID, h.Host)
}

// HeldError means that another has the lease. It matches store.ErrLocked.
type HeldError struct {
	Name string
	Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s works on %q since %s", &e.Holder, e.Name, e.Since.Local().Format(time.DateTime))
}

// Unwrap returns store.ErrLocked.
func (e *HeldError) Unwrap() error { return store.ErrLocked }

// record is the note of a lease.
type record struct {
	Holder
	Machine string `json:"machine,omitempty"` // where PID means something; "" if that is not known
	Started string `json:"started,omitempty"` // when the process began, because a PID is used again
	renewal
}

// renewal changes with every sign of life.
type renewal struct {
	Nonce string `json:"nonce"`
	Count int64  `json:"count"`
}

// Place is something that one program at a time works on. Its methods may be called
// concurrently.
type Place struct {
	notes store.Notes
	name  string

	mu   sync.Mutex // guards what follows
	seen renewal    // the last sign of another's life
	at   time.Time  // when it was first seen
}

// At returns the place with a name, which is that of a log in the store.
func At(st store.Store, name string) *Place {
	return &Place{notes: st.Notes(Room), name: name}
}

// Holder returns who has the lease, or nil.
func (p *Place) Holder(ctx context.Context) (*Holder, error) {
	now := time.Now()
	note, err := p.notes.Read(ctx, p.name)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if r, ok := parse(note); ok && !p.isOver(&r, now) {
		return &r.Holder, err
	}
	return nil, err
}

// Take takes the lease. If another has it, the error is a *HeldError. A holder that is
// silent is only noticed by a Place that saw it before: try again after TTL, or Wait. If
// the lease is lost later, lost is called with the reason, once; nil means that no one
// needs to know.
func (p *Place) Take(ctx context.Context, lost func(error)) (*Lease, error) {
	l := &Lease{place: p, record: self(), tellLost: lost, done: make(chan struct{})}
	own.Store(l.record.Nonce, true)
	now := time.Now()
	err := p.notes.Change(ctx, p.name, func(old []byte) ([]byte, error) {
		if r, ok := parse(old); ok && !p.isOver(&r, now) {
			return nil, &HeldError{p.name, r.Holder}
		}
		return json.Marshal(&l.record)
	})
	if err != nil {
		own.Delete(l.record.Nonce)
		return nil, err
	}
	l.renewing.Go(l.keepRenewing)
	return l, nil
}

// own has the nonces of the leases that this process has and did not give back. One that it
// gave back may still have its note, if its store was closed too early.
var own sync.Map

// Wait is Take that waits until the lease is free, or ctx ends.
func (p *Place) Wait(ctx context.Context, lost func(error)) (*Lease, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		l, err := p.Take(ctx, lost)
		if held := (*HeldError)(nil); !errors.As(err, &held) {
			return l, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isOver reports whether the holder of a lease is dead, or was silent for TTL until now, a
// moment before the note was read.
func (p *Place) isOver(r *record, now time.Time) bool {
	if isDead(r) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen != r.renewal {
		p.seen, p.at = r.renewal, time.Now()
	}
	return now.Sub(p.at) >= TTL
}

// parse reads a note. One that is damaged says nothing: a power cut ended its holder, too.
func parse(data []byte) (r record, ok bool) {
	return r, json.Unmarshal(data, &r) == nil && r.Nonce != ""
}

// isDead reports whether a process of this machine has ended, or gave the lease back.
func isDead(r *record) bool {
	if r.Machine == "" || r.Machine != machine() {
		return false
	}
	if r.PID == os.Getpid() && r.Started == started(r.PID) {
		_, held := own.Load(r.Nonce)
		return !held
	}
	process, err := os.FindProcess(r.PID)
	if err != nil || errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return true
	}
	now := started(r.PID)
	return now != "" && now != r.Started
}

func self() record {
	host, _ := os.Hostname() // without a name, people see the process only
	pid := os.Getpid()
	return record{
		Holder:  Holder{Program: filepath.Base(os.Args[0]), PID: pid, Host: host, Since: time.Now().UTC().Truncate(time.Millisecond)},
		Machine: machine(), Started: started(pid), renewal: renewal{Nonce: rand.Text()},
	}
}

// Lease is the right to work somewhere. Its methods may be called concurrently.
type Lease struct {
	place    *Place
	tellLost func(error)
	done     chan struct{} // closed by Release
	renewing sync.WaitGroup

	mu     sync.Mutex // guards what follows
	record record
	err    error // why the lease is lost
}

// keepRenewing renews the lease from time to time, which shows other programs that the holder is alive.
func (l *Lease) keepRenewing() {
	tick := time.NewTicker(TTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = l.renew() // if that fails, the next one may succeed
		case <-l.done:
			return
		}
	}
}

func (l *Lease) renew() error {
	return l.place.notes.Change(context.Background(), l.place.name, func(old []byte) ([]byte, error) {
		if err := l.compare(old); err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.record.Count++
		return json.Marshal(&l.record)
	})
}

// compare returns why the lease is lost, if the note does not say that it is held.
func (l *Lease) compare(note []byte) error {
	l.mu.Lock()
	r, ok := parse(note)
	if l.err != nil || r.Nonce == l.record.Nonce {
		defer l.mu.Unlock()
		return l.err
	}
	l.err = fmt.Errorf("the lease on %q is gone: %w", l.place.name, store.ErrLocked)
	if ok {
		l.err = &HeldError{l.place.name, r.Holder}
	}
	l.mu.Unlock()
	if l.tellLost != nil {
		l.tellLost(l.err)
	}
	return l.err
}

// Check returns nil if the lease is still held, and otherwise why it is not.
func (l *Lease) Check(ctx context.Context) error {
	note, err := l.place.notes.Read(ctx, l.place.name)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return err
	}
	return l.compare(note)
}

// Release gives the lease back. It must be called once. If the note cannot be removed,
// other programs see a holder that is silent.
func (l *Lease) Release(ctx context.Context) error {
	close(l.done)
	l.renewing.Wait()
	defer own.Delete(l.record.Nonce)
	if err := l.Check(ctx); err != nil {
		return nil // it is another's, or cannot be read
	}
	return l.place.notes.Remove(ctx, l.place.name)
}
