//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

const childEnv = "COPPICE_HISTORIES_CHILD"

// TestMain is the program itself for the processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestProcesses lets processes work on real stores, and kills some.
//
//	COPPICE_SOAK=300 go test ./bench/histories -run TestProcesses -v -timeout 1h
func TestProcesses(t *testing.T) {
	for name, where := range map[string]func(*testing.T) string{
		"files":    func(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions") },
		"postgres": func(t *testing.T) string { return postgrestest.URL(t) },
		// Who meets another there fails, and must begin again.
		"serializable": func(t *testing.T) string { return postgrestest.URL(t) + "&default_transaction_isolation=serializable" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &plan{
				where: where(t), records: t.TempDir(), ops: soak.N(3000), processes: 3, kills: soak.N(2),
				killAfter: time.Second / 2, child: []string{childEnv + "=1"},
			}
			h, err := c.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			report, err := h.check()
			if err != nil {
				t.Error(err)
			}
			t.Log(report)
		})
	}
}

// try lets workers of this process work on a store for a moment.
func try(t *testing.T, st store.Store) *history {
	t.Helper()
	const workers = 6
	records := make([]bytes.Buffer, 2*workers)
	enough, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range records {
		rec := &record{worker: maxWorkers + i, to: &records[i]}
		wg.Go(func() {
			if i%2 == 0 {
				_ = (&windower{st: st, rec: rec}).work(t.Context(), enough)
			} else {
				_ = (&lister{st: st, rec: rec, logs: make(map[string]*list)}).work(t.Context(), 100)
			}
		})
	}
	wg.Wait()
	h := new(history)
	for i := range records {
		ops, err := parse(records[i].Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			h.windows = append(h.windows, ops...)
		} else {
			h.lists = append(h.lists, ops...)
		}
	}
	if err := readAll(t.Context(), st, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestIntact(t *testing.T) {
	t.Parallel()
	for range 5 {
		if report, err := try(t, memory.New(nil)).check(); err != nil {
			t.Fatal(report, err)
		}
	}
}

// Stores that break the contract are found out, and for the right reason.
func TestBroken(t *testing.T) {
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := soak.Rand(t)
			for range 100 { // what breaks is a matter of chance
				h := try(t, &faulty{Store: memory.New(nil), fault: b.fault, rand: rng})
				check := checkLists
				ops := h.lists
				if b.window {
					check = func(ops []op) error { _, _, err := checkWindows(ops); return err }
					ops = h.windows
				}
				err := check(ops)
				if err == nil {
					continue
				}
				if !strings.Contains(err.Error(), b.found) {
					t.Fatalf("found for another reason than %q: %v", b.found, err)
				}
				return
			}
			t.Error("nothing was found")
		})
	}
}

// A process that was killed while it wrote has begun what it wrote last.
func TestTornRecord(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	rec := &record{worker: 1, to: &text}
	rec.do(&op{Kind: kindAppend, ID: 1}, func() error { return nil })
	rec.do(&op{Kind: kindAppend, ID: 2}, func() error { return nil })
	whole := text.Bytes()
	for cut := range whole {
		ops, err := parse(whole[:cut])
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(whole[:cut], []byte("\n"))
		if len(ops) != (lines+1)/2 {
			t.Fatalf("%d lines are %d operations", lines, len(ops))
		}
		for i, o := range ops {
			if known := 2*i+2 <= lines; (o.Result == ok) != known || (o.Result == unknown) == known {
				t.Fatalf("after %d lines, operation %d is %v", lines, i, &o)
			}
		}
	}
}
