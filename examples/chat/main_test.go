package main

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
)

// run is the program from its start to its end.
func run(t *testing.T, dir string, model provider.Model, lines ...string) string {
	t.Helper()
	var out strings.Builder
	if err := chat(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out, dir, model); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A conversation is begun, left, taken up again, fails in a storm and is retried;
// nothing is lost, and nothing is said twice.
func TestChat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, day := range []struct {
		storm bool
		lines []string
		want  []string
		lack  string
	}{
		{false, []string{"How do I cut hazel?"}, []string{"gardener: Cut hazel to the ground"}, "Restored"},
		{
			false,
			[]string{"And willow?", "/quit", "never heard"},
			[]string{"Restored session with 3 messages", "every year. (You asked 2 questions; the first was: How do I cut hazel?)"},
			"never",
		},
		{true, []string{"And when?", "/retry"}, []string{"Restored session with 5 messages", "! the gardener is indoors"}, "leaves"},
		{
			false,
			[]string{"/retry", "/retry"},
			[]string{"Not answered yet: And when?", "gardener: When the leaves are down. (You asked 3 questions", "! "},
			"4 questions",
		},
		{false, []string{"/new", "Willow?", "/list"}, []string{"Restored session with 7 messages", "7 messages\n", "3 messages\n"}, "You asked"},
		{false, []string{"/load nowhere"}, []string{"Restored session with 3 messages\n! "}, "gardener"},
	} {
		out := run(t, dir, gardener(day.storm), day.lines...)
		for _, want := range day.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q gave\n%s\nwithout %q", day.lines, out, want)
			}
		}
		if strings.Contains(out, day.lack) {
			t.Errorf("%q gave\n%s\nwith %q", day.lines, out, day.lack)
		}
	}
}
