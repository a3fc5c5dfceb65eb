package app_test

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
)

// cursor returns what is left of the cursor in its row, and its column.
func (d *driver) cursor() (before string, column int) {
	view := d.app.(*app.App).View()
	row := strings.Split(view.Content, "\n")[view.Cursor.Y]
	return ansi.Strip(ansi.Truncate(row, view.Cursor.X, "")), view.Cursor.X
}

// at checks what is left of the cursor.
func (d *driver) at(want string) {
	d.Helper()
	before, column := d.cursor()
	if !strings.HasSuffix(before, want) || ansi.StringWidth(before) != column {
		d.Errorf("the cursor is in column %d, after %q, and not after %q", column, before, want)
	}
}

func TestWhatIsTypedIsEdited(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.sees("Garden")
	for name, begin := range map[string]string{"a prompt": ":", "the search": "/"} {
		t.Log(name)
		d.press(begin)
		d.types("one 日本 three")
		d.at(begin + " one 日本 three")
		d.press("left", "left", "left", "left", "left", "left")
		d.at(" one 日本")
		d.press("backspace")
		d.at(" one 日")
		d.handle(tea.KeyPressMsg{Code: tea.KeyLeft, Mod: tea.ModCtrl})
		d.at(" one ")
		d.handle(tea.KeyPressMsg{Code: tea.KeyRight, Mod: tea.ModCtrl})
		d.at(" one 日")
		d.press("ctrl+w")
		d.handle(tea.PasteMsg{Content: "a paste\nof two\tlines"})
		d.at(" one a paste of two lines")
		d.press("ctrl+k", "ctrl+a")
		d.at(begin + " ")
		d.press("delete", "ctrl+e")
		d.at(begin + " ne a paste of two lines")
		d.press("ctrl+u")
		d.at(begin + " ")
		d.press("esc")
	}
}

// A text that is longer than its row moves along with the cursor.
func TestLongTextsScroll(t *testing.T) {
	t.Parallel()
	d := garden(t)
	d.sees("Garden")
	for _, begin := range []string{":", "/"} {
		d.press(begin)
		d.types("first " + strings.Repeat("長い ", 50) + "last")
		d.fits(columns, rows)
		d.at("長い last")
		if strings.Contains(d.screen(), "first") {
			t.Errorf("%s shows both ends", begin)
		}
		d.press("home")
		d.at(begin + " ")
		if screen := d.screen(); !strings.Contains(screen, "first") || strings.Contains(screen, "last") {
			t.Errorf("%s does not show the beginning:\n%s", begin, screen)
		}
		d.fits(columns, rows)
		d.press("esc")
	}
}

func TestCommandsAreCompleted(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees?")
	d := drive(t, h, func(o *app.Options) { o.Commands = []app.Command{{Name: "search"}, {Name: "serve"}, {Name: "show"}} })
	d.sees("Garden")
	d.press(":")
	d.types("SE")
	d.sees(": SEarch")
	d.at(": SE")
	d.press("ctrl+n")
	d.sees(": SErve")
	d.press("ctrl+n")
	d.sees(": SEarch")
	d.press("ctrl+p", "tab")
	d.at(": SErve")
	d.press("backspace", "backspace", "backspace", "backspace")
	d.types("x")
	d.press("tab")
	d.at(": Sx")
}
