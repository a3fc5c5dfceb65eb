package cli

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// elsewhereScripts run on a home that a server has, too. Many others would not: they look into
// its directory or change its settings.
var elsewhereScripts = []string{
	"append", "branch", "chat_tools", "compact", "compare", "export_several", "export_to", "fork", "given", "images", "import",
	"key", "merge", "names", "organise", "search", "tree",
}

const elsewhereToken = "cpk_elsewhere"

// TestScriptsElsewhere runs scripts on a home that a server has: some that run on a directory as
// well, and those in testdata/elsewhere.
func TestScriptsElsewhere(t *testing.T) {
	files, err := filepath.Glob("testdata/elsewhere/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range elsewhereScripts {
		files = append(files, filepath.Join("testdata", "script", name+".txtar"))
	}
	fixtures, err := filepath.Abs("testdata/sessions")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"terminal": onScreen},
		Setup: func(env *testscript.Env) error {
			address, stop, err := giveHome(filepath.Join(env.WorkDir, "sessions"))
			if err != nil {
				return err
			}
			env.Defer(stop)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("COPPICE_HOME", address)
			env.Setenv(home.TokenVariable, elsewhereToken)
			env.Setenv("NO_COLOR", "1")
			env.Setenv("FIXTURES", fixtures)
			env.Setenv("TZ", "UTC")
			return nil
		},
	})
}

// giveHome gives the home in a directory to those who have no wrong token.
func giveHome(dir string) (address string, stop func(), err error) {
	settings, err := home.LoadSettings(func(string) string { return "" })
	if err != nil {
		return "", nil, err
	}
	h, err := home.Open(context.Background(), dir, &home.Options{Create: true, Settings: settings})
	if err != nil {
		return "", nil, err
	}
	s, err := server.New(server.Options{Home: h, Authorize: func(_ context.Context, token string) (*server.Grant, error) {
		if token != "" && token != elsewhereToken { // the commands of a chat do not get it
			return nil, server.ErrUnauthorized
		}
		return &server.Grant{Name: "script", Access: home.Admin}, nil
	}})
	if err != nil {
		return "", nil, err
	}
	web := httptest.NewServer(s)
	return web.URL, func() {
		web.CloseClientConnections()
		_ = s.Close()
		web.Close()
		_ = h.Close()
	}, nil
}
