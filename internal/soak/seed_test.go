package soak_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
)

// only returns the flag that runs the tests that a pattern matches.
func only(pattern string) []string { return []string{"-test.run=" + pattern} }

var drawn = regexp.MustCompile(`drawn: .*`)

// printDrawn says what a test draws, in parallel to others.
func printDrawn(t *testing.T) {
	if !isChild() {
		return
	}
	t.Parallel()
	var cases []int
	soak.Check(t, func(t *rapid.T) { cases = append(cases, rapid.Int().Draw(t, "n")) })
	t.Logf("drawn: %v, %d", cases, soak.Rand(t).Uint64())
}

func TestDrawOne(t *testing.T)   { printDrawn(t) }
func TestDrawOther(t *testing.T) { printDrawn(t) }

// Two runs draw the same, two tests and two seeds do not.
func TestSeed(t *testing.T) {
	t.Parallel()
	draw := func(test string, env ...string) string {
		out := run(only(test), env...)
		found := drawn.FindString(out)
		if found == "" {
			t.Fatalf("%s %v drew nothing:\n%s", test, env, out)
		}
		return found
	}
	first := draw("^TestDrawOne$")
	for what, again := range map[string]string{
		"the same":               draw("^TestDrawOne$"),
		"the same with no value": draw("^TestDrawOne$", "COPPICE_SEED="),
		"the same with 0":        draw("^TestDrawOne$", "COPPICE_SEED=0"),
	} {
		if again != first {
			t.Errorf("%s: %s, want %s", what, again, first)
		}
	}
	seven := draw("^TestDrawOne$", "COPPICE_SEED=7")
	if again := draw("^TestDrawOne$", "COPPICE_SEED=7"); again != seven {
		t.Errorf("again with 7: %s, want %s", again, seven)
	}
	for what, other := range map[string]string{
		"another test": draw("^TestDrawOther$"),
		"another seed": seven,
		"any seed":     draw("^TestDrawOne$", "COPPICE_SEED=random"),
	} {
		if other == first {
			t.Errorf("%s draws the same: %s", what, first)
		}
	}
	one, other := draw("^TestDrawOne$", "COPPICE_SEED=random"), draw("^TestDrawOne$", "COPPICE_SEED=random")
	if one == other {
		t.Errorf("two processes with any seed draw the same: %s", one)
	}
	if out, want := run(only("^TestDrawOne$"), "COPPICE_SEED=x"), `COPPICE_SEED="x": it is a number, or random`; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
}

func TestDrawAtOnce(t *testing.T) {
	for i := range 200 {
		t.Run(strconv.Itoa(i), printDrawn)
	}
}

// Parallel tests take turns at the one seed that rapid has.
func TestParallelSeeds(t *testing.T) {
	t.Parallel()
	draw := func(parallel string) []string {
		all := drawn.FindAllString(run(append(only("^TestDrawAtOnce$"), "-test.parallel="+parallel)), -1)
		slices.Sort(all)
		return all
	}
	alone, together := draw("1"), draw("100")
	if len(alone) != 200 || !slices.Equal(alone, together) {
		t.Errorf("%d tests drew one by one, %d in parallel, and not the same", len(alone), len(together))
	}
}

func TestFailInCheck(t *testing.T) {
	if isChild() {
		var first sync.Once // what follows is the search for a smaller case
		soak.Check(t, func(rt *rapid.T) {
			n := rapid.Uint64().Draw(rt, "n")
			first.Do(func() { t.Logf("found %d", n) })
			rt.Fatal("out of luck")
		})
	}
}

func TestFailInRand(t *testing.T) {
	if isChild() {
		t.Run("it's in here", func(t *testing.T) { t.Errorf("found %d", soak.Rand(t).Uint64()) })
	}
}

func TestPanic(t *testing.T) {
	if isChild() {
		panic(fmt.Sprintf("found %d", soak.Rand(t).Uint64()))
	}
}

var (
	found   = regexp.MustCompile(`found \d+`)
	command = regexp.MustCompile(`to repeat it: ((?:COPPICE_[A-Z_]+=\d )*)(COPPICE_SEED=\d+) go test (?:-short )?(?:-race )?(\S+) -run '(.*)'\n`)
)

// What fails prints the command that repeats it.
func TestRepeat(t *testing.T) {
	t.Parallel()
	for _, test := range []string{"TestFailInCheck", "TestFailInRand"} {
		for _, env := range [][]string{{"COPPICE_SOAK=2", "COPPICE_TEST_FULL=1", "COPPICE_SEED=random"}, nil} {
			out := run(only("^"+test+"$"), env...)
			said := command.FindStringSubmatch(out)
			if said == nil {
				t.Errorf("%s %v: no command in\n%s", test, env, out)
				continue
			}
			if want := "github.com/coppice-dev/coppice/internal/soak"; said[3] != want {
				t.Errorf("%s %v: the command is for %s, want %s", test, env, said[3], want)
			}
			if set := strings.Fields(said[1]); len(env) > 0 && !slices.Equal(set, env[:2]) {
				t.Errorf("%s %v: the command sets %v", test, env, set)
			}
			want := found.FindString(out)
			if again := run(only(said[4]), said[2]); want == "" || found.FindString(again) != want {
				t.Errorf("%s %v: %q is not found again with %s:\n%s", test, env, want, said[0], again)
			}
		}
	}
}

// A process that dies has said what its seed was.
func TestRepeatAfterPanic(t *testing.T) {
	t.Parallel()
	out := run(only("^TestPanic$"), "COPPICE_SEED=random")
	want := found.FindString(out)
	seed, _, _ := strings.Cut(out[strings.Index(out, "COPPICE_SEED="):], " ")
	if again := run(only("^TestPanic$"), seed); want == "" || found.FindString(again) != want {
		t.Errorf("%q is not found again with %s:\n%s", want, seed, again)
	}
}

// rapid leaves no files that a later run would read.
func TestNoFilesOfFailures(t *testing.T) {
	t.Parallel()
	run(only("^TestFailInCheck$"))
	if _, err := os.Stat("testdata"); !os.IsNotExist(err) {
		t.Errorf("testdata is there: %v", err)
	}
}
