//go:build !windows

package screen

import (
	"os"
	"os/signal"
	"syscall"

	uv "github.com/charmbracelet/ultraviolet"
)

func openKeys(in *os.File) (keyReader, error) { return uv.NewCancelReader(in) }

// watchSize sends a signal whenever the size of the terminal has changed.
func watchSize(resized chan<- os.Signal) { signal.Notify(resized, syscall.SIGWINCH) }

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
