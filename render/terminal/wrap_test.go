package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render/plain"
)

func TestWrapBreaksBetweenWordsAndHangsLists(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line string
		want []string
	}{
		{"short", []string{"short"}},
		{"", []string{""}},
		{"one two three four five", []string{"one two three four", "five"}},
		{"run it with --no-verify-ssl", []string{"run it with", "--no-verify-ssl"}},
		{"- an item that is too long", []string{"- an item that is", "  too long"}},
		{"   12. an item that is too long", []string{"   12. an item that", "       is too long"}},
		{"    indented text goes on", []string{"    indented text", "    goes on"}},
		{"aaaaaaaaaabbbbbbbbbbccccc d", []string{"aaaaaaaaaabbbbbbbbbb", "ccccc d"}},
		{"x aaaaaaaaaabbbbbbbbbbccccc", []string{"x", "aaaaaaaaaabbbbbbbbbb", "ccccc"}},
		{"日本語日本語日本語日本語", []string{"日本語日本語日本語日", "本語"}},
		{"twenty columns wide.    ", []string{"twenty columns wide."}},
	} {
		got := wrap(test.line, 20)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.line, diff)
		}
	}
	painted := plain.Paint("1", "one") + " two " + plain.Paint("1", "three-and-a-half") + " four"
	got := wrap(painted, 20)
	for i := range got {
		got[i] = ansi.Strip(got[i])
	}
	if want := []string{"one two", "three-and-a-half", "four"}; !slices.Equal(got, want) {
		t.Errorf("painted: %q, want %q", got, want)
	}
}

// The cost of a line is in proportion to it, whatever it consists of, and no row is
// too wide.
func TestWrapOfALongLine(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		strings.Repeat("a", 1<<16), strings.Repeat("a ", 1<<16), strings.Repeat(" ", 1<<16) + "a", "- " + strings.Repeat("日", 1<<14),
	} {
		rows := wrap(line, 80)
		for _, row := range rows {
			if ansi.StringWidth(row) > 80 {
				t.Fatalf("%.10q…: a row of %d columns", line, ansi.StringWidth(row))
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(rows, "")), ""); len(got) != len(strings.ReplaceAll(line, " ", "")) {
			t.Errorf("%.10q…: %d bytes of text, want %d", line, len(got), len(strings.ReplaceAll(line, " ", "")))
		}
	}
}
