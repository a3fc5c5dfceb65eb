// Package soak says how much the tests do that could go on for ever: those that draw
// their cases at random, kill processes or cut the power. There is a little of each in
// every run of the tests, a tenth of that with -short, and as many times more as
// COPPICE_SOAK says. make soak sets it.
//
// It also says where their random numbers come from. They are the same in each run and on
// each machine, so that a test that passed passes again. COPPICE_SEED=random draws others,
// COPPICE_SEED=N draws those of N, and a test that fails prints the command that repeats it.
package soak

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const env = "COPPICE_SOAK"

// checks is how many cases Check draws, before make soak multiplies them.
const checks = 20

// factor is what COPPICE_SOAK says, and 1 without it.
var factor = sync.OnceValue(func() int {
	text, set := os.LookupEnv(env)
	if !set {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s=%q: it is how many times as long the tests go on, 1 or more", env, text))
	}
	return n
})

// N returns how often to do what is done n times in make test. It is at least 1.
func N(n int) int {
	if testing.Short() {
		return max(n/10, 1)
	}
	return n * factor()
}

// For returns how long to go on with what takes d in make test.
func For(d time.Duration) time.Duration { return time.Duration(N(int(d))) }

// setFlags tells rapid how many cases to draw, unless -rapid.checks does. With -short, rapid
// draws a fifth. Files with the cases that failed are not written: rapid would try them in
// every later run, whose result would then depend on what had failed on this machine.
var setFlags = sync.OnceValue(func() error {
	if !given("rapid.checks") {
		if err := flag.Set("rapid.checks", strconv.Itoa(checks*factor())); err != nil {
			return err
		}
	}
	return flag.Set("rapid.nofailfile", "true")
})

// given reports whether a flag is on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// seedGiven is asked before Check sets the flag itself.
var seedGiven = sync.OnceValue(func() bool { return given("rapid.seed") })

// drawing guards -rapid.seed, the only way to give rapid a seed, from the moment at which
// Check sets it until rapid has read it.
var drawing sync.Mutex

// Check is rapid.Check with as many cases as a run of the tests has time for.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	drawing.Lock()
	hasRead := sync.OnceFunc(drawing.Unlock)
	defer hasRead()
	if err := setFlags(); err != nil {
		t.Fatal(err)
	}
	if !seedGiven() {
		if err := flag.Set("rapid.seed", strconv.FormatUint(seedOf(t), 10)); err != nil {
			t.Fatal(err)
		}
		defer sayHowToRepeat(t)
	}
	rapid.Check(t, func(t *rapid.T) {
		hasRead()
		property(t)
	})
}

// Few is Check for a property whose cases are so slow that n of them are enough in make
// test.
func Few(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	runs, fails := 0, false
	Check(t, func(t *rapid.T) {
		if runs++; runs > N(n) && !fails {
			return
		}
		fails = true // until it has passed: rapid looks for a smaller case that fails, too
		property(t)
		fails = t.Failed()
	})
}
