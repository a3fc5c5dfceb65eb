package index

import (
	"context"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
)

// turns runs one CatchUp at a time in this process; all callers that wait share the next one.
// A caller must see all lines that were in the store when it asked, so a CatchUp that was already
// running does not suffice: it may have looked before. One that began afterwards does.
type turns struct {
	running gate.Mutex

	mu   sync.Mutex // guards what follows
	last int        // the number of the CatchUp that began last
	done turn       // the one that was last completed
}

// turn is a CatchUp that was completed.
type turn struct {
	number int
	sweep  bool
	report Report
}

// do calls run when it is the caller's turn. If another caller's run began after this one
// asked and succeeded, do returns what that found instead.
func (t *turns) do(ctx context.Context, sweep bool, run func() (Report, error)) (Report, error) {
	t.mu.Lock()
	asked := t.last
	t.mu.Unlock()
	if err := t.running.LockContext(ctx); err != nil {
		return Report{}, err
	}
	defer t.running.Unlock()
	t.mu.Lock()
	if t.done.number > asked && (t.done.sweep || !sweep) {
		defer t.mu.Unlock()
		return t.done.report, nil
	}
	t.last++
	number := t.last
	t.mu.Unlock()
	report, err := run()
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.done = turn{number, sweep, report}
	}
	return report, err
}

// alone calls f while no CatchUp runs.
func (ix *Index) alone(ctx context.Context, f func(context.Context) error) error {
	if err := ix.turns.running.LockContext(ctx); err != nil {
		return err
	}
	defer ix.turns.running.Unlock()
	return f(ctx)
}
