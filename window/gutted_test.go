package window_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Instructions that nearly fill the window must not push out the question. At least a part
// of it is sent, or the caller gets an error.
func TestInstructionsNearlyFillTheWindow(t *testing.T) {
	t.Parallel()
	say := func(role, category, text string) session.Entry {
		return session.Entry{ID: role, Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Category: category, Content: []session.Content{session.Text(text)}}}
	}
	question := strings.Repeat("why beans? ", 20)
	c := &session.Context{Entries: []session.Entry{say(session.RoleSystem, "SYSTEM", strings.Repeat("be kind ", 55)), say(session.RoleUser, "", question)}}
	for room := 100; room < 400; room++ {
		v, err := window.Trim(c, window.Options{Budget: window.Budget{Tokens: room}})
		if err != nil {
			if overflow, ok := errors.AsType[*window.OverflowError](err); !ok || overflow.Over() <= 0 {
				t.Errorf("window of %d: %v", room, err)
			}
			continue
		}
		if got := session.TextOf(v.Entries[len(v.Entries)-1].Message.Content); !strings.Contains(got, "why") {
			t.Errorf("window of %d: the question is %q", room, got)
		}
	}
	if _, err := window.Trim(c, window.Options{Budget: window.Budget{Tokens: 400}}); err != nil {
		t.Errorf("a window with room for both: %v", err)
	}
}
