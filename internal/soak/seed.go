package soak

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const seedEnv = "COPPICE_SEED"

// seed is what COPPICE_SEED says, and 0 without it.
var seed = sync.OnceValue(func() uint64 {
	text := os.Getenv(seedEnv)
	switch text {
	case "":
		return 0
	case "random":
		drawn := rand.Uint64N(1e9) // short enough to type
		// A process that panics, hangs or is killed cannot say it later. go test shows this
		// only if something failed.
		fmt.Fprintf(os.Stderr, "%s=%d repeats the random cases below\n", seedEnv, drawn)
		return drawn
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%q: it is a number, or random", seedEnv, text))
	}
	return n
})

// seedOf returns the seed of a test. It depends on the test's name, so that two tests do not
// draw the same numbers, and one draws the same alone and among others.
func seedOf(t testing.TB) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, seed(), t.Name())
	return max(h.Sum64(), 1) // rapid takes 0 for any seed at all
}

// Rand returns the random numbers of a test. Each call begins with the first one again, so a
// test calls it once. It is safe for concurrent use, but which goroutine draws which number
// depends on their order.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	t.Cleanup(func() { sayHowToRepeat(t) })
	return rand.New(&locked{source: rand.NewPCG(seedOf(t), 0)})
}

// locked is a source that several goroutines can draw from. A rand.Rand has no other state.
type locked struct {
	mu     sync.Mutex // guards source
	source rand.Source
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// Seeds yields seeds for what is done n times in make test, N(n) of them. They are random
// numbers of the test, and like Rand it is called once.
func Seeds(t testing.TB, n int) iter.Seq[uint64] {
	t.Helper()
	r := Rand(t)
	return func(yield func(uint64) bool) {
		for range N(n) {
			if !yield(r.Uint64N(1e9)) {
				return
			}
		}
	}
}

// sayHowToRepeat logs the command that repeats a test, if it failed.
func sayHowToRepeat(t testing.TB) {
	t.Helper()
	if t.Failed() {
		t.Log("to repeat it: " + repeat(t.Name()))
	}
}

// repeat returns the command that repeats a test with the random numbers of this process.
func repeat(test string) string {
	var b strings.Builder
	for _, name := range []string{env, "COPPICE_TEST_FULL", "COPPICE_TEST_HOME"} {
		if value, set := os.LookupEnv(name); set {
			fmt.Fprintf(&b, "%s=%s ", name, value)
		}
	}
	fmt.Fprintf(&b, "%s=%d go test ", seedEnv, seed())
	if testing.Short() {
		b.WriteString("-short ")
	}
	pkg := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = strings.TrimSuffix(info.Path, ".test")
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				b.WriteString("-race ")
			}
		}
	}
	b.WriteString(pkg + " -run '" + pattern(test) + "'")
	return b.String()
}

// pattern returns the expression for -run that matches only a test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		quoted := regexp.QuoteMeta(part)
		parts[i] = "^" + strings.ReplaceAll(quoted, "'", ".") + "$" // the shell would end there
	}
	return strings.Join(parts, "/")
}
