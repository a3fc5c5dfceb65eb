package app_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestFindInEveryRoom looks for a text with letters that are keys elsewhere, which must do nothing
// but be part of it.
func TestFindInEveryRoom(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := forked(t, h)
	gone := talk(t, h, "Old oak", "Hello")
	talk(t, h, "Willow", "Hello")
	for _, name := range []string{gone, "Willow"} {
		if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: name}); err != nil {
			t.Fatal(err)
		}
	}
	says(t, h, id, session.RoleUser, session.Text("Here is a password: api_key=sk-ant-api03-"+strings.Repeat("aB3", 31)+"AA"))
	for _, room := range []struct {
		name  string
		keys  []string
		shows string // when it is ready
		text  string
		at    string // the selected row then begins so
	}{
		{"transcript", []string{"enter"}, "5 of 5", "QUICK", "3 of 5"},
		{"tree", []string{"t"}, "← leaf", "Century", ">│ ○ assistant   Wait a century."},
		{"context", []string{"x"}, "What is sent", "something quick", ">"},
		{"stats", []string{"$"}, "by the hour", "HOUR", ">Messages by the hour"},
		{"trash", []string{"d"}, "Old oak", "old oak", ">"},
		{"card", []string{"tab"}, "asked", "What shall", ">"},
		{"redact", []string{"X"}, "1 secret found", "1 time", ">"},
		{"help", []string{"?"}, "all keys", "rename", ">  R"},
		{"command", []string{":", "l", "s", "enter"}, "row 0", "row 57", ""},
		{"compare", []string{"t", "g", "down", "down", "down", "space", "G", "="}, "they share", "And then", ">❯ And then?"},
	} {
		t.Run(room.name, func(t *testing.T) {
			t.Parallel()
			d := drive(t, h, func(o *app.Options) {
				o.Commands = []app.Command{{Name: "ls"}}
				o.Run = func(_ context.Context, _ []string, out io.Writer, _ int) error {
					for i := range 100 {
						fmt.Fprintf(out, "row %d\n", i)
					}
					return nil
				}
			})
			d.sees("Garden")
			d.sees(" 1 session")
			for _, k := range room.keys {
				d.press(k)
				if k == "t" {
					d.sees("← leaf")
				}
			}
			d.sees(room.shows)
			d.press("g", "/")
			d.types(room.text)
			d.sees("find: " + room.text)
			d.press("enter")
			d.until("it on the selected row", func(screen string) bool {
				if room.at == "" {
					return strings.Contains(screen, room.text)
				}
				for line := range strings.Lines(screen) {
					if strings.Contains(line, room.at) && (room.name == "transcript" || strings.Contains(strings.ToLower(line), strings.ToLower(room.text))) {
						return true
					}
				}
				return false
			})
			d.press("n", "n", "n", "n")
			d.sees("no \"" + room.text + "\" below; N looks above")
			d.press("esc")
			d.sees("/ find")
			d.press("esc", "esc")
			d.sees("q quit")
		})
	}
}

// TestFindInALargeTree finds what is folded away, among thousands of rows.
func TestFindInALargeTree(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Large", "the beginning")
	for range 3 {
		for i := range 900 {
			text := fmt.Sprintf("step %d", i)
			if i == 450 {
				text = "Testmutex"
			}
			says(t, h, id, session.RoleAssistant, session.Text(text))
		}
	}
	d := drive(t, h)
	d.sees("Large")
	d.press("t")
	d.sees("← leaf", "entries")
	d.press("/")
	d.types("Testmutex")
	d.press("enter")
	d.sees(`no "Testmutex" below`)
	info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
	if err != nil || len(info.Tags) > 0 {
		t.Errorf("%v, %v: letters of the search were keys", info, err)
	}
	selected := func(row string) {
		t.Helper()
		d.until(row, func(screen string) bool {
			return strings.Contains(screen, row) && strings.Contains(screen, ">● assistant   Testmutex")
		})
	}
	d.press("N")
	selected("row 2,252 of 2,701")
	d.press("N")
	selected("row 1,352 of 2,701")
	d.press("n")
	selected("row 2,252 of 2,701")
	d.press("g", "n")
	selected("row 452 of 2,701")
	d.press("N")
	d.sees(`no "Testmutex" above; n looks below`)
}
