// Package soak says how much the tests do that could go on for ever: those that draw
// their cases at random, kill processes or cut the power. There is a little of each in
// every run of the tests, a tenth of that with -short, and as many times more as
// COPPICE_SOAK says. make soak sets it.
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

// setChecks tells rapid how many cases to draw, unless -rapid.checks does. With -short,
// rapid draws a fifth.
var setChecks = sync.OnceValue(func() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return nil
	}
	return flag.Set("rapid.checks", strconv.Itoa(checks*factor()))
})

// Check is rapid.Check with as many cases as a run of the tests has time for.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if err := setChecks(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
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
