package screen

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"golang.org/x/term"
)

// Terminal is a terminal in raw mode: keys arrive one by one, and nothing is echoed.
type Terminal struct {
	in, out *os.File
	before  *term.State
	resized chan os.Signal

	// reading is held while keys are waited for, and lending by those who want to have the
	// terminal next: they set stopping, and end the waiting.
	lending, reading sync.Mutex
	stopping         atomic.Bool
	keys             keyReader // changes only while both are held; nil after Close
}

// keyReader reads keys. Cancel ends a Read, and all that come later; it returns false where the
// system cannot do that.
type keyReader interface {
	io.ReadCloser
	Cancel() bool
}

// bracketedPaste makes a terminal mark what is pasted, so that a newline in it does not
// end the message.
const bracketedPaste = 2004

// OpenTerminal switches a terminal to raw mode. Close switches it back.
func OpenTerminal(in, out *os.File) (*Terminal, error) {
	t := &Terminal{in: in, out: out, resized: make(chan os.Signal, 1)}
	if err := t.raw(); err != nil {
		return nil, err
	}
	var err error
	if t.keys, err = openKeys(in); err != nil {
		return nil, errors.Join(err, t.restore())
	}
	watchSize(t.resized)
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
func (t *Terminal) Resized() <-chan os.Signal { return t.resized }

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
		n, err := 0, io.EOF
		if t.keys != nil {
			n, err = t.keys.Read(p)
		}
		stopped := err != nil && t.stopping.Load()
		t.reading.Unlock()
		if !stopped {
			return n, err
		}
	}
}

// Lend gives the terminal, as it was before, to another program that runs while f does: all
// keys go there. It returns false where the system cannot do that.
func (t *Terminal) Lend(f func()) (lent bool, err error) {
	start, ok := t.stopReading()
	if !ok {
		return false, nil
	}
	defer start()
	if t.keys, err = openKeys(t.in); err != nil {
		return false, err
	}
	if err := t.restore(); err != nil {
		return false, err
	}
	f()
	return true, t.raw()
}

// stopReading ends the waiting for keys and closes t.keys. The caller sets another reader, or nil, and
// then calls start.
func (t *Terminal) stopReading() (start func(), ok bool) {
	t.lending.Lock()
	t.stopping.Store(true)
	if t.keys == nil || !t.keys.Cancel() {
		t.stopping.Store(false)
		t.lending.Unlock()
		return nil, false
	}
	t.reading.Lock()
	_ = t.keys.Close() // nothing was written to it
	return func() {
		t.stopping.Store(false)
		t.reading.Unlock()
		t.lending.Unlock()
	}, true
}

// Close switches the terminal back.
func (t *Terminal) Close() error {
	signal.Stop(t.resized)
	if start, ok := t.stopReading(); ok {
		defer start()
		t.keys = nil
	}
	return t.restore()
}
