package cli

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// update rewrites the golden files with what the program prints now.
var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"coppice":          func() { os.Exit(Main()) },
		"coppice-stubborn": stubborn,
		"garden-mcp":       gardener,
	})
}

// TestScripts runs the scripts in testdata/script, one topic each, with the real
// program on real files.
func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("testdata/sessions")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"terminal": onScreen},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("COPPICE_HOME", env.WorkDir+"/sessions")
			env.Setenv("NO_COLOR", "1")
			env.Setenv("FIXTURES", fixtures)
			env.Setenv("TZ", "UTC")
			return nil
		},
	})
}
