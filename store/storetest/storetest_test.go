package storetest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/storetest"
)

func newMemory() store.Store { return memory.New(&memory.Options{MaxLine: 8 << 20}) }

// The wrappers of the broken stores are themselves right: what the suite finds
// is what was broken on purpose.
func TestWrappedStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return wrap(func(*parts) {}) })
}

// brokenEnv tells a child process which store to break.
const brokenEnv = "STORETEST_BROKEN"

// TestBrokenStore is what the children of TestSuiteCanFail run.
func TestBrokenStore(t *testing.T) {
	breakIt := broken[os.Getenv(brokenEnv)]
	if breakIt == nil {
		return // this is not a child
	}
	storetest.SetPatience(300 * time.Millisecond)
	storetest.Run(t, func(*testing.T) store.Store { return wrap(breakIt) })
}

// A suite that passes everything proves nothing: each store that is broken in
// one way must fail the check that is named after it.
func TestSuiteCanFail(t *testing.T) {
	t.Parallel()
	for what := range broken {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			wantFails(t, "TestBrokenStore", what)
		})
	}
}

// wantFails runs a test in a child process on a store that is broken, and wants
// the check to fail that the store is named after.
func wantFails(t *testing.T, test, what string) {
	t.Helper()
	check, _, ok := strings.Cut(what, " ")
	if !ok {
		t.Fatal("want the check, a space, and what is broken")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := "^" + test + "$/^" + strings.ReplaceAll(check, "/", "$/^") + "$"
	var out []byte
	for try := 0; try < 10 && (try == 0 || err == nil); try++ { // where goroutines must meet, they may miss each other
		child := exec.CommandContext(t.Context(), self, "-test.timeout=10m", "-test.run="+path)
		child.Env = append(os.Environ(), brokenEnv+"="+what)
		out, err = child.CombinedOutput()
	}
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatalf("the suite ended with %v, want it to fail:\n%s", err, out)
	}
	if want := "--- FAIL: " + test + "/" + check + " "; !strings.Contains(string(out), want) {
		t.Fatalf("the suite failed without %q:\n%s", want, out)
	}
}
