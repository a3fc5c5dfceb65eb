package cli

import (
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/rogpeppe/go-internal/testscript"
)

// update rewrites the golden files with what the program prints now.
var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){
		"coppice":          func() { os.Exit(Main()) },
		"coppice-stubborn": stubborn,
		"garden-mcp":       gardener,
	})
}

// watched is the PATH whose coppice is this test binary. Under the race detector that
// takes several times as long to start and to work, and the tests start hundreds, so
// there is another one first in PATH, which is built without it. Tests of commands with
// goroutines of their own start the watched one.
var watched string

// withProgram runs the tests with the program in PATH.
type withProgram struct{ *testing.M }

func (m withProgram) Run() int {
	watched = os.Getenv("PATH") // as testscript.Main has set it
	if !raced {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("", "coppice-cli")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "github.com/coppice-dev/coppice/cmd/coppice")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+watched)
	return m.M.Run()
}

// watchedScripts are those whose commands do several things at once.
var watchedScripts = []string{"auto", "chat_tools", "import", "index"}

// TestScripts runs the scripts in testdata/script, one topic each, with the real
// program on real files.
func TestScripts(t *testing.T) {
	runScripts(t, func(env *testscript.Env) string { return env.WorkDir + "/sessions" })
}

// runScripts runs scripts, all if none is named, each with a home of its own.
func runScripts(t *testing.T, home func(*testscript.Env) string, names ...string) {
	fixtures, err := filepath.Abs("testdata/sessions")
	if err != nil {
		t.Fatal(err)
	}
	params := testscript.Params{
		UpdateScripts: *update,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"terminal": onScreen},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("COPPICE_HOME", home(env))
			env.Setenv("NO_COLOR", "1")
			env.Setenv("FIXTURES", fixtures)
			env.Setenv("TZ", "UTC")
			if slices.Contains(watchedScripts, strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")) {
				env.Setenv("PATH", watched)
			}
			return nil
		},
	}
	if len(names) == 0 {
		params.Dir = "testdata/script"
	}
	for _, name := range names {
		params.Files = append(params.Files, filepath.Join("testdata/script", name+".txtar"))
	}
	testscript.Run(t, params)
}
