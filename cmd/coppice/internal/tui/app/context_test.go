package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestContextRoom shows what would be sent, and that a compaction replaces the beginning.
func TestContextRoom(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel and ash.", "How often?", "Every seven years.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("x")
	d.sees("4 entries", "user", "Which trees", "Every seven years.", "dialog")
	d.press("esc")

	path, err := readPath(t, h, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Entries.Compact(t.Context(), home.CompactRequest{Session: id, Summary: "They talked about hazel.", FirstKept: path[len(path)-2].ID}); err != nil {
		t.Fatal(err)
	}
	d.press("x")
	screen := d.sees("replaced by the summary: 2 entries", "They talked about hazel.", "How often?")
	if len(screen) == 0 || strings.Contains(screen, "Which trees") {
		t.Errorf("what the summary replaces is still sent:\n%s", screen)
	}
	d.press("G", "enter")
	d.loses("What is sent")
}

func readPath(t *testing.T, h *home.Home, id string) (path []session.Entry, err error) {
	t.Helper()
	_, err = h.Entries.Path(t.Context(), home.PathRequest{Session: id}, func(e session.Entry) error {
		path = append(path, e)
		return nil
	})
	return path, err
}

// TestStatsRoom counts what was said and what it cost, in the time that is chosen.
func TestStatsRoom(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees can be coppiced?")
	c, err := h.Conversation(t.Context(), home.OpenRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, ago := range []int{200, 3, 0} {
		answer := session.MessageEntry{
			Role: session.RoleAssistant, Content: []session.Content{session.Text("Hazel.")}, Provider: "anthropic", Model: "claude-sonnet-4-5",
			Usage: &session.Usage{Input: 1000, Output: 500},
		}
		e := session.Entry{Type: session.TypeMessage, Message: &answer, Timestamp: time.Now().AddDate(0, 0, -ago)}
		if _, err := c.AppendEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	d := drive(t, h)
	d.sees("Garden")
	d.press("$")
	d.sees("[30 days]", "2 responses", "3,000 tokens", "Cost a day", "claude-sonnet-4-5")
	d.press("right", "right", "right")
	d.sees("[all]", "3 responses", "4,500 tokens")
	d.press("left", "left", "left", "left")
	d.sees("[7 days]", "2 responses")
}
