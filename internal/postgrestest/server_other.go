//go:build !unix

// Package postgrestest runs a real PostgreSQL server for tests, on Unix.
package postgrestest

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// Home returns where a new home is, for tests of what every kind of home can do.
func Home(t testing.TB) string {
	t.Helper()
	return cmp.Or(os.Getenv("COPPICE_TEST_HOME"), filepath.Join(t.TempDir(), "sessions"))
}

// URL fails the test: there is no server here.
func URL(t testing.TB) string {
	t.Helper()
	t.Fatal("tests start a PostgreSQL server on Unix only: unset COPPICE_TEST_HOME")
	return ""
}
