package budget_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/internal/budget"
)

// TestOnlyWhatIsMoreThanEverIsTaken: a part that is over leaves room for the next one.
func TestOnlyWhatIsMoreThanEverIsTaken(t *testing.T) {
	t.Parallel()
	var taken int64
	full := errors.New("full")
	ctx := budget.With(t.Context(), func(n int64) error {
		if taken+n > 100 {
			return full
		}
		taken += n
		return nil
	})
	hold := func(n, want int64, wanted error) {
		t.Helper()
		if err := budget.Hold(ctx, n); !errors.Is(err, wanted) || taken != want {
			t.Errorf("after %d more, %d are taken (%v); there should be %d (%v)", n, taken, err, want, wanted)
		}
	}
	hold(10, 10, nil)
	for first := int64(60); first <= 80; first += 20 { // the second part needs nothing more
		done := budget.Part(ctx)
		hold(50, first, nil)
		inner := budget.Part(ctx)
		hold(20, 80, nil)
		inner()
		hold(20, 80, nil)
		done()
	}
	hold(70, 80, nil)
	hold(21, 80, full)
	hold(20, 100, nil)
	for _, unbound := range []context.Context{budget.Without(ctx), t.Context()} {
		done := budget.Part(unbound)
		if err := budget.Hold(unbound, 1000); err != nil || taken != 100 {
			t.Errorf("without a bound, %d are taken (%v)", taken, err)
		}
		done()
	}
}
