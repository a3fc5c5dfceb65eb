// Command testsum runs go test and says what happened: a line for each package,
// the output of what failed, and at the end, alone on its line,
//
//	N passed, M failed, K skipped
//
// where the part on skipped tests is left out if there are none. It counts
// tests that have no subtests. A test that has some counts only if it failed and
// none of them did. A package that failed outside its tests counts as one
// failure: it does not build, or it panicked, or it was killed. The line before it says what the
// skipped tests need.
//
// Usage:
//
//	testsum [-quiet] [-skips list] -- [arguments of go test]
//
// With -quiet it prints only what failed. With -skips, a test that is skipped and not in the
// list is a failure.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	quiet := flag.Bool("quiet", false, "print only what failed")
	list := flag.String("skips", "", "file that lists the tests that may be skipped")
	flag.Parse()
	t := newTally(os.Stdout, *quiet)
	err := permit(t, *list)
	if err == nil {
		err = run(t, flag.Args())
	}
	if err == nil {
		return
	}
	if !errors.Is(err, errFailed) { // the closing line has said that
		fmt.Fprintln(os.Stderr, "testsum:", err)
	}
	os.Exit(1)
}

// permit reads the list of the tests that may be skipped.
func permit(t *tally, list string) error {
	if list == "" {
		return nil
	}
	f, err := os.Open(list)
	if err != nil {
		return err
	}
	defer f.Close()
	t.skips.permitted, err = readSkips(f)
	return err
}

// run runs go test with the arguments and feeds its events to t.
func run(t *tally, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(t, out); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	return t.finish(cmd.Wait())
}

// read feeds the lines of r to t.
func read(t *tally, r io.Reader) error {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
