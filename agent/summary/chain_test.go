package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// However often a conversation is compacted, its goal and the files of its beginning are
// still there, and no summary is longer than it may be.
func TestThirtyCompactionsForgetNoFile(t *testing.T) {
	t.Parallel()
	const most = 600
	s := newStory(t)
	model := &offline.Model{Window: 8000}
	counter := window.Estimate(offline.Name, offline.ModelName)
	s.user("Port the whole project to Go.")
	for round := range 30 {
		s.call("read", fmt.Sprintf("old/part%d.py", round), strings.Repeat("print('hello')\n", 50))
		s.call("write", fmt.Sprintf("new/part%d.go", round), "ok")
		s.reply(fmt.Sprintf("Part %d is done. ", round) + strings.Repeat("It works now. ", 150))
		s.user(fmt.Sprintf("Go on with part %d.", round+1))
		plan := s.plan(200)
		sum, err := summary.Compaction(t.Context(), model, plan, summary.Options{MaxTokens: most})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if n := counter.CountText(sum.Text); n > most+20 || n != sum.Tokens {
			t.Fatalf("round %d: the summary has %d tokens (it says %d):\n%s", round, n, sum.Tokens, sum.Text)
		}
		if _, err := sum.Append(s.Session, plan); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := c.Entries[0]
	files := summary.FilesOf(&last)
	for round := range 30 {
		if !slices.Contains(files.Read, fmt.Sprintf("old/part%d.py", round)) || !slices.Contains(files.Changed, fmt.Sprintf("new/part%d.go", round)) {
			t.Errorf("the files of round %d are forgotten", round)
		}
	}
	for _, want := range []string{"Port the whole project to Go.", "Part 29 is done.", "part29.go", "Earlier lines left out"} {
		if !strings.Contains(last.Summary(), want) {
			t.Errorf("the last summary lacks %q:\n%s", want, last.Summary())
		}
	}
}

// A person sees the files that were used last, in order, and how many there are besides.
func TestFilesAreBoundedInTheTextAndInTheLog(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.user("Read everything.")
	for i := range 1200 {
		s.call("read", fmt.Sprintf("file%04d", i), "x")
	}
	s.call("edit", "file0007\nb", "x")
	s.call("read", "file0300", "x") // again: now it is one of the last
	s.user("And now?")
	sum, err := summary.Compaction(t.Context(), writes(goal).Model(), s.plan(30), summary.Options{MaxTokens: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Files.Read) != 1000 || sum.Files.Read[999] != "file0300" || sum.Files.Read[998] != "file1199" || slices.Contains(sum.Files.Read, "file0100") {
		t.Errorf("%d files, the last is %s", len(sum.Files.Read), sum.Files.Read[len(sum.Files.Read)-1])
	}
	if sum.Tokens > 520 || !strings.Contains(sum.Text, "more, used earlier") || !strings.Contains(sum.Text, "file0300\n- file11") {
		t.Errorf("%d tokens:\n%s", sum.Tokens, sum.Text)
	}
	if strings.Contains(sum.Text, "\nb") {
		t.Error("the name of a file breaks the list")
	}
	tiny, err := summary.Compaction(t.Context(), writes(goal).Model(), s.plan(30), summary.Options{MaxTokens: 12})
	if err != nil || !strings.Contains(tiny.Text, "1000 more") {
		t.Errorf("no room for files: %q, %v", tiny.Text, err)
	}
}

// A member of this name that another program wrote is not ours.
func TestForeignFilesAreIgnored(t *testing.T) {
	t.Parallel()
	e := session.Entry{Compaction: &session.CompactionEntry{Extra: session.Fields{{Name: summary.FieldFiles, Value: []byte(`{"changed":["a.go"],"read":7}`)}}}}
	if f := summary.FilesOf(&e); f.Read != nil || f.Changed != nil {
		t.Errorf("%+v", f)
	}
	if f := summary.FilesOf(&session.Entry{}); f.Read != nil {
		t.Errorf("%+v", f)
	}
}
