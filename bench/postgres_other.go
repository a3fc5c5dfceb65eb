//go:build !unix

package main

// databases are none: the tests start a server only on Unix.
func databases() []work { return nil }
