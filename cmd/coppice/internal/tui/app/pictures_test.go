package app_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/session"
)

func imageBlock(t *testing.T, width, height int) session.Content {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return session.Image("image/png", base64.StdEncoding.EncodeToString(b.Bytes()))
}

// TestPictures shows images in a terminal that says that it can, and only there.
func TestPictures(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "What is this?")
	says(t, h, id, session.RoleUser, imageBlock(t, 200, 100))
	says(t, h, id, session.RoleUser, session.Image("image/png", "bm90IGEgcGljdHVyZQ=="))
	says(t, h, id, session.RoleAssistant, session.ToolUse("c1", "screenshot", nil))
	answer := session.ToolResult("c1", "", false)
	answer.ToolResult.Parts = []session.Content{imageBlock(t, 3000, 3000)}
	says(t, h, id, session.RoleTool, answer)
	for _, terminal := range []struct {
		name, answer string
		shows        bool
	}{{"kitty(0.40.1)", "OK", true}, {"ghostty 1.2", "OK", true}, {"WezTerm 2026", "", false}, {"kitty(0.40.1)", "ENOTSUP", false}} {
		t.Run(terminal.name+terminal.answer, func(t *testing.T) {
			t.Parallel()
			d := drive(t, h, func(o *app.Options) { o.Color = true })
			if _, cmd := d.app.Update(tea.TerminalVersionMsg{Name: terminal.name}); (cmd != nil) != (terminal.answer != "") {
				t.Error("the terminal is asked, or is not")
			}
			if terminal.answer != "" {
				d.handle(uv.KittyGraphicsEvent{Options: kitty.Options{ID: 1}, Payload: []byte(terminal.answer)})
			}
			d.size(columns, 60)
			d.sees("Garden")
			d.press("enter")
			d.sees("What is this?", "image/png", "screenshot")
			if !terminal.shows {
				d.press("j")
				if strings.ContainsRune(d.screen(), kitty.Placeholder) {
					t.Errorf("it shows images:\n%s", d.screen())
				}
				return
			}
			count := func(n int) func(string) bool {
				return func(screen string) bool { return strings.Count(screen, string(kitty.Placeholder)) == n }
			}
			d.until("an image of 20 × 5 cells", count(20*5))
			d.press("space") // opens the call
			d.until("an image of 36 × 18 cells", count(20*5+36*18))
			d.fits(columns, 60)
			d.size(30, 60)
			d.until("a narrower image", count(20*5+24*12))
			d.fits(30, 60)
			for line := range strings.Lines(d.screen()) {
				if n := strings.Count(line, string(kitty.Placeholder)); n > 0 && ansi.StringWidth(line) < n {
					t.Errorf("a cell of an image has no width: %q", line)
				}
			}
		})
	}
}
