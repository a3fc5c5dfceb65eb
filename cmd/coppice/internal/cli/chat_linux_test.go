package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// seat is a real program on a real terminal.
type seat struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	shown  bytes.Buffer // guarded by mu
}

// anEditor reads two lines from the terminal and writes them into the file.
const anEditor = `f() { echo ready; read a; read b; printf '%s, %s and %s\n' "$(cat "$1")" "$a" "$b" >"$1"; }; f`

func takeSeat(t *testing.T, args ...string) *seat {
	t.Helper()
	slave, master, err := newTerminal(80)
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, master: master}
	home := t.TempDir()
	s.cmd = exec.Command("coppice", args...)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "COPPICE_HOME=" + filepath.Join(home, "sessions"), "TERM=xterm-256color", "EDITOR=" + anEditor}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		slave.Close()
		master.Close()
	})
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *seat) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *seat) sees(text string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(s.text(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%q is not on the terminal: %q", text, s.text())
		}
	}
}

func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the end of the program, and checks that it leaves the terminal as it
// was.
func (s *seat) ends() int {
	s.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	mode, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	if mode.Lflag&unix.ICANON == 0 || mode.Lflag&unix.ECHO == 0 || mode.Oflag&unix.OPOST == 0 {
		s.t.Errorf("the terminal is still raw: %+v", mode)
	}
	s.sees("\x1b[?2004l")
	return s.cmd.ProcessState.ExitCode()
}

func TestChatOnARealTerminal(t *testing.T) {
	t.Parallel()
	s := takeSeat(t, "chat")
	s.sees("\x1b[?2004h")
	s.sees("›")
	s.types("say **strong** words\r")
	s.sees("\x1b[1mstrong\x1b[0m words")
	s.sees("tokens")
	s.types("\x04")
	if code := s.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if faults := screenFaults(moves.ReplaceAllString(s.text(), "")); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// An editor has the terminal for itself, as it was before the chat, and gives it back.
func TestAnEditorGetsAllKeys(t *testing.T) {
	t.Parallel()
	s := takeSeat(t, "chat")
	s.sees("›")
	s.types("say zero\x07")
	s.sees("ready")
	s.types("one\ntwo\n")
	s.sees("say zero, one and two")
	s.types("\r")
	s.sees("tokens")
	s.types("\x04")
	if code := s.ends(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// moves are the control sequences with which the chat moves about.
var moves = regexp.MustCompile(`\x1b\[(?:\?2004[hl]|[0-9]*[ABCJ])|\r`)

func TestASignalEndsAChatAndRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	s := takeSeat(t, "chat")
	s.sees("›")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ends(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

func TestAChatThatCannotBeginRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	s := takeSeat(t, "chat", "nobody")
	if code := s.ends(); code != exitNotFound {
		t.Errorf("exit code %d", code)
	}
	s.sees("no such session: \"nobody\"\r\n")
}

// A server that takes long to start is named, and Ctrl-C ends the wait.
func TestAChatCanBeLeftWhileAServerStarts(t *testing.T) {
	t.Parallel()
	s := takeSeat(t, "chat", "--mcp", "slow: exec sleep 100")
	s.sees("starting the MCP server slow…")
	s.types("hello\r\x03")
	if code := s.ends(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(s.text(), "You said") {
		t.Errorf("the message was sent: %q", s.text())
	}
}

// What is typed while a server starts is in the prompt, and not sent.
func TestWhatIsTypedWhileAServerStartsIsNotSent(t *testing.T) {
	t.Parallel()
	typed := filepath.Join(t.TempDir(), "typed")
	s := takeSeat(t, "chat", "--mcp", "slow: for i in $(seq 300); do sleep 1; test -e "+typed+" && exit 1; done")
	s.sees("starting the MCP server slow…")
	s.types("hello\r")
	if err := os.WriteFile(typed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sees("there are no tools from")
	s.sees("\x1b[0m hello")
	s.types("\x03")
	s.types("say after\r")
	s.sees("tokens")
	s.types("\x04")
	if code := s.ends(); code != exitOK || strings.Contains(s.text(), "You said: hello") {
		t.Errorf("exit code %d, %q", code, s.text())
	}
}
