package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
)

// TestReadElsewhere looks at the copy that an editor or a pager is given.
func TestReadElsewhere(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "What shall I plant?", "An \x1b[31moak. "+strings.Repeat("long ", 20_000)+"the end")
	type copied struct{ who, text string }
	copies, text := make(chan copied, 10), ""
	as := func(name string) func(path string) *exec.Cmd {
		return func(at string) *exec.Cmd {
			content, err := os.ReadFile(at)
			if err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o400 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(at)) }) // the terminal of the test runs no programs
			copies <- copied{name, string(content)}
			return exec.Command("true")
		}
	}
	d := drive(t, h, func(o *app.Options) { o.Viewers = app.Viewers{Editor: as("editor"), Pager: as("pager")} })
	d.sees("Garden")
	reads := func(name string) {
		t.Helper()
		d.until("the "+name, func(string) bool {
			select {
			case c := <-copies:
				text = c.text
				return c.who == name
			default:
				return false
			}
		})
		if strings.Contains(text, "\x1b") {
			t.Errorf("the copy can act on the terminal: %.200q", text)
		}
	}
	d.press("O", "e")
	reads("editor")
	if !strings.Contains(text, "What shall I plant?") || !strings.Contains(text, "the end") {
		t.Errorf("%.200q", text)
	}
	d.press("enter")
	d.sees("2 of 2")
	d.press("O", "e", "p")
	reads("pager")
	if strings.Contains(text, "What shall I plant?") || !strings.HasSuffix(text, "the end\n") {
		t.Errorf("%.200q", text)
	}
	d.press("g", "O", "a", "e")
	reads("editor")
	if !strings.Contains(text, "What shall I plant?") || !strings.Contains(text, "oak") {
		t.Errorf("%.200q", text)
	}
}
