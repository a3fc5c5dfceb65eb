package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// What is drawn fits the terminal. Prose that a terminal breaks by itself, and commands
// to copy, may be longer.
func TestDrawingsFitTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "NO_COLOR": "1", "COPPICE_PAGER": "cat", "COPPICE_HOME": dir + "/sessions"}
	if shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), []string{"demo"}) }); !strings.Contains(shown, "sessions") {
		t.Fatal(shown)
	}
	for _, width := range []int{40, 60, 80, 120, 200} {
		env["COLUMNS"] = fmt.Sprint(width)
		for _, line := range []string{
			"", "ls", "ls --all", "search build", "show nightly", "show --full table", "show --all kyoto", "tree nightly", "tree --all table", "context nightly",
			"stats", "stats nightly", "images kyoto", "retain --older-than 1d --dry-run", "diff nightly leaf nightly-06", "config show --origin",
		} {
			shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), strings.Fields(line)) })
			for _, row := range rowsOf(shown) {
				if ansi.StringWidth(row) > width && !mayBeLonger(row) {
					t.Errorf("%s at %d columns: %d: %q", line, width, ansi.StringWidth(row), row)
				}
			}
			if strings.Count(shown, "\n") < 2 {
				t.Errorf("%s at %d columns shows %q", line, width, shown)
			}
		}
	}
}

// rowsOf returns the lines on a terminal. A bar, which appears where a machine is slow,
// is drawn over again and again.
func rowsOf(shown string) []string {
	return strings.Split(strings.ReplaceAll(shown, "\r\x1b[K", "\n"), "\n")
}

// A bar fits the terminal too.
func TestBarFitsTheTerminal(t *testing.T) {
	for width := 20; width < 100; width++ {
		for done := range int64(11) {
			if drawn := progressBar("indexing", done, 10, width); ansi.StringWidth(drawn) >= width || width > 60 && !strings.Contains(drawn, strings.Repeat("█", 3*int(done))) {
				t.Errorf("%d columns wide on %d: %q", ansi.StringWidth(drawn), width, drawn)
			}
		}
	}
}

func mayBeLonger(row string) bool {
	return strings.Contains(row, "coppice ") || strings.Contains(row, "shared, ") || strings.HasPrefix(row, "sessions that would") ||
		strings.HasPrefix(row, "8 sessions in ")
}
