package app_test

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// click clicks on the first place of the screen that has a text.
func (d *driver) click(text string) {
	d.Helper()
	for y, line := range strings.Split(d.screen(), "\n") {
		if before, _, ok := strings.Cut(line, text); ok {
			d.handle(tea.MouseClickMsg{X: len([]rune(before)), Y: y, Button: tea.MouseLeft})
			return
		}
	}
	d.Fatalf("%q is not on the screen", text)
}

func TestMouse(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel.")
	talk(t, h, "Kitchen", "How long does rice take?", "Twelve minutes.")
	d := drive(t, h)
	d.sees("Garden", "Kitchen")
	d.click("Garden")
	d.press("enter")
	d.sees("Hazel.")
	d.press("esc")
	d.sees("Kitchen")

	d.click("? all keys") // the bar can be clicked, too
	d.sees("keys: sessions")
	d.size(columns, 10)
	d.handle(tea.MouseWheelMsg{X: 5, Y: 5, Button: tea.MouseWheelDown})
	if screen := d.loses("Here"); !strings.Contains(screen, "PgUp") {
		t.Errorf("the wheel went too far:\n%s", screen)
	}
	d.size(columns, rows)
	d.press("esc", "$")
	d.sees("Messages by the hour")
	d.click("Messages by the hour") // below a row that is not part of the list
	d.sees(">Messages by the hour")
}
