package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxInit is how many bytes a package may allocate before main runs. Every command pays
// for that, the one that a shell asks for completions too.
const maxInit = 20_000

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
	ours := 0
	for _, init := range inits {
		size, err := strconv.Atoi(init[2])
		if err != nil {
			t.Fatal(err)
		}
		// The tests of this package have patterns of their own.
		if !strings.HasPrefix(init[1], "github.com/coppice-dev/coppice") || strings.HasSuffix(init[1], "/internal/cli") {
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
	// The largest dependency that was ever linked for its convenience: it read 260 grammars.
	if strings.Contains(string(trace), "chroma") {
		t.Error("chroma is linked again, and reads its grammars at every start")
	}
}
