// Command covergate prints the statement coverage of packages from a profile of
// go test -coverprofile, and fails if one of them is below the gate.
//
// The profile may come from the tests of many packages: a statement is covered
// if any of them reached it.
//
// Usage:
//
//	covergate [-min percent] profile package...
//
// Packages are given relative to the module, as in store/file. One that cannot reach the gate
// has its own: cmd/coppice/internal/cli=85.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

const module = "github.com/coppice-dev/coppice"

func main() {
	gate := flag.Float64("min", 90, "least coverage in `percent`")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := check(os.Stdout, flag.Arg(0), *gate, flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "covergate:", err)
		os.Exit(1)
	}
}

// check prints the coverage of each package, and returns an error that names
// those below the gate.
func check(out io.Writer, profile string, gate float64, packages []string) error {
	f, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer f.Close()
	covered, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	var low []string
	for _, given := range packages {
		name, own, has := strings.Cut(given, "=")
		least := gate
		if has {
			if least, err = strconv.ParseFloat(own, 64); err != nil {
				return fmt.Errorf("%s: the gate of a package must be a number", given)
			}
		}
		c := covered[path.Join(module, name)]
		fmt.Fprintf(out, "%6.1f%%  %s\n", c.percent(), name)
		if c.percent() < least {
			low = append(low, fmt.Sprintf("%s is below %g%%", name, least))
		}
	}
	if len(low) > 0 {
		return errors.New(strings.Join(low, ", "))
	}
	return nil
}

// cover counts the statements of a package.
type cover struct{ reached, all int }

// percent is 0 for a package without statements: a gate on it is a mistake.
func (c cover) percent() float64 {
	if c.all == 0 {
		return 0
	}
	return 100 * float64(c.reached) / float64(c.all)
}

// read sums up a profile by package. Its lines are
//
//	import/path/file.go:12.34,15.2 statements count
//
// and a block has one for every test binary that holds it.
func read(r io.Reader) (map[string]cover, error) {
	type block struct{ statements, count int }
	blocks := map[string]block{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		var where string
		var b block
		if _, err := fmt.Sscan(line, &where, &b.statements, &b.count); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		b.count += blocks[where].count
		blocks[where] = b
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	sums := map[string]cover{}
	for where, b := range blocks {
		file, _, _ := strings.Cut(where, ":")
		c := sums[path.Dir(file)]
		c.all += b.statements
		if b.count > 0 {
			c.reached += b.statements
		}
		sums[path.Dir(file)] = c
	}
	return sums, nil
}
