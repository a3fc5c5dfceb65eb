package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only the product counts: no tests, no suites, no scripts.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go":            "// Package a is an example.\npackage a\n\nvar X = 1 // one\n\nfunc f() {" + strings.Repeat("\n", 70) + "}\n",
		"a/b.go":            "package a\n\nfunc g() {\n}\n",
		"a/a_test.go":       "package a\n",
		"a/atest/suite.go":  "package atest\n",
		"scripts/s/main.go": "package main\n",
		"a/testdata/x.go":   "this is not Go\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"80 lines in 2 files and 1 packages; 1.2 % comments", "2 functions: ", "the longest 71", "a/a.go:6 f has 71 lines"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if err := run(&out, t.TempDir()); err == nil {
		t.Error("an empty directory has a size")
	}
}
