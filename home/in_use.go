package home

import (
	"sync"
)

// inUse counts who in this program has each session open, or follows it. What happens on the side
// leaves such a session alone.
type inUse struct {
	mu sync.Mutex
	n  map[string]int // guarded by mu
}

// begin counts a use of sessions until end is called.
func (u *inUse) begin(names ...string) (end func()) {
	u.add(1, names)
	return sync.OnceFunc(func() { u.add(-1, names) })
}

func (u *inUse) add(n int, names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == nil {
		u.n = make(map[string]int)
	}
	for _, name := range names {
		if u.n[name] += n; u.n[name] == 0 {
			delete(u.n, name)
		}
	}
}

func (u *inUse) has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.n[name] > 0
}
