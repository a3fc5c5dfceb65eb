//go:build !windows

package screen

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// waker waits for keys, and stops when it is told to: a pipe in which something is while it
// should not wait.
type waker struct{ r, w *os.File }

func newWaker() (*waker, error) {
	r, w, err := os.Pipe()
	return &waker{r, w}, err
}

func (w *waker) works() bool { return true }

func (w *waker) on() { _, _ = w.w.Write([]byte{0}) } // there is room for one byte

func (w *waker) off() { _, _ = w.r.Read(make([]byte, 1)) }

func (w *waker) close() error { return errors.Join(w.r.Close(), w.w.Close()) }

// wait returns when there is something to read, and with false when it is told to.
func (w *waker) wait(in *os.File) (bool, error) {
	keys, wake := int(in.Fd()), int(w.r.Fd())
	for {
		var fds unix.FdSet
		fds.Set(keys)
		fds.Set(wake)
		_, err := unix.Select(max(keys, wake)+1, &fds, nil, nil, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		default:
			return !fds.IsSet(wake), nil
		}
	}
}

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
