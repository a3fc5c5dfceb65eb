// Package needs marks the tests that need more than Go: a database server, a browser, a
// terminal. Plain go test and make test skip them, so that both need nothing but Go and take the
// same time everywhere. make full installs what is missing and sets COPPICE_TEST_FULL; then they
// run, and fail if something is missing all the same.
package needs

import (
	"os"
	"testing"
)

// Full is the variable that has all tests run.
const Full = "COPPICE_TEST_FULL"

// The things that tests need.
const (
	PostgreSQL = "PostgreSQL"
	PgBouncer  = "PgBouncer"
	S3         = "an S3 server"
	Faketime   = "faketime"
	Chromium   = "Chromium"
	Tmux       = "tmux"
	Root       = "root"
)

// This skips a test that needs something, unless all tests should run. scripts/testsum counts
// the reasons by what is needed.
func This(t testing.TB, thing string) {
	t.Helper()
	if os.Getenv(Full) == "" {
		t.Skip("needs " + thing + ": make full")
	}
}
