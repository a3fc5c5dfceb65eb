package session

import (
	"math/rand/v2"
	"sync"
	"time"
)

// ids makes the ids of this process. It must be one for all sessions, so that
// ids are strictly increasing within the process.
var ids idSource

// idSource makes UUIDs of version 7: they sort by time, and with 62 random bits
// beside a millisecond and a counter they are unique across processes.
type idSource struct {
	mu   sync.Mutex
	tick uint64 // milliseconds since 1970 and a 12-bit counter below
}

// next returns a new id.
func (s *idSource) next(now time.Time) string {
	s.mu.Lock()
	// The counter begins at a random place in its lower half, and runs over
	// into the milliseconds if it must: order matters more than the clock.
	tick := uint64(now.UnixMilli())<<12 | rand.Uint64()&0x7ff
	if tick <= s.tick {
		tick = s.tick + 1
	}
	s.tick = tick
	s.mu.Unlock()
	return formatUUID(tick>>12<<16|0x7000|tick&0xfff, rand.Uint64()&^(3<<62)|2<<62)
}

func formatUUID(hi, lo uint64) string {
	const digits = "0123456789abcdef"
	var b [36]byte
	at := 0
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			b[at] = '-'
			at++
		}
		half, shift := hi, 60-4*i
		if i >= 16 {
			half, shift = lo, 124-4*i
		}
		b[at] = digits[half>>shift&15]
		at++
	}
	return string(b[:])
}
