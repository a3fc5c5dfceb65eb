package screen

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// console cannot cancel a Read, so reading it never stops.
type console struct{ io.Reader }

func (console) Cancel() bool { return false }
func (console) Close() error { return nil }

func openKeys(in *os.File) (keyReader, error) { return console{in}, nil }

// watchSize does nothing: the size is asked for whenever something is drawn.
func watchSize(chan<- os.Signal) {}

// suspend does nothing: there are no jobs that a shell could continue.
func suspend() {}

// showControls makes a console understand control sequences.
func showControls(out *os.File) {
	handle, mode := windows.Handle(out.Fd()), uint32(0)
	if windows.GetConsoleMode(handle, &mode) == nil {
		_ = windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) // an old console shows them as text
	}
}
