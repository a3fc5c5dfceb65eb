package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// asTerminal makes the test binary the terminal.
const asTerminal = "COPPICE_TEST_TERMINAL"

func TestMain(m *testing.M) {
	if os.Getenv(asTerminal) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// house is a home with a server, both real.
type house struct {
	*testing.T
	dir, program, socket string
}

// start starts a server and waits until it listens.
func (h *house) start() *exec.Cmd {
	h.Helper()
	server := exec.Command(h.program, "ipc", "--socket", h.socket)
	server.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH")}
	out, err := server.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := server.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = server.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(line) != h.socket {
		h.Fatalf("the server said %q, %v", line, err)
	}
	return server
}

// terminal runs the terminal with what a person types, and returns what it shows.
func (h *house) terminal(typed string, args ...string) string {
	h.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--socket", h.socket}, args...)...)
	cmd.Env = append(os.Environ(), asTerminal+"=1")
	cmd.Stdin = strings.NewReader(typed)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func (h *house) coppice(args ...string) string {
	h.Helper()
	cmd := exec.Command(h.program, args...)
	cmd.Env = []string{"HOME=" + h.dir, "NO_COLOR=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestSessionSurvives has a session from its first message to a restored one, with real
// processes: what was said is there after the terminal, and even the server, were killed.
func TestSessionSurvives(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "terminal") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &house{t, dir, filepath.Join(dir, "coppice"), filepath.Join(dir, "s")}
	build := exec.Command("go", "build", "-o", h.program, "github.com/coppice-dev/coppice/cmd/coppice")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	server := h.start()
	if got := h.terminal("say Hazel grows again.\nsay And again.\n"); got != "Hazel grows again.\n2 messages\nAnd again.\n4 messages\n" {
		t.Errorf("the first terminal: %q", got)
	}
	if got := h.terminal("say Willow, too.\n/list\n", "--restore", "last"); !regexp.MustCompile(
		`^Restored session with 4 messages\nWillow, too.\n6 messages\n\S+ 20\d\d-\d\d-\d\d \d\d:\d\d 6 messages \d+ tokens\n$`).MatchString(got) {
		t.Errorf("the second terminal: %q", got)
	}
	if got := h.terminal("", "--restore", "nothing"); !strings.HasPrefix(got, "error: no such session") {
		t.Errorf("a session that is not there: %q", got)
	}

	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	server = h.start() // in the place of the socket that is left
	other := exec.Command(h.program, "ipc", "--socket", h.socket)
	other.Env = []string{"HOME=" + h.dir}
	if out, err := other.CombinedOutput(); other.ProcessState.ExitCode() != 11 || !strings.Contains(string(out), "already listening on "+h.socket) {
		t.Errorf("a second server: %v: %s", err, out)
	}
	if got := h.terminal("", "--restore", "last"); got != "Restored session with 6 messages\n" {
		t.Errorf("after the server was killed: %q", got)
	}
	if got := h.coppice("show", "last"); !strings.Contains(got, "Hazel grows again.") || !strings.Contains(got, "Willow, too.") {
		t.Errorf("the command line shows %q", got)
	}
	if out, err := exec.Command("sh", "-c", `command -v nc >/dev/null || exit 0
		printf '{"type":"session_list"}\n' | nc -N -U "$0" | grep -q '"type":"session_list_result"'`, h.socket).CombinedOutput(); err != nil {
		t.Errorf("nc: %v: %s", err, out)
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := os.Stat(h.socket); err == nil {
		t.Error("the socket is still there")
	}
}
