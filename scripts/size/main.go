// Command size says how large the product is, so that everyone who runs the gate sees it
// move: its lines and packages, how long its functions are, how much of it is comments.
//
// The product is what people run and import. Tests, suites for tests, benchmarks, scripts,
// examples and modules of their own do not count.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// notProduct matches the paths of Go files that do not count.
var notProduct = regexp.MustCompile(`_test\.go$|(^|/)testdata/|test/|^(bench|interop|scripts|adapter|examples|tools|node_modules)/|^\.`)

// maxFunction is how many lines a function should have at most, unless it is a table.
const maxFunction = 60

// size is what was counted.
type size struct {
	lines, comments, files int
	packages               map[string]bool
	functions              []int    // the length of each
	long                   []string // those over maxFunction
}

func run(out io.Writer, root string) error {
	s := &size{packages: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		if name := filepath.ToSlash(path); err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || notProduct.MatchString(name) {
			return err
		}
		return s.add(filepath.Join(root, path), path)
	})
	if err != nil {
		return err
	}
	if s.files == 0 {
		return errors.New("there are no Go files here: run it in the root of the repository")
	}
	slices.Sort(s.functions)
	n := len(s.functions)
	fmt.Fprintf(out, "%d lines in %d files and %d packages; %.1f %% comments\n", s.lines, s.files, len(s.packages), 100*float64(s.comments)/float64(s.lines))
	if n > 0 {
		fmt.Fprintf(out, "%d functions: half have at most %d lines, nine in ten at most %d, the longest %d\n", n, s.functions[n/2], s.functions[n*9/10], s.functions[n-1])
	}
	slices.Sort(s.long)
	for _, f := range s.long {
		fmt.Fprintln(out, " ", f)
	}
	return nil
}

// add counts a file.
func (s *size) add(path, name string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		return err
	}
	s.files++
	s.packages[filepath.Dir(name)] = true
	s.lines += bytes.Count(text, []byte("\n"))
	s.comments += commentLines(text)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		begin, end := files.Position(fn.Pos()), files.Position(fn.End())
		length := end.Line - begin.Line + 1
		s.functions = append(s.functions, length)
		if length > maxFunction {
			s.long = append(s.long, fmt.Sprintf("%s:%d %s has %d lines", filepath.ToSlash(name), begin.Line, fn.Name.Name, length))
		}
	}
	return nil
}

// commentLines counts the lines that have a comment and nothing else.
func commentLines(text []byte) (n int) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	code := 0 // the last line with code
	for {
		pos, tok, lit := s.Scan()
		line := file.Line(pos)
		switch {
		case tok == token.EOF:
			return n
		case tok != token.COMMENT:
			if tok != token.SEMICOLON || lit == ";" { // not one that the scanner puts at the end of a line
				code = line + strings.Count(lit, "\n")
			}
		case line > code:
			n += 1 + strings.Count(lit, "\n")
		}
	}
}
