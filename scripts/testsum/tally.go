package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// tally follows the events of one go test run.
type tally struct {
	out   io.Writer
	quiet bool
	pkgs  map[string]*pkg
	times []pkgTime // of the packages that are done
	skips skips

	passed, failed, skipped int
}

type pkgTime struct {
	name    string
	seconds float64
}

// pkg is a package whose tests run.
type pkg struct {
	tests  []*test          // in the order they began
	latest map[string]*test // by name; -count=2 runs a name twice
	output []string         // outside any test
	alarm  *regexp.Regexp   // while the runtime reports something: what ends it
}

// test is a test or a subtest.
type test struct {
	name      string
	result    string // pass, fail, skip; empty while it runs
	output    []string
	parent    *test
	hasSubs   bool
	subFailed bool
}

func newTally(out io.Writer, quiet bool) *tally {
	return &tally{out: out, quiet: quiet, pkgs: map[string]*pkg{}, skips: skips{needs: map[string]int{}}}
}

// line takes one line of go test -json. What is no event is printed as it is.
func (t *tally) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(t.out, "%s\n", strings.TrimSuffix(string(line), "\n"))
		return
	}
	t.event(e)
}

func (t *tally) event(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(t.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := t.pkgs[e.Package]
	if p == nil {
		p = &pkg{latest: map[string]*test{}}
		t.pkgs[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.print(e.Test, e.Output)
	case e.Action == "run":
		p.begin(e.Test)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		if e.Test != "" {
			p.end(e.Test, e.Action)
			return
		}
		delete(t.pkgs, e.Package)
		t.count(e.Package, p, e.Action, e.Elapsed)
	}
}

func (p *pkg) begin(name string) *test {
	c := &test{name: name}
	for up := name; ; {
		i := strings.LastIndexByte(up, '/')
		if i < 0 {
			break
		}
		up = up[:i]
		// A subtest's own name may contain slashes: the parent is the
		// nearest prefix that is a test.
		if c.parent = p.latest[up]; c.parent != nil {
			c.parent.hasSubs = true
			break
		}
	}
	p.tests = append(p.tests, c)
	p.latest[name] = c
	return c
}

func (p *pkg) end(name, result string) {
	c := p.latest[name]
	if c == nil {
		c = p.begin(name)
	}
	c.result = result
	switch result {
	case "pass":
		c.output = nil
	case "fail":
		for up := c.parent; up != nil; up = up.parent {
			up.subFailed = true
		}
	}
}

// progress matches the lines by which the testing package says which test it
// is at; the events tell it already.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

// alarms are how the runtime begins to report something, and how that ends. Its events have
// the name of the test that was named last, which may well pass.
var alarms = []struct{ begin, end *regexp.Regexp }{
	{regexp.MustCompile(`^WARNING: DATA RACE`), regexp.MustCompile(`^={10}`)},
	{regexp.MustCompile(`^(panic: |fatal error: |SIGQUIT: |\*\*\* Test killed)|panic: test timed out`), regexp.MustCompile(`^FAIL\t`)},
}

func (p *pkg) print(name, s string) {
	if progress.MatchString(s) {
		return
	}
	for _, a := range alarms {
		if p.alarm == nil && a.begin.MatchString(s) {
			p.alarm = a.end
		}
	}
	if p.alarm != nil {
		p.output = append(p.output, s)
		if p.alarm.MatchString(s) {
			p.alarm = nil
		}
		return
	}
	if c := p.latest[name]; c != nil {
		c.output = append(c.output, s)
		return
	}
	p.output = append(p.output, s)
}

// count adds a package that is done to the totals and prints its line, and on
// failure what it said.
func (t *tally) count(name string, p *pkg, result string, seconds float64) {
	var passed, failed, skipped int
	var left []*test // skipped, and each for a reason of its own
	for _, c := range p.tests {
		if c.result == "" { // cut short by a panic or a timeout
			p.end(c.name, "fail")
		}
	}
	for _, c := range p.tests {
		switch {
		case c.result == "fail" && !c.subFailed:
			failed++
		case c.hasSubs:
		case c.result == "pass":
			passed++
		case c.result == "skip":
			skipped++
			if forbidden := t.skips.add(name, c); forbidden || !lacking.MatchString(c.reason()) {
				left = append(left, c)
			}
		}
	}
	if result == "fail" && failed == 0 {
		failed++
	}
	t.passed += passed
	t.failed += failed
	t.skipped += skipped
	t.times = append(t.times, pkgTime{name, seconds})

	if failed > 0 {
		fmt.Fprintf(t.out, "FAIL  %s  %d passed, %d failed  %.1fs\n", name, passed, failed, seconds)
		t.explain(p)
		return
	}
	if !t.quiet && len(p.tests) > 0 {
		fmt.Fprintf(t.out, "ok    %s  %d passed  %.1fs\n", name, passed, seconds)
	}
	if t.quiet && t.skips.permitted == nil {
		return
	}
	for _, c := range left {
		fmt.Fprintf(t.out, "      skipped %s %s: %s\n", name, c.name, c.reason())
	}
}

// explain prints the output of the tests that failed, and of the package. Of a package whose
// time was up it names the tests that were running.
func (t *tally) explain(p *pkg) {
	for _, c := range p.tests {
		if c.result == "fail" {
			fmt.Fprint(t.out, strings.Join(c.output, ""))
		}
	}
	fmt.Fprint(t.out, strings.Join(hangs(p.output), ""))
}

// reason returns the line in which a skipped test said why.
func (c *test) reason() string {
	for _, s := range c.output {
		if s = strings.TrimSpace(s); !strings.HasPrefix(s, "--- ") {
			return s
		}
	}
	return "no reason given"
}

// printSlowest prints the n packages whose tests took longest, if there are more than n.
// Packages run side by side, so the times add up to more than the whole.
func (t *tally) printSlowest(n int) {
	if len(t.times) <= n {
		return
	}
	slices.SortStableFunc(t.times, func(a, b pkgTime) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(t.out, "slowest:")
	for _, p := range t.times[:n] {
		fmt.Fprintf(t.out, "%7.1fs  %s\n", p.seconds, p.name)
	}
}

var (
	errFailed = errors.New("there were failures")
	errNone   = errors.New("no test ran")
)

// finish takes how go test itself ended, prints the closing line and returns an
// error unless tests ran and all is well.
func (t *tally) finish(exit error) error {
	for name, p := range t.pkgs { // go test died before it could say
		t.count(name, p, "fail", 0)
	}
	if exit != nil && t.failed == 0 {
		t.failed = 1
	}
	if !t.quiet {
		t.printSlowest(10)
	}
	if n := t.skips.forbidden; n > 0 {
		t.failed += n
		fmt.Fprintln(t.out, "everything should run here: give the tests what they need, or add them to scripts/skips.txt and say why")
	}
	if line := t.skips.String(); line != "" && !t.quiet {
		fmt.Fprintln(t.out, line)
	}
	if !t.quiet || t.failed > 0 {
		fmt.Fprintf(t.out, "%d passed, %d failed", t.passed, t.failed)
		if t.skipped > 0 {
			fmt.Fprintf(t.out, ", %d skipped", t.skipped)
		}
		fmt.Fprintln(t.out)
	}
	switch {
	case t.failed > 0:
		return errFailed
	case t.passed == 0:
		return errNone
	}
	return nil
}
