package window_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// trimmed returns the view, which must exist.
func trimmed(t *testing.T, entries []session.Entry, o window.Options) *window.View {
	t.Helper()
	v, err := window.Trim(&session.Context{Entries: entries}, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func idsOf(entries []session.Entry) []string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// textOf is all the text of entries.
func textOf(entries []session.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		for _, c := range e.Message.Content {
			switch {
			case c.Text != nil:
				b.WriteString(c.Text.Content)
			case c.ToolResult != nil:
				b.WriteString(c.ToolResult.Content)
			}
		}
	}
	return b.String()
}

// One newest message larger than its category's budget emptied the category,
// itself included.
func TestRegressionNewestMessageLargerThanItsCategory(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		b := &builder{}
		b.message(session.RoleSystem, session.Text("You are a gardener."))
		for range 10 {
			b.message(session.RoleUser, session.Text(words(20)))
			b.message(session.RoleAssistant, session.Text(words(20)))
		}
		small := len(b.entries)
		b.message(session.RoleUser, session.Text("Begin. "+words(5000)+"The end."))
		v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: 2000, Strict: strict}})

		newest := v.Entries[len(v.Entries)-1]
		if newest.ID != b.entries[small].ID {
			t.Fatalf("strict %v: the newest message is gone", strict)
		}
		text := newest.Message.Content[0].Text.Content
		if !strings.HasPrefix(text, "Begin. ") || !strings.HasSuffix(text, "The end.") || !strings.Contains(text, "middle left out") {
			t.Errorf("strict %v: the newest message was cut to %q", strict, text)
		}
		if len(v.Entries) < 8 {
			t.Errorf("strict %v: because of it only %d of %d other messages are left", strict, len(v.Entries)-1, small)
		}
		if o := v.Report.Omissions[0]; o.Kind != window.Shortened || o.EntryID != newest.ID || o.Tokens < 3000 {
			t.Errorf("strict %v: the report begins with %+v", strict, o)
		}
	}
}

// Tool results were trimmed while the assistant's message kept its calls.
func TestRegressionToolResultsGoWithTheirCalls(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		b := &builder{}
		b.message(session.RoleUser, session.Text("Look after the roses."))
		for range 20 {
			b.toolTurn(2, 60, true, false)
		}
		v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: 1500, Strict: strict}})
		calls, results := callsAndResults(v.Entries)
		if len(calls) == 0 || len(calls) == b.calls || !slices.Equal(calls, results) {
			t.Errorf("strict %v: calls %v, results %v", strict, calls, results)
		}
	}
}

// An over-budget SYSTEM left the total over, with nothing trimmed.
func TestRegressionSystemOverItsShare(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		b := &builder{}
		b.message(session.RoleSystem, session.Text(words(600)))
		for range 40 {
			b.message(session.RoleUser, session.Text(words(20)))
		}
		system := tokensIn(b.entries[:1])
		v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: system + 300, Strict: strict}})
		if v.Report.Tokens > system+300 || len(v.Entries) < 5 || v.Entries[0].ID != b.entries[0].ID {
			t.Errorf("strict %v: %d entries with %d tokens of %d", strict, len(v.Entries), v.Report.Tokens, system+300)
		}

		_, err := window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: system - 7, Strict: strict}})
		var over *window.OverflowError
		if !errors.As(err, &over) || !errors.Is(err, session.ErrTooLarge) {
			t.Fatalf("strict %v: error is %v", strict, err)
		}
		if over.Category != window.System || over.Over() != 7 || over.Need != system || over.EntryID != b.entries[0].ID {
			t.Errorf("strict %v: error is %+v, over by %d", strict, over, over.Over())
		}
	}
}

// Byte-blind: 42 screenshots were 15 % of the tokens, but 34 MB of a request
// that may have 32.
func TestRegressionScreenshotsBeyondTheByteLimit(t *testing.T) {
	t.Parallel()
	const limit = 32 << 20
	b := &builder{}
	for range 42 {
		b.message(session.RoleUser, session.Text("What do you see?"), noise(610_000))
		b.message(session.RoleAssistant, session.Text(words(30)))
	}
	o := window.Options{Images: window.AllImages, Budget: window.Budget{Tokens: 200_000}}
	if v := trimmed(t, b.entries, o); v.Report.Bytes < limit || len(v.Entries) != 84 || v.Report.LeftOutTokens > 0 {
		t.Fatalf("without a limit: %d entries, %d bytes, %d tokens left out", len(v.Entries), v.Report.Bytes, v.Report.LeftOutTokens)
	}
	o.Budget.Bytes = limit
	v := trimmed(t, b.entries, o)
	if v.Report.Bytes > limit {
		t.Errorf("the request has %d bytes", v.Report.Bytes)
	}
	if len(v.Entries) != 84 {
		t.Errorf("only %d of 84 messages are left: text is not what weighs", len(v.Entries))
	}
	if n := strings.Count(textOf(v.Entries), "image left out"); n < 5 || n > 30 {
		t.Errorf("%d images became placeholders", n)
	}
	if v.Entries[82].Message.Content[1].Image == nil {
		t.Error("the newest image is gone")
	}
}

// The categories' sums were not the total, and what was kept free for the answer
// was not.
func TestRegressionSumsAndReserve(t *testing.T) {
	t.Parallel()
	v := trimmed(t, longSession(500, false), window.Options{Budget: window.Budget{Tokens: 10_000, Reserve: 4_000}})
	sum, left := 0, 0
	for _, part := range v.Report.Categories {
		sum += part.Tokens
		left += part.LeftOutTokens
	}
	if sum != v.Report.Tokens || left != v.Report.LeftOutTokens || left == 0 {
		t.Errorf("categories %d and %d left out, total %d and %d", sum, left, v.Report.Tokens, v.Report.LeftOutTokens)
	}
	if v.Report.Tokens > 6_000 || v.Report.Room != 6_000 {
		t.Errorf("%d tokens of %d", v.Report.Tokens, v.Report.Room)
	}
}

// The boundary was computed anew each turn, and moved each turn.
func TestRegressionBoundaryMovesEachTurn(t *testing.T) {
	t.Parallel()
	entries := longSession(2000, false)
	p, err := window.NewPlanner(window.Options{Budget: window.Budget{Tokens: tokensIn(entries) / 3}})
	if err != nil {
		t.Fatal(err)
	}
	moves, boundary := 0, ""
	for _, e := range entries {
		p.Add(e)
		v, err := p.View()
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Entries) > 2 && v.Entries[2].ID != boundary {
			moves++
			boundary = v.Entries[2].ID
		}
	}
	if moves < 3 || moves > 20 {
		t.Errorf("in 2000 messages the boundary moved %d times", moves)
	}
}

// One call without an answer disabled trimming for ever after.
func TestRegressionUnansweredCall(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Begin."))
	b.toolTurn(1, 10, false, false)
	for range 100 {
		b.message(session.RoleUser, session.Text(words(20)))
		b.message(session.RoleAssistant, session.Text(words(20)))
	}
	v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: 1000}})
	if calls, _ := callsAndResults(v.Entries); len(calls) > 0 || v.Report.Tokens > 1000 {
		t.Errorf("%d tokens, calls %v", v.Report.Tokens, calls)
	}
}

// Outside of a strict budget a coding agent keeps what it read, though that is
// far more than the share of tools, as long as the window has room.
func TestToolOutputMayFillTheWindow(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Read it all."))
	for range 10 {
		b.toolTurn(1, 300, true, false)
	}
	whole := tokensIn(b.entries)
	if v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: whole}}); len(v.Entries) != 21 || v.Report.LeftOutTokens != 0 {
		t.Errorf("%d of 21 entries are left", len(v.Entries))
	}
	v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: whole, Strict: true}})
	for _, part := range v.Report.Categories {
		if part.Category == window.SystemOutput && (part.Tokens > whole/20 || part.Share != whole*5/100) {
			t.Errorf("strict, but tools have %d of %d tokens (share %d)", part.Tokens, whole, part.Share)
		}
	}
}
