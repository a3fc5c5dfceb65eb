package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
)

// What the model does not know is not replaced: a file that it never read, or one that the
// user has changed since.
func TestOnlyWhatWasReadIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.file("a", "precious")
	b.fails("a: it exists and was not read in this conversation", "write", "path", "a", "content", "x")
	b.fails("a: it exists and was not read in this conversation", "edit", "path", "a", "old_string", "prec", "new_string", "x")
	b.run("read", "path", "a")
	info, err := os.Stat(b.file("a", "precious"))
	b.must(err)
	b.file("a", "PRECIOUS") // the same size, and perhaps the same time
	b.must(os.Chtimes(filepath.Join(b.dir, "a"), info.ModTime(), info.ModTime()))
	b.fails("a: it has changed since it was read", "write", "path", "a", "content", "x")
	b.fails("a: it has changed since it was read", "edit", "path", "a", "old_string", "PREC", "new_string", "x")
	if got := b.content("a"); got != "PRECIOUS" {
		t.Errorf("%q", got)
	}
	b.run("read", "path", "./a")
	b.run("edit", "path", "a", "old_string", "PREC", "new_string", "prec")
	b.run("write", "path", "a", "content", "mine") // what it wrote itself it knows
	b.run("write", "path", "new", "content", "1")
	b.run("write", "path", "new", "content", "2")
	if b.content("a") != "mine" || b.content("new") != "2" {
		t.Errorf("%q, %q", b.content("a"), b.content("new"))
	}
	// Another conversation has not read it.
	r, err := b.tools["write"].Run(t.Context(), agent.Call{Session: "other", Name: "write", Input: at("write", "a")})
	if err != nil || !r.IsError || !strings.Contains(r.Text, "not read in this conversation") {
		t.Errorf("%+v: %v", r, err)
	}
}

// What is written is the file that was approved, even if a link appears on the way.
func TestWhatWasApprovedIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	r, err := tools.NewRules(b.dir, []string{"write(docs/**)"}, nil)
	b.must(err)
	b = newBench(t, tools.Options{Dir: b.dir, Rules: r})
	b.file(".git/hooks/sample", "")
	b.file("docs/a", "")
	c := call("write", at("write", "docs/pre-commit"))
	if ask, _ := b.tools["write"].Ask(c); ask {
		t.Error("a call that a rule allows asks")
	}
	b.must(os.Rename(filepath.Join(b.dir, "docs"), filepath.Join(b.dir, "old")))
	b.link(".git/hooks", "docs")
	b.tools["write"].Ask(c)
	for _, want := range []string{"led to docs/pre-commit when the call was approved", "by a link"} { // the second time it was not asked about
		result, err := b.tools["write"].Run(t.Context(), c)
		if err != nil || !result.IsError || !strings.Contains(result.Text, want) {
			t.Errorf("%+v: %v", result, err)
		}
	}
	if b.exists(".git/hooks/pre-commit") {
		t.Error("the hook was written")
	}
	if ask, reason := b.tools["write"].Ask(c); !ask || !strings.Contains(reason, ".git/hooks/pre-commit") {
		t.Errorf("asks %v, %q", ask, reason)
	}
	if result, err := b.tools["write"].Run(t.Context(), c); err != nil || result.IsError { // approved as it is now
		t.Errorf("%+v: %v", result, err)
	}
}

// What write replaces, the model must have seen as a whole, in one read or in several.
func TestAPartialReadIsNotEnoughToReplaceAFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, tools.Options{})
	b.file("a", "one\ntwo\nthree\nfour\n")
	b.run("read", "path", "a", "limit", 2)
	b.fails("only read in part", "write", "path", "a", "content", "x")
	b.run("edit", "path", "a", "old_string", "four", "new_string", "five") // which names what it replaces
	b.fails("only read in part", "write", "path", "a", "content", "x")
	b.run("read", "path", "a", "offset", 4)
	b.fails("only read in part", "write", "path", "a", "content", "x")
	b.run("read", "path", "a", "limit", 2)
	b.run("read", "path", "a", "offset", 2)
	b.run("write", "path", "a", "content", "x\ny\n")
	b.run("write", "path", "a", "content", "y\n") // what it wrote, it knows
	b.file("b", "\x00\x01")
	b.fails("binary", "read", "path", "b")
	b.run("write", "path", "b", "content", "text") // nothing more can be known of it
}
