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
			for row := range strings.Lines(shown) {
				row = strings.TrimRight(row, "\n")
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

func mayBeLonger(row string) bool {
	return strings.Contains(row, "coppice ") || strings.Contains(row, "shared, ") || strings.HasPrefix(row, "sessions that would") ||
		strings.HasPrefix(row, "8 sessions in ")
}
