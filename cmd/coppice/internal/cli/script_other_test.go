//go:build !linux

package cli

import "github.com/rogpeppe/go-internal/testscript"

// onScreen needs a terminal, which only the tests on Linux make.
func onScreen(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there is no terminal: put [linux] before the command")
}
