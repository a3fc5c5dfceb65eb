package tools_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
)

func newShell(t *testing.T, o tools.Options) *bench {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands here are those of Unix")
	}
	return newBench(t, o)
}

func TestBash(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "the-key")
	t.Setenv("OTHER", "other")
	for _, name := range []string{"OPENROUTER_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PGPASSWORD", "MY_DB_PASS", "NPM_CONFIG__AUTH", "SESSION_COOKIE", "AWS_SESSION", "SENTRY_DSN", "WIFI_PSK"} {
		t.Setenv(name, "hidden")
	}
	t.Setenv("DATABASE", "postgres://me:k9Zq4vXw7Lp2@db.internal/x")
	t.Setenv("CACHE", "redis://:k9Zq4vXw@host")
	t.Setenv("KEPT_TOKEN", "kept")
	t.Setenv("MAX_TOKENS", "4096")
	b := newShell(t, tools.Options{Keep: []string{"KEPT_TOKEN"}})
	b.file("a", "")
	for command, want := range map[string]string{
		"echo out; echo err >&2; printf end":             "out\nerr\nend\n",
		"true":                                           "[no output]",
		"pwd -P; ls a":                                   b.dir + "\na\n",
		"cat":                                            "[no output]", // the input is empty
		"printf '\\033[31mred\\033[0m'":                  "red\n",
		"printf 'a\\377b'":                               "a\uFFFDb\n",
		"echo $OTHER-$ANTHROPIC_API_KEY-":                "other--\n",
		"env | grep -c -e hidden -e k9Zq":                "0\n[exit code 1]",
		"echo $KEPT_TOKEN-$MAX_TOKENS":                   "kept-4096\n",
		"tty > /dev/null || echo none":                   "none\n",
		"(: < /dev/tty) 2>/dev/null || echo no terminal": "no terminal\n",
		"sleep 1000 & echo done":                         "done\n", // nobody waits for it
		"sleep 1000 > /dev/null 2>&1 & echo $! > pid; echo done": "done\n",
	} {
		if got := b.runIn(t.Context(), "bash", args("command", command)).Text; got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	waitGone(t, strings.TrimSpace(b.content("pid")))
	if runtime.GOOS == "linux" { // without a session of its own it would have our terminal
		b.run("bash", "command", `read -r pid name state parent group session rest < /proc/$$/stat && [ "$session" = $$ ]`)
	}
	b.fails("partly\n[exit code 3]", "bash", "command", "echo partly; exit 3")
	b.fails("[exit code 127]", "bash", "command", "no-such-program")
	b.fails("[signal: killed]", "bash", "command", "kill -9 $$")
	b.fails("exit code", "bash", "command", "-x") // no option of the shell
}

// waitGone waits until a process has ended, or is a zombie that nobody reaps here.
func waitGone(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if _, state, _ := strings.Cut(string(stat), ") "); err != nil || strings.HasPrefix(state, "Z") {
			return
		}
	}
	t.Errorf("the process %s still runs", pid)
}

func TestTimeoutEndsACommand(t *testing.T) {
	t.Parallel()
	b := newShell(t, tools.Options{Timeout: 300 * time.Millisecond})
	r := b.runIn(t.Context(), "bash", args("command", "sleep 1000"))
	if !r.IsError || !strings.Contains(r.Text, "[ended after 300ms") || !strings.Contains(r.Text, "up to 600") {
		t.Errorf("%q", r.Text)
	}
}

// runUntil runs a command and cancels it when a file is there.
func (b *bench) runUntil(file, command string) agent.Result {
	b.t.Helper()
	ctx, cancel := context.WithCancelCause(b.t.Context())
	defer cancel(nil)
	go func() {
		for !b.exists(file) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(errors.New("enough"))
	}()
	return b.runIn(ctx, "bash", args("command", command))
}

func TestCancelledCommandEndsWithItsChildren(t *testing.T) {
	t.Parallel()
	b := newShell(t, tools.Options{})
	r := b.runUntil("begun", "sleep 1000 & echo $! > child; (trap '' TERM; sleep 1000) & echo $! > stubborn; echo begun; touch begun; wait")
	if !r.IsError || !strings.Contains(r.Text, "begun\n") || !strings.Contains(r.Text, "enough") {
		t.Errorf("%q", r.Text)
	}
	waitGone(t, strings.TrimSpace(b.content("child")))
	waitGone(t, strings.TrimSpace(b.content("stubborn")))
}

// A command that gets a signal to end can clean up, and one that is cancelled before it has
// begun does not run.
func TestCancelledCommandCleansUp(t *testing.T) {
	t.Parallel()
	b := newShell(t, tools.Options{Grace: time.Minute})
	r := b.runUntil("begun", "trap 'echo cleaned > cleaned; exit' TERM; touch begun; while :; do sleep 0.05; done")
	if !r.IsError || !b.exists("cleaned") {
		t.Errorf("%q, cleaned up: %v", r.Text, b.exists("cleaned"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := b.runIn(ctx, "bash", args("command", "touch late")); !r.IsError || b.exists("late") {
		t.Errorf("it ran although it was cancelled: %q", r.Text)
	}
}

// A process that has fled from the group with the output is not waited for.
func TestCommandThatFleesIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := newShell(t, tools.Options{})
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip(err)
	}
	text := b.run("bash", "command", "setsid sh -c 'echo $$ > pid; exec sleep 300' & while ! [ -s pid ]; do sleep 0.01; done; echo done")
	if text != "done\n" {
		t.Errorf("%q", text)
	}
	var pid int
	if _, err := fmt.Sscan(b.content("pid"), &pid); err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	b.must(err)
	b.must(p.Kill()) // it was still there
}

// Output is limited while the command runs: a gigabyte does not fit.
func TestHugeOutputKeepsBothEnds(t *testing.T) {
	b := newShell(t, tools.Options{MaxOutput: 1000})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := b.run("bash", "command", "echo begin; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end")
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(text, "begin\nxxx") || !strings.HasSuffix(text, "xxx\nend\n") || !strings.Contains(text, "190 MiB left out") || len(text) > 1100 {
		t.Errorf("%d bytes: %.20q … %q", len(text), text, text[max(0, len(text)-20):])
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 10<<20 {
		t.Errorf("it took %d bytes of memory", grown)
	}
}

func TestNoShell(t *testing.T) {
	t.Setenv("PATH", filepath.Join(t.TempDir(), "none"))
	b := newBench(t, tools.Options{})
	b.fails("no bash", "bash", "command", "true")
}

// What a command prints is shown while it runs.
func TestOutputIsShownWhileACommandRuns(t *testing.T) {
	t.Parallel()
	b := newShell(t, tools.Options{})
	var seen []string
	ctx := agent.WithProgress(t.Context(), func(text string) {
		if seen = append(seen, text); strings.HasSuffix(text, "two\n") && !b.exists("go on") {
			b.file("go on", "")
		}
	})
	r := b.runIn(ctx, "bash", args("command", "yes | head -5000; printf '\\033[31mone\\033[0m\\ntwo\\n'; while ! [ -e 'go on' ]; do sleep 0.01; done; echo three"))
	if r.IsError || !strings.HasSuffix(r.Text, "one\ntwo\nthree\n") {
		t.Errorf("%q", r.Text)
	}
	for _, text := range seen {
		if len(text) > 4<<10 || strings.Contains(text, "\033") {
			t.Errorf("%q was shown", text)
		}
	}
}
