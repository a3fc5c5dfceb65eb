package repo_test

import "testing"

// inTop runs a test in the top directory of the repository. It must be in the test, and not in
// TestMain: only from then on does go test note which directory a test is in and what it reads there.
// Otherwise it would show an old result, although the files have changed.
func inTop(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}
