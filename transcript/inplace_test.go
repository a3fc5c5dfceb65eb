package transcript_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// TestInPlace: where results are known by their place, they stand in the order of the
// calls, whatever order they came in.
func TestInPlace(t *testing.T) {
	t.Parallel()
	ask := func(ids ...string) session.Entry {
		e := message(session.RoleAssistant)
		for _, id := range ids {
			e.Message.Content = append(e.Message.Content, session.ToolUse(id, "f", nil))
		}
		return e
	}
	answer := func(ids ...string) session.Entry {
		e := message(session.RoleTool)
		for _, id := range ids {
			e.Message.Content = append(e.Message.Content, session.ToolResult(id, strings.ToUpper(id), false))
		}
		return e
	}
	say := func(text string) session.Entry { return message(session.RoleUser, session.Text(text)) }
	for name, test := range map[string]struct {
		list []session.Entry
		want string
	}{
		"in place":                  {[]session.Entry{ask("a", "b"), answer("a"), answer("b"), say("x")}, "?a?b|a=A|b=B|x"},
		"in another order":          {[]session.Entry{ask("a", "b"), answer("b"), answer("a")}, "?a?b|a=A|b=B"},
		"in one message":            {[]session.Entry{ask("a", "b"), answer("b", "a"), say("x")}, "?a?b|a=A|b=B|x"},
		"each call a message":       {[]session.Entry{ask("a"), ask("b"), answer("a"), answer("b")}, "?a?b|a=A|b=B"},
		"one was never answered":    {[]session.Entry{ask("a", "b"), answer("b")}, "?a?b|a=-|b=B"},
		"words came between":        {[]session.Entry{ask("a"), say("x"), ask("b"), answer("a"), answer("b")}, "?a|a=A|x|?b|b=B"},
		"the last has no answer":    {[]session.Entry{say("x"), ask("a")}, "x|?a"},
		"one id for several calls":  {[]session.Entry{ask("a"), ask("a"), answer("a"), answer("a")}, "?a?a|a=A|a=A"},
		"one id again later":        {[]session.Entry{ask("a"), say("x"), ask("a"), answer("a")}, "?a|a=-|x|?a|a=A"},
		"an answer without a call":  {[]session.Entry{answer("z"), ask("a"), answer("a")}, "z=Z|?a|a=A"},
		"words beside the result":   {[]session.Entry{ask("a"), message("user", session.Text("x"), session.ToolResult("a", "A", false))}, "?a|a=A|x"},
		"nothing but what was said": {[]session.Entry{say("x"), say("y")}, "x|y"},
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			for _, e := range transcript.InPlace(test.list) {
				text := ""
				for _, c := range e.Message.Content {
					switch {
					case c.ToolUse != nil:
						text += "?" + c.ToolUse.ID
					case c.ToolResult != nil:
						text += c.ToolResult.ToolUseID + "=" + strings.Replace(c.ToolResult.Content, session.InterruptedText, "-", 1)
					default:
						text += c.Text.Content
					}
				}
				list = append(list, text)
			}
			if got := strings.Join(list, "|"); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}
