package screen_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
)

// openPty returns both ends of a new terminal.
func openPty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 90})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// While the terminal is lent, all keys go to the one who has it.
func TestATerminalIsLent(t *testing.T) {
	master, slave := openPty(t)
	term, err := screen.OpenTerminal(slave, slave)
	if err != nil {
		t.Fatal(err)
	}
	keys, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		buf := make([]byte, 100)
		for {
			n, err := term.Read(buf)
			if err != nil {
				ended <- err
				return
			}
			keys <- string(buf[:n])
		}
	}()
	types := func(text string) {
		if _, err := master.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		types("a")
		if got := <-keys; got != "a" {
			t.Fatalf("%q was read", got)
		}
		lent, err := term.Lend(func() {
			types("for you\n")
			buf := make([]byte, 100)
			if n, err := slave.Read(buf); err != nil || string(buf[:n]) != "for you\n" {
				t.Errorf("the other one has read %q, %v", buf[:n], err)
			}
		})
		if !lent || err != nil {
			t.Fatal(lent, err)
		}
	}
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestATerminalIsRawUntilItIsClosed(t *testing.T) {
	master, slave := openPty(t)
	fd := int(master.Fd())
	isRaw := func() bool {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return mode.Lflag&unix.ICANON == 0
	}
	term, err := screen.OpenTerminal(slave, slave)
	if err != nil {
		t.Fatal(err)
	}
	if !isRaw() {
		t.Error("the terminal is not raw")
	}
	if columns, rows := term.Size(); columns != 90 || rows != 30 {
		t.Errorf("the size is %d×%d", columns, rows)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	<-term.Resized()
	if err := term.Close(); err != nil || isRaw() {
		t.Errorf("after closing: raw %v, %v", isRaw(), err)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := screen.OpenTerminal(file, file); err == nil {
		t.Error("a file is no terminal")
	}
}

func TestAScreenOfUnknownSizeHasTheUsualOne(t *testing.T) {
	s := screen.New(os.Stderr, func() (int, int) { return 0, 0 })
	if columns, rows := s.Size(); columns != 80 || rows != 24 {
		t.Errorf("the size is %d×%d", columns, rows)
	}
}
