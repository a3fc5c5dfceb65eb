//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// TestScriptsOnPostgres runs scripts that do not look into a directory on a home in a database.
func TestScriptsOnPostgres(t *testing.T) {
	needs.This(t, needs.PostgreSQL)
	runScripts(t, func(env *testscript.Env) string { return inDatabase(t, env.WorkDir+"/sessions") },
		"branch", "chat_tools", "compact", "export_redact", "fork", "images", "import_ways", "ipc", "limits",
		"mcp", "merge", "names", "organise", "resume", "search", "serve", "tasks")
}

// TestMigrate is the script of what only a home in a database has.
func TestMigrate(t *testing.T) {
	needs.This(t, needs.PostgreSQL)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/postgres",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("COPPICE_HOME", postgrestest.Empty(t)+"&password=k9Zq4vXw7Lp2")
			env.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}

// inDatabase returns the URL of a home in a database that has the sessions of a directory.
func inDatabase(t *testing.T, dir string) string {
	where := postgrestest.URL(t)
	st, err := postgres.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	files, _ := filepath.Glob(dir + "/*.jsonl")
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if _, err := st.Create(t.Context(), name, store.Lines(lines...)); err != nil {
			t.Fatal(err)
		}
	}
	return where
}
