//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// plan is what to do.
type plan struct {
	where     string
	records   string
	ops       int
	processes int
	kills     int
	killAfter time.Duration
	child     []string // more of the environment of a process
}

// The workers of a process.
const (
	listers   = 4
	windowers = 2
)

// history is what became of a plan.
type history struct {
	lists, windows []op
	kills          int
	took           time.Duration
}

// run lets processes work, one after another in each of several places, until they have done
// enough, and reads what the logs are in the end.
func (c *plan) run(ctx context.Context) (*history, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		h      = new(history)
		mu     sync.Mutex // guards h
		number atomic.Int64
		wg     sync.WaitGroup
	)
	start := time.Now()
	for place := range c.processes {
		wg.Go(func() {
			kills := (c.kills + place) / c.processes
			for done := 0; done < c.ops/c.processes && ctx.Err() == nil; kills-- {
				ops, err := c.start(ctx, int(number.Add(1)), (c.ops/c.processes-done)/listers+1, kills > 0)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				for _, o := range ops {
					switch {
					case strings.HasPrefix(o.Object, "list-"):
						h.lists = append(h.lists, o)
						done++
					default:
						h.windows = append(h.windows, o)
						if o.Kind == kindDied {
							h.kills++
						}
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	h.took = time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return h, c.finish(ctx, h)
}

// start lets a process work, kills it if it is to be killed, and returns what it did.
func (c *plan) start(ctx context.Context, process, ops int, kill bool) ([]op, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd := exec.Command(self, "-process", strconv.Itoa(process), "-ops", strconv.Itoa(ops), "-records", c.records, c.where)
	cmd.Env, cmd.Stderr = append(os.Environ(), c.child...), &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var after <-chan time.Time
	if kill {
		after = time.After(c.killAfter/10 + rand.N(c.killAfter*9/10))
	}
	died := op{Kind: kindDied, ID: int64(process), Result: ok}
	select {
	case err = <-ended:
		if err != nil {
			return nil, fmt.Errorf("process %d: %w: %s", process, err, stderr.String())
		}
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		return nil, context.Cause(ctx)
	case <-after:
		died.Call = clock()
		_ = cmd.Process.Kill()
		<-ended
		died.Return = clock()
	}
	all, err := load(c.records, process)
	if died.Return != 0 {
		all = append(all, died)
	}
	return all, err
}

// finish reads the lists.
func (c *plan) finish(ctx context.Context, h *history) error {
	st, err := open(ctx, c.where)
	if err != nil {
		return err
	}
	defer st.Close()
	return readAll(ctx, st, h)
}

func readAll(ctx context.Context, st store.Store, h *history) error {
	names := make(map[string]bool)
	for _, o := range h.lists {
		names[o.Object] = true
	}
	for name := range names {
		log, err := st.Open(ctx, name)
		if err != nil {
			return err
		}
		o := op{Kind: kindRead, Object: name, Result: ok, Call: clock()}
		err = readTo(ctx, log, &o)
		o.Return = clock()
		h.lists = append(h.lists, o)
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
	}
	return nil
}

// work is what a process does.
func (c *plan) work(ctx context.Context, process int) error {
	st, err := open(ctx, c.where)
	if err != nil {
		return err
	}
	defer st.Close()
	var wg sync.WaitGroup
	errs := make([]error, listers+windowers)
	enough, cancel := context.WithCancel(ctx)
	defer cancel()
	var left atomic.Int64
	left.Store(listers)
	for i := range errs {
		f, err := create(c.records, process, i)
		if err != nil {
			return err
		}
		defer f.Close()
		rec := &record{worker: process*maxWorkers + i, to: f}
		wg.Go(func() {
			if i >= listers {
				errs[i] = (&windower{st: st, rec: rec}).work(ctx, enough)
				return
			}
			errs[i] = (&lister{st: st, rec: rec, logs: make(map[string]*list)}).work(ctx, c.ops)
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// check checks a history, and says how much there was.
func (h *history) check() (report string, err error) {
	start := time.Now()
	errLists := checkLists(h.lists)
	tookLists := time.Since(start)
	start = time.Now()
	windows, undecided, errWindows := checkWindows(h.windows)
	results := make(map[string]int)
	reasons := make(map[string]int)
	for _, o := range append(h.lists, h.windows...) {
		results[o.Result]++
		if o.Error != "" {
			reasons[o.Error]++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations on lists in %v, checked in %v\n", len(h.lists), h.took.Round(time.Millisecond), tookLists.Round(time.Millisecond))
	fmt.Fprintf(&b, "%d operations in %d windows, checked in %v, %d of them too hard\n", len(h.windows), windows, time.Since(start).Round(time.Millisecond), undecided)
	fmt.Fprintf(&b, "%d processes killed; results: %v\n", h.kills, results)
	for why, n := range reasons {
		fmt.Fprintf(&b, "%d × %s\n", n, why)
	}
	return b.String(), errors.Join(errLists, errWindows)
}
