package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// onScreen is the script command "terminal N coppice ARGS…": it runs the program
// with a terminal of N columns for its standard output, and leaves what that shows
// in the file screen.
func onScreen(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || args[1] != "coppice" {
		ts.Fatalf("usage: terminal COLUMNS coppice ARGS…")
	}
	columns, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	slave, master, err := newTerminal(uint16(columns))
	ts.Check(err)
	defer master.Close()
	shown := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the other end is closed
		shown <- all
	}()
	var talk bytes.Buffer
	cmd := exec.Command(inPath(ts, "coppice"), args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), slave, &talk
	cmd.Env = []string{"PAGER=cat", "TERM=xterm-256color"}
	for _, name := range []string{"PATH", "HOME", "COPPICE_HOME", "COLUMNS", "NO_COLOR", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	err = cmd.Run()
	slave.Close()
	text := strings.ReplaceAll(string(<-shown), "\r\n", "\n")
	ts.Logf("%s%s", text, talk.String())
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(text), 0o600))
	if (err != nil) != neg {
		ts.Fatalf("%v: %v", args, err)
	}
}

func inPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	ts.Fatalf("%s is not in PATH", name)
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// newTerminal returns both ends of a new terminal: what a program writes to, and
// where a screen would read it.
func newTerminal(columns uint16) (slave, master *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
	}
	return slave, master, err
}
