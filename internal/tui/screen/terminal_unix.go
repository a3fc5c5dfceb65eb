//go:build !windows

package screen

import (
	"os"
	"os/signal"
	"syscall"
)

// watchSize sends a value whenever the size of the terminal has changed.
func watchSize(resized chan<- struct{}) (stop func()) {
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH)
	go func() {
		for {
			select {
			case <-signals:
				select {
				case resized <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// suspend stops the program, and those that run with it, until the shell continues them.
func suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(0, syscall.SIGTSTP) == nil {
		<-continued
	}
}

// showControls makes a terminal understand control sequences. All of them do.
func showControls(*os.File) {}
