package screen

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Terminal is a terminal in raw mode: keys arrive one by one, and nothing is echoed.
type Terminal struct {
	in, out *os.File
	before  *term.State
	resized chan struct{}
	stop    func()

	// reading is held while keys are waited for, and lending by those who want to have the
	// terminal next. wake ends the waiting.
	lending, reading sync.Mutex
	wake             *waker
	closed           bool // guarded by reading
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
	var err error
	if t.wake, err = newWaker(); err != nil {
		return nil, errors.Join(err, t.restore())
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

// Size returns how many columns and rows there are; zeros if that is not known.
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

// Read reads keys. While the terminal is lent, it waits.
func (t *Terminal) Read(p []byte) (int, error) {
	for {
		t.lending.Lock()
		t.reading.Lock()
		t.lending.Unlock()
		n, ready, err := 0, t.closed, io.EOF
		if !t.closed {
			if ready, err = t.wake.wait(t.in); ready {
				n, err = t.in.Read(p)
			}
		}
		t.reading.Unlock()
		if ready || err != nil {
			return n, err
		}
	}
}

// Lend gives the terminal, as it was before, to another program that runs while f does: all
// keys go there. It returns false where the system cannot do that.
func (t *Terminal) Lend(f func()) (bool, error) {
	if !t.wake.works() {
		return false, nil
	}
	defer t.stopReading()()
	if err := t.restore(); err != nil {
		return false, err
	}
	f()
	return true, t.raw()
}

// stopReading makes sure that no key is waited for until start is called.
func (t *Terminal) stopReading() (start func()) {
	t.lending.Lock()
	t.wake.on()
	t.reading.Lock()
	t.wake.off()
	return func() {
		t.reading.Unlock()
		t.lending.Unlock()
	}
}

// Close switches the terminal back.
func (t *Terminal) Close() error {
	t.stop()
	if !t.wake.works() {
		return t.restore()
	}
	defer t.stopReading()()
	t.closed = true
	return errors.Join(t.restore(), t.wake.close())
}
