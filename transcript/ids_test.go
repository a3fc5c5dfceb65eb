package transcript_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// What a stranger gave as an id must not mean anything to a shell, a terminal or
// the flags of a command.
func TestImportHashesIDsThatAreNotPlain(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:/+@~-]*$`)
	odd := []string{
		"x;touch${IFS}/tmp/x;#", "-rf", "--leaf", "~root", ".hidden", "a b", "a'b", "$(id)", "`id`", "a&b", "a|b", "a>b", "a*", "a?", "[a]", "{a,b}",
		"!x", "a\\b", "\"", "größe", "a\u202eb", "a\u009b2J", "\x1b]52;c;eA==\a", "a#b", "a=b", "a%b", strings.Repeat("a", 201),
	}
	list := []toyLine{{Conv: "c"}}
	for i, id := range odd {
		line := said(id, "text")
		if i > 0 {
			line.After = odd[i-1]
		}
		list = append(list, line)
	}
	h := newHome(t)
	h.im.Again = true
	file := toyFile(t, lines(list...))
	if got := h.bring(file).New(); got != len(odd) {
		t.Errorf("%d entries are new, want %d", got, len(odd))
	}
	s := h.open(toyID("c"))
	healthy(t, s)
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, e := range path {
		if !plain.MatchString(e.ID) {
			t.Errorf("the id %q", e.ID)
		}
		if e.Message != nil {
			messages++
		}
	}
	if messages != len(odd) {
		t.Errorf("%d messages are on the path, want %d", messages, len(odd))
	}
	if got := h.bring(file).New(); got != 0 {
		t.Errorf("the second time %d entries are new", got)
	}
	for _, id := range []string{"msg_01AbC", "0199-ab:cd", "a/b+c@d~e.f"} {
		h.bring(toyFile(t, lines(toyLine{Conv: "plain"}, said(id, "text"))))
		if has, err := h.open(toyID("plain")).Has(id); !has || err != nil {
			t.Errorf("the plain id %q was not kept (%v)", id, err)
		}
	}
}

// A store from the time when such ids were taken over is gone on with.
func TestImportFindsOddIDsOfOldStores(t *testing.T) {
	t.Parallel()
	old := newHome(t)
	old.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("first", "one"), said("second", "two"))))
	rename := strings.NewReplacer("first", "$(first)", "second", "a;b")
	s := old.open(toyID("c"))
	h := newHome(t)
	h.im.Again = true
	now, err := session.Create(context.Background(), h.st, s.Header(), nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := collectEntries(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		e.ID = rename.Replace(e.ID)
		if e.ParentID != nil {
			parent := rename.Replace(*e.ParentID)
			e.ParentID = &parent
		}
		if err := now.Graft(e); err != nil {
			t.Fatal(err)
		}
	}
	now.Close()
	report := h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("$(first)", "one"), said("a;b", "two"), said("third", "three"))))
	if report.New() != 1 {
		t.Errorf("%d entries are new, want 1", report.New())
	}
	if got, want := tree(t, h.open(toyID("c"))), "$(first)<-:one a;b<$(first):two third<a;b:three"; got != want {
		t.Errorf("the tree is %q, want %q", got, want)
	}
}
