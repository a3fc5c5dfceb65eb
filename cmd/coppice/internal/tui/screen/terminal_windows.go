package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// waker does not wait: reading a console cannot be ended.
type waker struct{}

func newWaker() (*waker, error)            { return &waker{}, nil }
func (*waker) works() bool                 { return false }
func (*waker) on()                         {}
func (*waker) off()                        {}
func (*waker) close() error                { return nil }
func (*waker) wait(*os.File) (bool, error) { return true, nil }

// watchSize does nothing: the size is asked for whenever something is drawn.
func watchSize(chan<- struct{}) (stop func()) { return func() {} }

// suspend does nothing: there are no jobs that a shell could continue.
func suspend() {}

// showControls makes a console understand control sequences.
func showControls(out *os.File) {
	handle, mode := windows.Handle(out.Fd()), uint32(0)
	if windows.GetConsoleMode(handle, &mode) == nil {
		_ = windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) // an old console shows them as text
	}
}
