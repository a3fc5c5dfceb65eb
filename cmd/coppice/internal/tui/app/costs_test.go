package app_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// overheard is a home on another machine; hear is called with each request before the answer.
type overheard struct {
	*home.Home
	hear func(ctx context.Context, request any)
}

func (o overheard) Do(ctx context.Context, op *home.Operation, request any, send func(any) error) (any, error) {
	o.hear(ctx, request)
	return op.Call(ctx, o.Home, request, nil, send)
}

// overhear opens a home as if it were on another machine, and calls hear with each request.
func overhear(t *testing.T, h *home.Home, hear func(ctx context.Context, request any)) *home.Home {
	t.Helper()
	there, err := home.Away(t.Context(), h.Store(), overheard{h, hear}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	return there
}

// TestTheListChangesWhileCostsAreAsked changes the list while the costs of the sessions on the screen
// are on their way. The list is read again, and few requests are made.
func TestTheListChangesWhileCostsAreAsked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, h *home.Home)
		see    func(d *driver)
	}{
		"one more": {
			func(t *testing.T, h *home.Home) { talk(t, h, "Newcomer", "hello") },
			func(d *driver) { d.sees("Newcomer", "61 sessions") },
		},
		"one less": { // nobody tells another machine of that
			func(t *testing.T, h *home.Home) {
				list, err := h.Sessions.List(t.Context(), home.ListRequest{Limit: 1})
				if err == nil {
					_, err = h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: list.Sessions[0].ID})
				}
				if err != nil {
					t.Error(err)
				}
			},
			func(d *driver) { d.loses("question 0059") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := many(t, 60)
			var questions atomic.Int32
			d := drive(t, overhear(t, h, func(_ context.Context, request any) {
				if r, ok := request.(*home.ShelfRequest); ok && r.Cost && questions.Add(1) == 1 {
					test.change(t, h)
				}
			}))
			d.sees("question 0059")
			test.see(d)
			if n := questions.Load(); n > 4 {
				t.Errorf("it was asked %d times what they cost", n)
			}
		})
	}
}

// TestCostsHoldNothingUp never finishes adding up the costs. The list is live all the same.
func TestCostsHoldNothingUp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "First", "hello")
	asked := make(chan struct{}, 1)
	d := drive(t, overhear(t, h, func(ctx context.Context, request any) {
		if r, ok := request.(*home.ShelfRequest); ok && r.Cost {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-ctx.Done()
		}
	}))
	for begun := false; !begun; {
		select {
		case msg := <-d.msgs:
			d.handle(msg)
		case <-asked:
			begun = true
		}
	}
	d.sees("First")
	talk(t, h, "Second", "hello")
	d.sees("First", "Second")
}
