package session

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"
)

// ids makes the ids of this process. There must be only one for all sessions, so that ids
// are strictly increasing within the process.
var ids idSource

// NewID returns a new id for an entry. Ids are unique, and those of one process are in the
// order in which they were made. Use it in an Options.NewID that only records the ids.
func NewID() string { return ids.next(time.Now()) }

// idSource makes UUIDs of version 7. They sort by time. With 62 random bits beside a
// millisecond and a counter, they are unique across processes.
type idSource struct {
	mu   sync.Mutex
	tick uint64 // milliseconds since 1970 and a 12-bit counter below
}

// next returns a new id.
func (s *idSource) next(now time.Time) string {
	s.mu.Lock()
	// The counter starts at a random place in its lower half. If it overflows, it carries
	// into the milliseconds: order matters more than the clock.
	tick := uint64(now.UnixMilli())<<12 | rand.Uint64()&0x7ff
	if tick <= s.tick {
		tick = s.tick + 1
	}
	s.tick = tick
	s.mu.Unlock()
	return formatUUID(tick>>12<<16|0x7000|tick&0xfff, rand.Uint64()&^(3<<62)|2<<62)
}

func formatUUID(hi, lo uint64) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], hi)
	binary.BigEndian.PutUint64(raw[8:], lo)
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	hex.Encode(text[0:8], raw[0:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:36], raw[10:16])
	return string(text[:])
}

// isUUID7 reports whether an id could be one of ours, which sort by time.
func isUUID7(id string) bool {
	return len(id) == 36 && id[8] == '-' && id[13] == '-' && id[14] == '7' && id[18] == '-' && id[23] == '-'
}

// RandomPart returns the part of an id whose beginning people use as its short name: the last
// twelve digits of a UUID of version 7, which are random. The first digits are a time, and so
// are the same in all ids of a minute. Any other id is returned whole.
func RandomPart(id string) string {
	if !isUUID7(id) {
		return id
	}
	return id[24:]
}
