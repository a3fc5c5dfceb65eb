package soak_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
)

const childEnv = "COPPICE_TEST_SOAK_CHILD"

// run runs tests of this package in a process of its own, and returns what it said.
func run(flags []string, env ...string) string {
	cmd := exec.Command(os.Args[0], append(flags, "-test.v")...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "COPPICE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, childEnv+"=1"), env...)
	out, _ := cmd.CombinedOutput() // some are to fail
	return string(out)
}

// isChild reports whether run has started this process. Some tests are for it alone.
func isChild() bool { return os.Getenv(childEnv) != "" }

// TestAmount shows how much is done without COPPICE_SOAK, with it, and with -short.
func TestAmount(t *testing.T) {
	if isChild() {
		printAmount(t)
		return
	}
	t.Parallel()
	for _, c := range []struct {
		flags []string
		env   string
		want  string
	}{
		{nil, "", "8 of 8, 1.5s, 20 cases, 3 of few"},
		{nil, "COPPICE_SOAK=3", "24 of 8, 4.5s, 60 cases, 9 of few"},
		{[]string{"-test.short"}, "", "1 of 8, 150ms, 4 cases, 1 of few"},
		{[]string{"-rapid.checks=7"}, "COPPICE_SOAK=3", "24 of 8, 4.5s, 7 cases, 7 of few"},
		{nil, "COPPICE_SOAK=1h", `COPPICE_SOAK="1h": it is how many times as long`},
	} {
		if out := run(append(c.flags, only("^TestAmount$")...), c.env); !strings.Contains(out, c.want) {
			t.Errorf("%v %s: want %q in\n%s", c.flags, c.env, c.want, out)
		}
	}
}

func printAmount(t *testing.T) {
	flag.Parse()
	cases, few := 0, 0
	soak.Check(t, func(*rapid.T) { cases++ })
	soak.Few(t, 3, func(*rapid.T) { few++ })
	t.Logf("%d of 8, %s, %d cases, %d of few", soak.N(8), soak.For(1500*time.Millisecond), cases, few)
}
