//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// What keys send.
const (
	enter, up, down  = "\r", "\x1b[A", "\x1b[B"
	pageUp, pageDown = "\x1b[5~", "\x1b[6~"
)

// quiet is how long a terminal must be silent for the answer to a key to be complete.
const quiet = 30 * time.Millisecond

// terminal is the program on a pseudo terminal.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	begun  time.Time
	output chan output
}

type output struct {
	at   time.Time
	text string
}

// open starts the program.
func open(program, dir string) (*terminal, error) { return start(exec.Command(program, "--dir", dir)) }

// start runs a command on a terminal of its own.
func start(cmd *exec.Cmd) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	defer slave.Close()
	t := &terminal{cmd: cmd, master: master, output: make(chan output, 10_000)}
	t.cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, slave
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t.begun = time.Now()
	if err := t.cmd.Start(); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	go func() {
		defer close(t.output)
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return // the program has ended
			}
			t.output <- output{time.Now(), string(buf[:n])}
		}
	}()
	return t, nil
}

// shows waits until a text is drawn, and returns how long the program has run by then.
func (t *terminal) shows(text string) (time.Duration, error) {
	late := time.After(patience)
	var seen strings.Builder
	for {
		select {
		case o, ok := <-t.output:
			if !ok {
				return 0, fmt.Errorf("the program ended: %q", seen.String())
			}
			if seen.WriteString(o.text); strings.Contains(ansi.Strip(seen.String()), text) {
				return o.at.Sub(t.begun), nil
			}
		case <-late:
			return 0, fmt.Errorf("%q never shows: %q", text, seen.String())
		}
	}
}

func (t *terminal) write(keys string) error {
	_, err := t.master.WriteString(keys)
	return err
}

// keys presses keys one after another, and returns how long each took until the first byte of its
// answer, and until the last byte of what was read for it and drawn later.
func (t *terminal) keys(keys ...string) (took timings, err error) {
	t.silence(time.Now())
	for _, k := range keys {
		begun := time.Now()
		if err := t.write(k); err != nil {
			return took, err
		}
		if first, last := t.silence(begun); last > 0 {
			took.first, took.last = append(took.first, first), append(took.last, last)
		}
	}
	return took, nil
}

// timings are how long keys took.
type timings struct{ first, last []time.Duration }

// silence waits until nothing is drawn any more, and returns when the first and the last byte came.
func (t *terminal) silence(begun time.Time) (first, last time.Duration) {
	wait := time.Second // for the first byte: a key that changes nothing has no answer
	for {
		select {
		case o, ok := <-t.output:
			if !ok {
				return first, last
			}
			last, wait = o.at.Sub(begun), quiet
			if first == 0 {
				first = last
			}
		case <-time.After(wait):
			return first, last
		}
	}
}

// memory returns the most memory that the program had, and what it has now.
func (t *terminal) memory() string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.cmd.Process.Pid))
	if err != nil {
		return "?"
	}
	var most, now, anonymous int
	for line := range strings.Lines(string(status)) {
		for name, kb := range map[string]*int{"VmHWM:": &most, "VmRSS:": &now, "RssAnon:": &anonymous} {
			if value, ok := strings.CutPrefix(line, name); ok {
				_, _ = fmt.Sscan(value, kb)
			}
		}
	}
	return fmt.Sprintf("%d MB now, of which %d MB are not files; %d MB at most", now/1024, anonymous/1024, most/1024)
}

func (t *terminal) close() error {
	_ = t.cmd.Process.Signal(syscall.SIGTERM) // the user closes the window
	_ = t.cmd.Wait()                          // it was asked to end
	return t.master.Close()
}
