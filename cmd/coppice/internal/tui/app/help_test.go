package app_test

import (
	"strings"
	"testing"
)

// TestHelpIsInGroups lists what can be done in a room first, and last what cannot be done now and why.
func TestHelpIsInGroups(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := seeTree(t, h)
	d.size(80, 24)
	d.press("?")
	d.fits(80, 24)
	var seen []string
	for range 60 {
		for line := range strings.Lines(d.screen()) {
			if line = strings.TrimSpace(strings.TrimPrefix(line, ">")); line != "" && (len(seen) == 0 || seen[len(seen)-1] != line) {
				seen = append(seen, line)
			}
		}
		d.press("down")
	}
	all := strings.Join(seen, "\n") + "\n"
	at := 0
	for _, text := range []string{
		"Here\n", "open\n", "Moving\n", "PgUp", "Reading and finding\n", "find\n", "The session\n", "rename\n", "log of what was done",
		"Entries and branches\n", "label\n", "Windows\n", "command\n", "Not now\n", "compare – Space marks the entry to compare with\n", "branch here – the conversation ends here already\n", "undo – nothing was done",
	} {
		next := strings.Index(all[at:], text)
		if next < 0 {
			t.Fatalf("%q is not where it should be:\n%s", text, all)
		}
		at += next
	}
}
