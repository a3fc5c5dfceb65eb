package screen

import (
	"os"

	"golang.org/x/term"
)

// Terminal is a terminal in raw mode: keys arrive one by one, and nothing is echoed.
type Terminal struct {
	in, out *os.File
	before  *term.State
	resized chan struct{}
	stop    func()
}

// bracketedPaste makes a terminal mark what is pasted, so that a newline in it does not
// end the message.
const bracketedPaste = 2004

// OpenTerminal switches a terminal to raw mode. Close switches it back.
func OpenTerminal(in, out *os.File) (*Terminal, error) {
	t := &Terminal{in: in, out: out, resized: make(chan struct{}, 1)}
	if err := t.raw(); err != nil {
		return nil, err
	}
	t.stop = watchSize(t.resized)
	return t, nil
}

func (t *Terminal) raw() (err error) {
	if t.before, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return err
	}
	showControls(t.out)
	New(t.out, t.Size).Mode(bracketedPaste, true)
	return nil
}

func (t *Terminal) restore() error {
	New(t.out, t.Size).Mode(bracketedPaste, false)
	return term.Restore(int(t.in.Fd()), t.before)
}

// Size returns how many columns and rows there are; zeros if nobody knows.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// Resized gets a value when the size has changed, where the system says so.
func (t *Terminal) Resized() <-chan struct{} { return t.resized }

// Suspend gives the terminal back to the shell until the program is continued.
func (t *Terminal) Suspend() {
	if t.restore() == nil {
		suspend()
		_ = t.raw() // it was one a moment ago
	}
}

// Close switches the terminal back.
func (t *Terminal) Close() error {
	t.stop()
	return t.restore()
}
