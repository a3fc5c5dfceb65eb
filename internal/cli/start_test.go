package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// What a package prepares when the program starts, every command waits for. A table is
// small; an expression with classes of letters takes megabytes and milliseconds.
func TestCommandsStartLight(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("coppice", "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inits := regexp.MustCompile(`(?m)^init (github\.com/coppice-dev/coppice/\S+) .* (\d+) bytes`).FindAllSubmatch(out, -1)
	if len(inits) == 0 {
		t.Fatalf("no packages in:\n%s", out)
	}
	for _, init := range inits {
		if bytes, _ := strconv.Atoi(string(init[2])); bytes > 128<<10 {
			t.Errorf("%s allocates %d bytes before any command runs; prepare that when it is needed", init[1], bytes)
		}
	}
}
