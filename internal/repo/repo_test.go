package repo_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the top directory of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
