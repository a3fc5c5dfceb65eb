package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// skips are the tests that did not run.
type skips struct {
	permitted map[string]bool // by skipName; nil if every test may be skipped
	needs     map[string]int  // how many tests need a thing that make full brings
	others    int             // skipped for another reason
	forbidden int             // not permitted
}

// lacking is how a test says that it needs more than Go: see internal/needs.
var lacking = regexp.MustCompile(`\bneeds (.+): make full$`)

// readSkips reads the list of the tests that may be skipped where everything runs: a package
// and a test a line, and what follows a # says why.
func readSkips(r io.Reader) (map[string]bool, error) {
	permitted := make(map[string]bool)
	for in := bufio.NewScanner(r); ; {
		if !in.Scan() {
			return permitted, in.Err()
		}
		line, _, _ := strings.Cut(in.Text(), "#")
		switch words := strings.Fields(line); len(words) {
		case 0:
		case 2:
			permitted[skipName(words[0], words[1])] = true
		default:
			return nil, fmt.Errorf("%q is not a package and a test", in.Text())
		}
	}
}

// skipName is what the list calls a test. It stands for all its subtests.
func skipName(pkg, test string) string {
	test, _, _ = strings.Cut(test, "/")
	return strings.TrimPrefix(pkg, "github.com/coppice-dev/coppice/") + " " + test
}

// add counts a skipped test. It reports whether that is a failure.
func (s *skips) add(pkg string, c *test) (forbidden bool) {
	m := lacking.FindStringSubmatch(c.reason())
	switch {
	case s.permitted != nil && !s.permitted[skipName(pkg, c.name)]:
		s.forbidden++
		return true
	case m != nil:
		s.needs[m[1]]++
	default:
		s.others++
	}
	return false
}

// String says in one line what was skipped, and which target runs it. It is "" if all tests ran.
func (s *skips) String() string {
	var said []string
	things := slices.Collect(maps.Keys(s.needs))
	slices.SortFunc(things, func(a, b string) int { return cmp.Or(cmp.Compare(s.needs[b], s.needs[a]), cmp.Compare(a, b)) })
	for _, thing := range things {
		said = append(said, fmt.Sprintf("%d need %s", s.needs[thing], thing))
	}
	var line string
	if len(said) > 0 {
		line = "make full runs what was skipped: " + strings.Join(said, ", ")
	}
	if s.others > 0 {
		line = strings.TrimPrefix(line+fmt.Sprintf("; %d cannot run on this machine, as said above", s.others), "; ")
	}
	return line
}
