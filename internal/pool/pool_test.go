package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/pool"
)

// thing is a value with a size.
type thing struct {
	key    string
	size   int64
	stays  bool // it may not be closed
	closed atomic.Int32
}

func closeThing(t *thing) bool {
	if !t.stays {
		t.closed.Add(1)
	}
	return !t.stays
}

// world is a pool of things.
type world struct {
	*pool.Pool[*thing]
	t *testing.T
}

func newWorld(t *testing.T, l pool.Limits, o pool.Options[*thing]) world {
	if o.Close == nil {
		o.Close = closeThing
	}
	o.Size = func(t *thing) int64 { return t.size }
	return world{pool.New(l, o), t}
}

// get opens a thing of a size or, if there is one, returns that.
func (w world) get(key string, size int64) *thing {
	w.t.Helper()
	got, err := w.Get(w.t.Context(), key, func() (*thing, error) { return &thing{key: key, size: size}, nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// use gets things and releases them.
func (w world) use(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		w.Release(key, w.get(key, 1))
	}
}

// has checks which keys are in the pool, most recently used first.
func (w world) has(want ...string) {
	w.t.Helper()
	if got, _ := w.Contents(); !slices.Equal(got, want) {
		w.t.Errorf("the pool has %q, want %q", got, want)
	}
}

var many = pool.Limits{Count: 100, Bytes: 1000}

func TestLeastRecentlyUsedGoFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Limits{Count: 3, Bytes: 1000}, pool.Options[*thing]{})
	w.use("a", "b", "c", "a", "d")
	w.has("d", "a", "c")
	b := w.get("b", 1)
	w.use("x", "y", "z")
	w.has("z", "y", "b") // what is in use stays
	w.Release("b", b)
	w.use("v", "w", "u")
	w.has("u", "w", "v")
	if b.closed.Load() != 1 {
		t.Errorf("closed %d times", b.closed.Load())
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Limits{Count: 100, Bytes: 10}, pool.Options[*thing]{})
	for _, key := range []string{"a", "b", "c"} {
		w.Release(key, w.get(key, 4))
	}
	w.has("c", "b")
	b := w.get("b", 0)
	b.size = 9 // it grows while it is in use
	w.Release("b", b)
	w.has("b")
	if _, bytes := w.Contents(); bytes != 9 {
		t.Errorf("%d bytes", bytes)
	}
	w.Shrink(8)
	w.has()
	if _, bytes := w.Contents(); bytes != 0 {
		t.Errorf("%d bytes of nothing", bytes)
	}
}

func TestPinsAndPriorities(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many, pool.Options[*thing]{})
	w.use("a", "b", "c", "d")
	w.Pin("a", true)
	w.Prioritise("b", 1)
	w.Limit(pool.Limits{Count: 2, Bytes: 1000})
	w.has("b", "a")
	w.Shrink(0)
	w.has("a")
	w.use("b")
	w.Limit(pool.Limits{Count: 1, Bytes: 1000})
	w.has("a")
	w.Pin("a", false)
	w.use("c")
	w.has("c")
}

func TestUnderPressure(t *testing.T) {
	t.Parallel()
	var w world
	short := false
	w = newWorld(t, pool.Limits{Count: 4, Bytes: 1000}, pool.Options[*thing]{IsShort: func() bool {
		w.Contents() // it may want to know
		return short
	}})
	w.use("a", "b", "c", "d")
	w.has("d", "c", "b", "a")
	short = true
	w.use("a")
	w.has("a", "d")
	w.Limit(pool.Limits{Count: 1, Bytes: 1})
	w.use("b")
	w.has("b") // the last one stays, or it would be opened for every use
}

func TestGrace(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	w := newWorld(t, pool.Limits{Count: 2, Bytes: 20}, pool.Options[*thing]{
		Grace: time.Second, Burst: 2, Now: func() time.Time { return now },
	})
	w.use("a", "b", "c", "d")
	w.has("d", "c", "b", "a")
	w.use("e") // more than the burst
	w.has("e", "d", "c", "b")
	now = now.Add(time.Second)
	w.use("f")
	w.has("f", "e")
	w.Release("g", w.get("g", 30)) // grace is no reason to take more memory
	w.has()
}

func TestWhatCannotBeClosedStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Limits{Count: 1, Bytes: 1000}, pool.Options[*thing]{})
	a := w.get("a", 1)
	a.stays = true
	w.Release("a", a)
	w.use("b")
	w.has("b", "a") // the next use tries again
	if got := w.get("a", 1); got != a {
		t.Error("it stayed, but is another one")
	}
	w.Release("a", a)
	w.Drop("a")
	w.has()
}

func TestEmptyOnesGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many, pool.Options[*thing]{IsEmpty: func(t *thing) bool { return t.size == 0 }})
	a := w.get("a", 0)
	again := w.get("a", 0)
	w.Release("a", a)
	w.has("a")
	w.Release("a", again)
	w.has()
	if a.closed.Load() != 0 {
		t.Error("it was closed")
	}
}

func TestEachIsNoUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Limits{Count: 2, Bytes: 1000}, pool.Options[*thing]{})
	w.use("a", "b")
	var keys []string
	w.Each(func(t *thing) {
		keys = append(keys, t.key)
		w.Limit(pool.Limits{Count: 0, Bytes: 1000}) // all are in use
		if t.closed.Load() > 0 {
			w.t.Errorf("%s was closed under its user", t.key)
		}
	})
	if !slices.Equal(keys, []string{"b", "a"}) {
		t.Errorf("%q", keys)
	}
	w.has("a") // b was idle by then
}

// TestDropped: what was dropped is closed, and its user does not count for what comes after it.
func TestDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool.Limits{Count: 0, Bytes: 0}, pool.Options[*thing]{})
	old := w.get("a", 1)
	w.Drop("a")
	w.Drop("nothing")
	if old.closed.Load() != 1 || w.Has("a") {
		t.Error("it is still there")
	}
	fresh := w.get("a", 1)
	w.Release("a", old)
	w.has("a")
	w.Release("a", fresh)
	w.has()
	w.get("b", 1)
	w.Close()
	w.has()
}

// TestOneAtATime: of a key there is never more than one open thing, and nobody gets one that
// is being closed.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	var open [3]atomic.Int32
	number := func(key string) int { return int(key[0] - 'a') }
	w := newWorld(t, pool.Limits{Count: 1, Bytes: 1000}, pool.Options[*thing]{Close: func(t *thing) bool {
		t.closed.Add(1)
		open[number(t.key)].Add(-1)
		return true
	}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				key := string(rune('a' + (g+i)%3))
				got, err := w.Get(t.Context(), key, func() (*thing, error) {
					if i%7 == 0 {
						return nil, errors.New("a fault")
					}
					if n := open[number(key)].Add(1); n != 1 {
						t.Errorf("%d of %s are open", n, key)
					}
					return &thing{key: key, size: 1}, nil
				})
				if err != nil {
					continue
				}
				if got.closed.Load() > 0 {
					t.Errorf("%s is closed", key)
				}
				w.Release(key, got)
			}
		})
	}
	wg.Wait()
}

// TestWaiting: a caller gives up waiting with its context; one whose neighbour fails or
// panics opens the thing itself.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many, pool.Options[*thing]{})
	for _, how := range []string{"fails", "panics"} {
		opening, goOn := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_, err := w.Get(t.Context(), "a", func() (*thing, error) {
				close(opening)
				<-goOn
				if how == "panics" {
					panic(how)
				}
				return nil, context.Canceled
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		})
		<-opening
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Get(ctx, "a", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the one who gave up got %v", err)
		}
		wg.Go(func() { w.Drop("a") }) // waits, too
		close(goOn)
		got := w.get("a", 1)
		wg.Wait()
		w.Release("a", got)
		w.Drop("a")
		w.has()
	}
}

func ExamplePool() {
	p := pool.New(pool.Limits{Count: 1, Bytes: 1 << 20}, pool.Options[*thing]{
		Close: func(t *thing) bool {
			fmt.Println("close", t.key)
			return true
		},
	})
	for _, key := range []string{"a", "a", "b"} {
		value, err := p.Get(context.Background(), key, func() (*thing, error) {
			fmt.Println("open", key)
			return &thing{key: key}, nil
		})
		if err == nil {
			p.Release(key, value)
		}
	}
	// Output:
	// open a
	// open b
	// close a
}
