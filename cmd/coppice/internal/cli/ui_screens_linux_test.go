package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/demo"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/needs"
)

// demoTime is when the sessions of the screens were held: long enough ago for a date to be shown
// in the same words for ever.
var demoTime = time.Date(2025, 3, 14, 15, 9, 0, 0, time.UTC)

// screens are the views of the terminal UI: the keys that lead there, and something that shows when
// it is drawn.
var screens = []struct {
	name  string
	keys  []string
	shows string
}{
	{"sessions", nil, "Off-by-one"},
	{"search", []string{"/", "nightly"}, "hits"},
	{"card", []string{"/", "nightly", "Tab", "i"}, "asked"},
	{"transcript", []string{"/", "nightly", "Tab", "Enter"}, "apt-get install"},
	{"find", []string{"/", "nightly", "Tab", "Enter", "/", "protoc", "Enter"}, "protoc"},
	{"tree", []string{"/", "nightly", "Tab", "t"}, "← leaf"},
	{"treefind", []string{"/", "nightly", "Tab", "t", "g", "/", "daemon", "Enter"}, "row 13"},
	{"compare", []string{"/", "nightly", "Tab", "t", "Space", "Up", "Up", "Up", "Up", "="}, "they share"},
	{"context", []string{"/", "unterminated", "Tab", "x"}, "replaced by the summary"},
	{"stats", []string{"$", "Right", "Right", "Right"}, "By model"},
	{"command", []string{":", "ls -n 3", "Enter"}, "more: coppice ls --limit 3 --page 2"},
	{"help", []string{"?"}, "all keys"},
}

// TestScreensOfTheUI drives the program in a real terminal through each view, at four sizes, and
// compares what is on the screen with what a person has looked at.
func TestScreensOfTheUI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := home.Open(t.Context(), dir, &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = demo.Write(t.Context(), h, demoTime, false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Search.Stats(t.Context(), home.StatsRequest{}); err != nil { // so that the index is complete
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}} {
		for _, s := range screens {
			name := fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := openTmux(t, size[0], size[1], "coppice", "--dir", dir)
				m.waits("Off-by-one")
				for _, key := range s.keys {
					m.press(key)
					m.settles()
				}
				m.waits(s.shows)
				m.compare(filepath.Join("testdata", "ui", name+".txt"))
			})
		}
	}
}

// tmux is a program in a terminal of its own.
type tmux struct {
	*testing.T
	socket string
}

// openTmux runs a program in a terminal.
func openTmux(t *testing.T, columns, rows int, command ...string) *tmux {
	t.Helper()
	needs.This(t, needs.Tmux)
	m := &tmux{t, filepath.Join(t.TempDir(), "s")}
	env := []string{"env", "-i", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=tmux-256color", "TZ=UTC", "LANG=C.UTF-8"}
	m.run(append([]string{"-f", "/dev/null", "-u", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows)}, append(env, command...)...)...)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() }) // it may have ended
	return m
}

func (m *tmux) run(args ...string) string {
	m.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// press presses a key that tmux knows by name, or types a text.
func (m *tmux) press(key string) {
	m.Helper()
	m.run("send-keys", key)
}

func (m *tmux) screen() string {
	m.Helper()
	var b strings.Builder
	for line := range strings.Lines(m.run("capture-pane", "-p")) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return ageOfSession.ReplaceAllString(b.String(), " <age>   ")
}

// ageOfSession is the age of a session in the list, which grows.
var ageOfSession = regexp.MustCompile(`(?m)^ \d+ (mon|y) +`)

// until waits for a screen.
func (m *tmux) until(is func(screen string) bool) (screen string, ok bool) {
	m.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if screen = m.screen(); is(screen) {
			return screen, true
		}
		if time.Now().After(end) {
			return screen, false
		}
	}
}

func (m *tmux) waits(text string) {
	m.Helper()
	if screen, ok := m.until(func(screen string) bool { return strings.Contains(screen, text) }); !ok {
		m.Fatalf("%q never shows:\n%s", text, screen)
	}
}

// settles waits until the screen stays as it is, and returns it.
func (m *tmux) settles() string {
	m.Helper()
	last := ""
	screen, _ := m.until(func(screen string) bool {
		same := screen == last
		last = screen
		if !same {
			time.Sleep(60 * time.Millisecond)
		}
		return same
	})
	return screen
}

// compare compares the screen with a file, or writes the file.
func (m *tmux) compare(path string) {
	m.Helper()
	if *update {
		time.Sleep(2 * time.Second)
		screen := m.settles()
		if err := os.WriteFile(path, []byte(screen), 0o644); err != nil {
			m.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	if screen, ok := m.until(func(screen string) bool { return screen == string(want) }); !ok {
		m.Errorf("the screen differs from %s (-update writes it again):\n%s\nwant:\n%s", path, screen, want)
	}
}
