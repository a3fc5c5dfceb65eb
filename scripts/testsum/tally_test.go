package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	died := errors.New("exit status 1")
	tests := []struct {
		name   string
		events string

		permitted string // the list of the tests that may be skipped
		exit      error
		want      error
		close     string   // the closing line
		says      []string // what else the output must contain
		hides     []string // and what it must not
	}{
		{
			name: "leaves count, parents do not",
			events: `
				{"Action":"start","Package":"p"}
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestA/x/y"}
				{"Action":"output","Package":"p","Test":"TestA/x/y","Output":"chatter\n"}
				{"Action":"pass","Package":"p","Test":"TestA/x/y"}
				{"Action":"run","Package":"p","Test":"TestA/z"}
				{"Action":"pass","Package":"p","Test":"TestA/z"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Elapsed":1.5}`,
			close: "2 passed, 0 failed",
			says:  []string{"ok    p  2 passed  1.5s\n"},
			hides: []string{"chatter"},
		},
		{
			name: "a failure is shown",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
				{"Action":"run","Package":"p","Test":"TestA/x"}
				{"Action":"output","Package":"p","Test":"TestA/x","Output":"    a_test.go:7: got 1, want 2\n"}
				{"Action":"fail","Package":"p","Test":"TestA/x"}
				{"Action":"fail","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestB"}
				{"Action":"pass","Package":"p","Test":"TestB"}
				{"Action":"fail","Package":"p"}`,
			exit:  died,
			want:  errFailed,
			close: "1 passed, 1 failed",
			says:  []string{"FAIL  p", "got 1, want 2"},
			hides: []string{"=== RUN"},
		},
		{
			name: "a parent that fails by itself counts",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestA/x"}
				{"Action":"pass","Package":"p","Test":"TestA/x"}
				{"Action":"fail","Package":"p","Test":"TestA"}
				{"Action":"fail","Package":"p"}`,
			exit:  died,
			want:  errFailed,
			close: "1 passed, 1 failed",
		},
		{
			name: "a package that does not build is a failure",
			events: `
				{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1:1: undefined: X\n"}
				{"ImportPath":"p [p.test]","Action":"build-fail"}
				{"Action":"start","Package":"p"}
				{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
				{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			exit:  died,
			want:  errFailed,
			close: "0 passed, 1 failed",
			says:  []string{"undefined: X", "[build failed]"},
		},
		{
			name: "a test cut short is a failure",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}
				{"Action":"fail","Package":"p"}`,
			exit:  died,
			want:  errFailed,
			close: "0 passed, 1 failed",
			says:  []string{"panic: test timed out"},
		},
		{
			name: "a race and a panic are shown, whichever test they are filed under",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"==================\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"Write at 0x1\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"==================\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no such thing\n"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"goroutine 7 [running]:\n"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Output":"FAIL\tp\t0.01s\n"}
				{"Action":"fail","Package":"p"}`,
			exit:  died,
			want:  errFailed,
			close: "1 passed, 1 failed",
			says:  []string{"Write at 0x1\n", "panic: no such thing\ngoroutine 7 [running]:\nFAIL\tp"},
			hides: []string{"chatter"},
		},
		{
			name:   "go test dies in the middle of a package",
			events: `{"Action":"run","Package":"p","Test":"TestA"}`,
			exit:   died,
			want:   errFailed,
			close:  "0 passed, 1 failed",
			says:   []string{"FAIL  p"},
		},
		{
			name: "a name that runs twice counts twice",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p"}`,
			close: "2 passed, 0 failed",
		},
		{
			name: "skips are named",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: not on Windows\n"}
				{"Action":"skip","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestB"}
				{"Action":"pass","Package":"p","Test":"TestB"}
				{"Action":"pass","Package":"p"}
				{"Action":"skip","Package":"q"}`,
			close: "1 passed, 0 failed, 1 skipped",
			says:  []string{"skipped p TestA: a_test.go:3: not on Windows", "1 cannot run on this machine, as said above\n1 passed"},
			hides: []string{" q ", "make full"},
		},
		{
			name: "what is missing is said once",
			events: `
				{"Action":"run","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs an S3 server: make full\n"}
				{"Action":"skip","Package":"p","Test":"TestA"}
				{"Action":"run","Package":"p","Test":"TestB"}
				{"Action":"output","Package":"p","Test":"TestB","Output":"    a_test.go:4: needs tmux: make full\n"}
				{"Action":"skip","Package":"p","Test":"TestB"}
				{"Action":"run","Package":"p","Test":"TestC"}
				{"Action":"output","Package":"p","Test":"TestC","Output":"    a_test.go:5: needs tmux: make full\n"}
				{"Action":"skip","Package":"p","Test":"TestC"}
				{"Action":"run","Package":"p","Test":"TestD"}
				{"Action":"pass","Package":"p","Test":"TestD"}
				{"Action":"pass","Package":"p"}`,
			close: "1 passed, 0 failed, 3 skipped",
			says:  []string{"make full runs what was skipped: 2 need tmux, 1 need an S3 server\n1 passed"},
			hides: []string{"skipped p"},
		},
		{
			name:      "where everything should run, a new skip is a failure",
			permitted: "a/b TestA # it needs Windows\n",
			events: `
				{"Action":"run","Package":"github.com/coppice-dev/coppice/a/b","Test":"TestA/x"}
				{"Action":"skip","Package":"github.com/coppice-dev/coppice/a/b","Test":"TestA/x"}
				{"Action":"run","Package":"github.com/coppice-dev/coppice/a/b","Test":"TestB"}
				{"Action":"output","Package":"github.com/coppice-dev/coppice/a/b","Test":"TestB","Output":"    a_test.go:4: needs tmux: make full\n"}
				{"Action":"skip","Package":"github.com/coppice-dev/coppice/a/b","Test":"TestB"}
				{"Action":"pass","Package":"github.com/coppice-dev/coppice/a/b"}`,
			want:  errFailed,
			close: "0 passed, 1 failed, 2 skipped",
			says:  []string{"b TestB: a_test.go:4: needs tmux", "everything should run here"},
		},
		{
			name:  "nothing ran",
			want:  errNone,
			close: "0 passed, 0 failed",
		},
		{
			name:   "go test itself fails",
			events: `not an event`,
			exit:   died,
			want:   errFailed,
			close:  "0 passed, 1 failed",
			says:   []string{"not an event"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			sum := newTally(&out, false)
			if tt.permitted != "" {
				var err error
				if sum.skips.permitted, err = readSkips(strings.NewReader(tt.permitted)); err != nil {
					t.Fatal(err)
				}
			}
			if err := read(sum, strings.NewReader(unindent(tt.events))); err != nil {
				t.Fatal(err)
			}
			if err := sum.finish(tt.exit); !errors.Is(err, tt.want) {
				t.Errorf("finish returned %v, want %v", err, tt.want)
			}
			got := out.String()
			if !strings.HasSuffix("\n"+got, "\n"+tt.close+"\n") {
				t.Errorf("closing line is not %q in:\n%s", tt.close, got)
			}
			for _, s := range tt.says {
				if !strings.Contains(got, s) {
					t.Errorf("no %q in:\n%s", s, got)
				}
			}
			for _, s := range tt.hides {
				if strings.Contains(got, s) {
					t.Errorf("%q should not be in:\n%s", s, got)
				}
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	var out strings.Builder
	sum := newTally(&out, true)
	sum.event(event{Action: "run", Package: "p", Test: "TestA"})
	sum.event(event{Action: "pass", Package: "p", Test: "TestA"})
	sum.event(event{Action: "pass", Package: "p"})
	if err := sum.finish(nil); err != nil || out.Len() > 0 {
		t.Errorf("quiet run returned %v and printed %q", err, out.String())
	}
}

// Of a package that hangs, those who read the output learn which test it was and where it
// waits. What other goroutines do is left out.
func TestHang(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(newTally(&out, false), []string{"-vet=off", "-count=1", "-timeout=1s", "./testdata/hang"})
	got := out.String()
	if !errors.Is(err, errFailed) {
		t.Fatalf("it ended with %v:\n%s", err, got)
	}
	for _, want := range []string{"panic: test timed out after 1s", "\t\tTestHangs/inside", "--- it hangs: TestHangs\n", "hang_test.waitsForEver(", "hang_test.neverSends("} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "hang_test.aBystander(") {
		t.Errorf("all goroutines are shown:\n%s", got)
	}
}

func TestLongStacksAreCut(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 10 * maxStack {
		lines = append(lines, fmt.Sprintf("p_test.deeper(%d)\n", i))
	}
	output := append([]string{"panic: test timed out after 10m0s\n", "\trunning tests:\n", "\t\tTestDeep (10m0s)\n", "\n", "goroutine 7 [select]:\n"}, lines...)
	output = append(output, "p_test.TestDeep(0x1)\n", "\n", "goroutine 8 [chan receive]:\n", "p_test.other()\n", "FAIL\tp\t600.1s\n")
	got := strings.Join(hangs(output), "")
	if n := strings.Count(got, "deeper"); n == 0 || n > maxStack || !strings.Contains(got, "p_test.deeper(0)\n") {
		t.Errorf("%d lines of the stack are shown:\n%s", n, got)
	}
	if strings.Contains(got, "p_test.other") || !strings.HasSuffix(got, "2 goroutines in all\nFAIL\tp\t600.1s\n") {
		t.Errorf("it ends with %q", got[max(0, len(got)-200):])
	}
}

func unindent(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\t", "") + "\n"
}

func TestSlowest(t *testing.T) {
	var out strings.Builder
	tally := newTally(&out, false)
	for i := range 12 {
		tally.line(fmt.Appendf(nil, `{"Action":"run","Package":"p%d","Test":"TestA"}`, i))
		tally.line(fmt.Appendf(nil, `{"Action":"pass","Package":"p%d","Test":"TestA"}`, i))
		tally.line(fmt.Appendf(nil, `{"Action":"pass","Package":"p%d","Elapsed":%d}`, i, i))
	}
	if err := tally.finish(nil); err != nil {
		t.Fatal(err)
	}
	_, slowest, _ := strings.Cut(out.String(), "slowest:\n")
	if !strings.HasPrefix(slowest, "   11.0s  p11\n") || strings.Contains(slowest, "  p1\n") ||
		!strings.HasSuffix(slowest, "    2.0s  p2\n12 passed, 0 failed\n") {
		t.Errorf("printed %s", slowest)
	}
}
