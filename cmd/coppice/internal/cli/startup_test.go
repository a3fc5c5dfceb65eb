package cli

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every command pays for what is made before it runs, the one that a shell asks for
// completions too.
const (
	maxInit     = 12_000    // bytes that a package of ours may allocate before main runs
	maxAllInits = 2_000_000 // bytes that all packages may, those of others too
	maxAssembly = 3_300     // allocations for the tree of commands
)

// Nothing of weight is made at the start of the program: parsers, patterns and tables wait
// until somebody needs them (sync.OnceValue). A clock would say the same, but not on a
// busy machine.
func TestLittleIsInitialisedAtStart(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("coppice", "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, trace)
	}
	inits := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`).FindAllStringSubmatch(string(trace), -1)
	linked, err := exec.Command("go", "list", "-deps", "github.com/coppice-dev/coppice/cmd/coppice").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(linked))
	ours, all := 0, 0
	for _, init := range inits {
		size, err := strconv.Atoi(init[2])
		if err != nil {
			t.Fatal(err)
		}
		// This is the binary of the tests, which has more packages than the program, and more
		// patterns in this one.
		if !slices.Contains(packages, init[1]) || strings.HasSuffix(init[1], "/internal/cli") {
			continue
		}
		all += size
		if !strings.HasPrefix(init[1], "github.com/coppice-dev/coppice") {
			continue
		}
		ours++
		if size > maxInit {
			t.Errorf("%s allocates %d bytes at the start of every command; make what it needs when it needs it", init[1], size)
		}
	}
	if ours == 0 {
		t.Fatalf("the trace has no package of ours:\n%s", trace)
	}
	if all > maxAllInits {
		t.Errorf("all packages together allocate %d bytes at the start of every command, more than %d; which one is new?", all, maxAllInits)
	}
	// The largest dependency that was ever linked for its convenience: it read 260 grammars.
	if strings.Contains(string(trace), "chroma") {
		t.Error("chroma is linked again, and reads its grammars at every start")
	}
}

// The tree of all commands is assembled for each of them, so it holds no lists and tables that
// only one of them needs.
func TestCommandsAreAssembledWithLittle(t *testing.T) {
	if n := testing.AllocsPerRun(3, func() { (&app{}).rootCommand() }); n > maxAssembly {
		t.Errorf("assembling the commands takes %.0f allocations, more than %d", n, maxAssembly)
	}
}
