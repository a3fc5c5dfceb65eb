package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends with the first signal to stop: the
// command then leaves everything in order and returns. A second signal ends the
// program at once, whatever it is doing: the store survives a crash, and a person
// who asks twice does not want to wait.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	// There is room for both, so that none is lost when they come together.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx
}
