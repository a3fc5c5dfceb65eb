// Command api keeps the listing of the exported API, api/*.txt: one line for every
// name that programs which import Coppice can use. It fails if the code and the
// listing differ, so that a change of the API is a change of a file that a reviewer
// sees.
//
// It only parses the code, and shows types as they are written there. Files for
// other systems than Linux are not read.
//
// Usage:
//
//	api [-update]
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	update := flag.Bool("update", false, "write the listing")
	flag.Parse()
	if err := run(os.Stdout, ".", *update); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

var errDiffers = errors.New("the exported API is not that of api/*.txt; make api-update accepts it")

// run compares the code of a repository with its listing, after writing that if told to.
func run(out io.Writer, root string, update bool) error {
	names, err := exported(root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "api")
	if update {
		if err := write(dir, names); err != nil {
			return err
		}
	}
	listed, err := read(dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, n := range names {
		lines = append(lines, n.String())
	}
	slices.Sort(lines)
	if differ(out, listed, lines) {
		return errDiffers
	}
	fmt.Fprintln(out, summary(names))
	return nil
}

// read returns the lines of all listings, in order.
func read(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(lines)
	return lines, nil
}

// write replaces the listings: a file for each directory at the top.
func write(dir string, names []name) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string][]string{}
	for _, n := range names {
		top, _, _ := strings.Cut(n.pkg, "/")
		files[top] = append(files[top], n.String()+"\n")
	}
	for top, lines := range files {
		slices.Sort(lines)
		if err := os.WriteFile(filepath.Join(dir, top+".txt"), []byte(strings.Join(lines, "")), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// differ prints the lines that only one of two sorted lists has, and tells whether
// there are any.
func differ(out io.Writer, before, after []string) bool {
	found := false
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0] < after[0]:
			fmt.Fprintln(out, "-"+before[0])
			before, found = before[1:], true
		case len(before) == 0 || after[0] < before[0]:
			fmt.Fprintln(out, "+"+after[0])
			after, found = after[1:], true
		default:
			before, after = before[1:], after[1:]
		}
	}
	return found
}

// summary says how many names there are, and of what kinds.
func summary(names []name) string {
	packages, kinds := map[string]bool{}, map[string]int{}
	for _, n := range names {
		packages[n.pkg] = true
		kinds[n.kind]++
	}
	return fmt.Sprintf("%d exported names in %d packages: %d types with %d fields and %d methods, %d functions, %d constants, %d variables",
		len(names), len(packages), kinds["type"], kinds["field"], kinds["method"], kinds["func"], kinds["const"], kinds["var"])
}
