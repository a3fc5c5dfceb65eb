// Package format has a package below it for each program whose files Coppice reads, and no
// code of its own.
//
// The tests of all of them, and of their toolbox in transcript/internal, are here, in one
// package, because each test binary would link SQLite again. The files, tests and fixtures
// of a format carry its name: codex_test.go has TestCodexStandard, which reads
// testdata/codex. To run the tests of one format:
//
//	go test ./transcript/format -run Codex
//
// A new format needs its package, a line in package all, fixtures, a test that passes
// transcripttest.Standard, and a fuzz target. With COPPICE_UPDATE set, the tests write the
// outlines that they otherwise compare.
package format
