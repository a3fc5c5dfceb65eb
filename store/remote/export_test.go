package remote

import (
	"errors"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Hurry makes a handler quick to beat, and to end leases.
func (h *Handler) Hurry(beat, lease time.Duration) { h.pace.beat, h.pace.lease = beat, lease }

// Shorten makes the life of leases shorter.
func (h *Handler) Shorten(life time.Duration) { h.pace.life, h.pace.pin = life, life }

// Tick makes a store say often that it is alive.
func (s *Store) Tick(d time.Duration) { s.tick = d }

// Forget forgets the handles that are not in use, as if nobody had used them for long, and
// returns how many they were.
func (h *Handler) Forget() (n int) {
	for {
		h.mu.Lock()
		var oldest *handle
		found := h.forgetOldest(&oldest)
		h.mu.Unlock()
		if !found {
			return n
		}
		n++
		_ = oldest.Close()
	}
}

// Quiet is how long a store waits for a sign of life.
func (s *Store) Quiet(d time.Duration) { s.quiet = d }

// Describe sends an error over the wire.
func Describe(err error, where string) error { return describe(err, "use", where).err() }

// Kinds are the errors that cross the wire.
func Kinds() (all []error) {
	for _, n := range names {
		if !errors.Is(n.err, errGone) {
			all = append(all, n.err)
		}
	}
	return all
}

// Die is what happens to a client that is killed: nothing is given back.
func (s *Store) Die() { s.cancel(store.ErrClosed) }
