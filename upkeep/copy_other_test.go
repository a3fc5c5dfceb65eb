//go:build !unix

package upkeep_test

// inDatabase is nil: there is no server for tests.
var inDatabase opener
