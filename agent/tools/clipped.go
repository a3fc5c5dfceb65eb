package tools

import (
	"fmt"
	"sync"
)

// clipped takes any amount of output and keeps its beginning and its end. It never
// holds more than max bytes.
type clipped struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring, once it is full
	next  int    // where the ring continues
	total int64
	max   int // of head and of tail
}

func newClipped(max int) *clipped { return &clipped{max: max / 2} }

// Write implements io.Writer.
func (c *clipped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := len(p)
	c.total += int64(written)
	n := min(len(p), c.max-len(c.head))
	c.head, p = append(c.head, p[:n]...), p[n:]
	if len(p) > c.max {
		p = p[len(p)-c.max:] // the rest would be overwritten
	}
	n = min(len(p), c.max-len(c.tail))
	c.tail, p = append(c.tail, p[:n]...), p[n:]
	for len(p) > 0 {
		n = copy(c.tail[c.next:], p)
		c.next, p = (c.next+n)%c.max, p[n:]
	}
	return written, nil
}

// written returns how many bytes there were.
func (c *clipped) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// String returns the output, with a note where something is left out. It does not cut
// characters.
func (c *clipped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := append(append(make([]byte, 0, len(c.tail)), c.tail[c.next:]...), c.tail[:c.next]...)
	left := c.total - int64(len(c.head)+len(tail))
	if left == 0 {
		return string(c.head) + string(tail)
	}
	head := wholeRunes(c.head)
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 { // the middle of a character
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[… %s left out …]\n%s", head, size(c.total-int64(len(head)+len(tail))), tail)
}
