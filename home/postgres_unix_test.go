//go:build unix

package home_test

import (
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
)

// postgresURL returns the URL of a new home in a database.
func postgresURL(t *testing.T) string {
	t.Helper()
	return postgrestest.URL(t)
}
