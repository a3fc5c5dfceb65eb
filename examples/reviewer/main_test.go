package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/offline"
)

// Proposals wait across processes. What a person approves is posted, once; what they
// refuse never is.
func TestReviewer(t *testing.T) {
	t.Parallel()
	keep := filepath.Join(t.TempDir(), "sessions")
	run := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := review(t.Context(), &offline.Model{}, keep, args, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	out := run(`call post {"file":"a.go","line":3,"text":"This loops."}` + "\n" + `call post {"file":"b.go","line":1,"text":"No."}`)
	waiting := regexp.MustCompile(`(?m)^\S+`).FindAllString(out, -1)
	if len(waiting) != 2 || strings.Contains(out, "posted") {
		t.Fatalf("two comments should wait: %q", out)
	}
	if out := run(waiting[1], "no, too harsh"); strings.Contains(out, "posted") {
		t.Errorf("a refused comment was posted: %q", out)
	}
	if out := run(waiting[0], "yes"); strings.Count(out, "posted a.go:3: This loops.") != 1 || strings.Contains(out, "b.go") {
		t.Errorf("after the decisions: %q", out)
	}
	var again strings.Builder
	if err := review(t.Context(), &offline.Model{}, keep, []string{waiting[0], "yes"}, &again); err == nil {
		t.Errorf("a call that has run was approved again: %q", again.String())
	}
}
