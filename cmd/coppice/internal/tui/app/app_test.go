package app_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
)

func TestEscapeAlwaysGoesBack(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("?")
	d.sees("keys: sessions", "open")
	d.press("esc")
	d.loses("keys: sessions")
	d.press("esc", "esc")
	if d.quit {
		t.Error("Escape in the first room left the program")
	}
	d.press("q")
	d.until("the end", func(string) bool { return d.quit })
}

// TestCommandsOfTheCommandLine runs a command after a colon, and shows what it printed.
func TestCommandsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees can be coppiced?")
	d := drive(t, h, func(o *app.Options) {
		o.Commands = []app.Command{{Name: "show", About: "Show"}}
		o.Run = func(_ context.Context, args []string, out io.Writer, _ int) error {
			_, err := fmt.Fprintln(out, strings.Join(args, " "))
			return err
		}
	})
	d.sees("Garden")
	d.press(":")
	d.types("show % 'two words'")
	d.press("enter")
	d.sees("show " + id + " two words")
	d.press("esc")
	d.sees("Garden")
	d.press(":")
	d.types("shw")
	d.press("enter")
	d.sees(`"shw" is not a command`)
}

func TestHostileTitlesAreText(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "\x1b]0;owned\x07\x1b[2J\u202eevil", "x")
	d := drive(t, h, func(o *app.Options) { o.Color = true })
	d.sees("evil")
	content := d.app.(*app.App).View().Content
	if strings.Contains(content, "\x1b]") || strings.Contains(content, "\x1b[2J") || strings.Contains(content, "\u202e") {
		t.Errorf("a title acts on the terminal: %q", content)
	}
}

func TestScreensFit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}, {240, 80}, {20, 5}, {1, 1}} {
		d.size(size[0], size[1])
		d.fits(size[0], size[1])
	}
}
