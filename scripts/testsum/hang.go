package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxStack = 60  // lines of one goroutine
	maxHang  = 240 // lines for one test that hangs
)

var (
	timedOut = regexp.MustCompile(`panic: test timed out after `)
	running  = regexp.MustCompile(`^\t\t([^\s/]+)\S* \(`) // in the list below that, without the names of subtests
	begins   = regexp.MustCompile(`^goroutine (\d+) .*\[`)
	started  = regexp.MustCompile(`^created by .* in goroutine (\d+)\s*$`)
)

// goroutine is one of those that the runtime lists at the end.
type goroutine struct {
	id, by string // its number, and that of the goroutine that started it
	lines  []string
}

// hangs shortens what a package said if its time was up: of the stacks of all goroutines it
// keeps those of the tests that were running and of what these started. Anything else comes
// back as it is.
func hangs(output []string) []string {
	at := slices.IndexFunc(output, timedOut.MatchString)
	if at < 0 {
		return output
	}
	list := slices.IndexFunc(output[at:], begins.MatchString)
	if list < 0 {
		return output
	}
	list += at
	all, rest := goroutines(output[list:])
	short := slices.Clone(output[:list])
	var tests []string
	for _, line := range output[at:list] {
		if m := running.FindStringSubmatch(line); m != nil && !slices.Contains(tests, m[1]) {
			tests = append(tests, m[1])
			short = append(short, stacksOf(m[1], all)...)
		}
	}
	return append(append(short, fmt.Sprintf("%d goroutines in all\n", len(all))), rest...)
}

// goroutines reads the list of the runtime, and returns what follows it.
func goroutines(lines []string) (all []goroutine, rest []string) {
	for i, line := range lines {
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "exit status") {
			return all, lines[i:]
		}
		if m := begins.FindStringSubmatch(line); m != nil {
			all = append(all, goroutine{id: m[1]})
		}
		last := &all[len(all)-1]
		if m := started.FindStringSubmatch(line); m != nil {
			last.by = m[1]
		}
		last.lines = append(last.lines, line)
	}
	return all, nil
}

// stacksOf returns the stack of a test, and then those of the goroutines that it started.
func stacksOf(test string, all []goroutine) []string {
	frame := regexp.MustCompile(`^\S+\.` + regexp.QuoteMeta(test) + `(\.\S+)?\(`)
	var of []string // the goroutines that belong to it
	lines := []string{"--- it hangs: " + test + "\n"}
	add := func(g goroutine) {
		of = append(of, g.id)
		lines = append(lines, cut(g.lines, maxStack)...)
	}
	for _, g := range all {
		if slices.ContainsFunc(g.lines, frame.MatchString) {
			add(g)
		}
	}
	for more := true; more; {
		more = false
		for _, g := range all {
			if slices.Contains(of, g.by) && !slices.Contains(of, g.id) {
				add(g)
				more = true
			}
		}
	}
	return cut(lines, maxHang)
}

// cut returns the first n lines, and says how many are left out.
func cut(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clone(lines[:n]), fmt.Sprintf("… %d more lines\n\n", len(lines)-n))
}
