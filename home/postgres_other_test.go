//go:build !unix

package home_test

import "testing"

// postgresURL returns the URL of a new home in a database.
func postgresURL(t *testing.T) string {
	t.Fatal("the tests start a database server only on Unix")
	return ""
}
