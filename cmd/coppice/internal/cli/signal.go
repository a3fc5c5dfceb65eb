package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupted is why a command ends early. Agents write it down, for people and models.
type interrupted struct{}

func (interrupted) Error() string        { return "interrupted by the user" }
func (interrupted) Is(target error) bool { return target == context.Canceled }

// interruptible returns a context that ends with the first signal to stop: the
// command then leaves everything in order and returns. A second signal ends the
// program at once, whatever it is doing: the store survives a crash, and a person
// who asks twice does not want to wait.
//
// In the terminal UI, Ctrl-C is a key. While keyed is set, an interrupt is therefore for a
// program that the UI has given the terminal to: the terminal sends it to both.
func interruptible(keyed *atomic.Bool) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	// There is room for both, so that none is lost when they come together.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for sig := range signals {
			switch {
			case sig == os.Interrupt && keyed.Load():
			case ctx.Err() == nil:
				cancel(interrupted{})
			default:
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx
}
