package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
)

// screenOfApp runs f with a program that has a terminal, and returns what that
// shows.
func screenOfApp(t *testing.T, env map[string]string, f func(a *app)) string {
	t.Helper()
	slave, master := openTerminal(t)
	defer master.Close()
	shown := make(chan string)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the other end is closed
		shown <- string(all)
	}()
	getenv := func(name string) string { return env[name] }
	a := &app{talk: newTalk(slave, slave, getenv), stdin: strings.NewReader(""), getenv: getenv}
	f(a)
	_ = a.out.Flush()
	slave.Close()
	return strings.ReplaceAll(<-shown, "\r\n", "\n")
}

// Bold and underlined text are decoration, too.
func TestHelpIsPlainWhereNoColoursAreWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want bool
	}{
		"NO_COLOR":       {map[string]string{"NO_COLOR": "1", "HOME": t.TempDir()}, []string{"ls", "--help"}, false},
		"--color never":  {map[string]string{"HOME": t.TempDir()}, []string{"--color", "never", "help", "ls"}, false},
		"a terminal":     {map[string]string{"HOME": t.TempDir()}, []string{"ls", "--help"}, true},
		"NO_COLOR, help": {map[string]string{"NO_COLOR": "1", "HOME": t.TempDir()}, []string{"help"}, false},
	} {
		shown := screenOfApp(t, c.env, func(a *app) {
			if code := a.run(t.Context(), c.args); code != exitOK {
				t.Errorf("%s: exit code %d", name, code)
			}
		})
		if !strings.Contains(shown, "USAGE") {
			t.Fatalf("%s: that is no help: %q", name, shown)
		}
		if got := strings.Contains(shown, "\x1b["); got != c.want {
			t.Errorf("%s: styles: %v, want %v:\n%q", name, got, c.want, shown)
		}
	}
}

// A terminal that is asked for its colours may never answer, and the reader waits.
func TestHelpAsksTheTerminalNothing(t *testing.T) {
	t.Parallel()
	paints := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for _, args := range [][]string{{"--help"}, {"help", "chat"}, {"trash", "--help"}, {"help", "config"}, {"completion"}} {
		slave, master := openTerminal(t)
		shown := make(chan string)
		go func() {
			all, _ := io.ReadAll(master) // it ends with an error when the other end is closed
			shown <- string(all)
		}()
		cmd := exec.CommandContext(t.Context(), "coppice", args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "PAGER=cat"}
		err := cmd.Run()
		slave.Close()
		text := <-shown
		master.Close()
		if err != nil || !strings.Contains(text, "USAGE") || !paints.MatchString(text) {
			t.Errorf("%q: %v: that is no painted help: %q", args, err, text)
		}
		if rest := paints.ReplaceAllString(text, ""); strings.Contains(rest, "\x1b") {
			t.Errorf("%q does more than paint: %q", args, rest)
		}
	}
}

// A chart of hundreds of models would push everything else off the screen. What is
// piped has all of them.
func TestLongChartsAreCutOnATerminal(t *testing.T) {
	t.Parallel()
	var bars []index.Count
	for i := range 40 {
		bars = append(bars, index.Count{Name: fmt.Sprintf("model-%02d", i), Count: int64(100 - i)})
	}
	print := func(a *app) {
		if err := a.printLines(a.barLines("Tokens by model", bars)); err != nil {
			t.Error(err)
		}
	}
	shown := screenOfApp(t, nil, print)
	if n := strings.Count(shown, "model-"); n != maxBars || !strings.Contains(shown, "and 25 more") {
		t.Errorf("%d models, and:\n%s", n, shown)
	}
	var out strings.Builder
	a := &app{talk: newTalk(&out, io.Discard, func(string) string { return "" })}
	print(a)
	_ = a.out.Flush()
	if n := strings.Count(out.String(), "model-"); n != len(bars) {
		t.Errorf("piped, there are %d models of %d", n, len(bars))
	}
}
