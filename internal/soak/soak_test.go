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

// TestAmount shows how much is done without COPPICE_SOAK, with it, and with -short.
func TestAmount(t *testing.T) {
	if os.Getenv(childEnv) != "" {
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
		cmd := exec.Command(os.Args[0], append(c.flags, "-test.run=^TestAmount$", "-test.v")...)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "COPPICE_SOAK=") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, childEnv+"=1", c.env)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) {
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
