package window_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

func newPlanner(t *testing.T, o window.Options) *window.Planner {
	t.Helper()
	p, err := window.NewPlanner(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func viewOf(t *testing.T, p *window.Planner) *window.View {
	t.Helper()
	v, err := p.View()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBudgetRefuses(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]window.Budget{
		"negative window":  {Tokens: -1},
		"negative reserve": {Tokens: 10, Reserve: -1},
		"negative bytes":   {Bytes: -1},
		"all reserved":     {Tokens: 10, Reserve: 10},
		"cut to more":      {Tokens: 10, CutTo: 101},
		"cut to less":      {Tokens: 10, CutTo: -5},
		"negative share":   {Tokens: 10, Shares: window.Shares{System: -1, Dialog: 50}},
		"too much":         {Tokens: 10, Shares: window.Shares{System: 60, Dialog: 50}},
	} {
		if _, err := window.Trim(&session.Context{}, window.Options{Budget: b}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if got := (window.Shares{}).Of(9); got != 0 {
		t.Errorf("no category has a share of %v", got)
	}
}

// R89: 10/35/50/5 of the window.
func TestDefaultShares(t *testing.T) {
	t.Parallel()
	v := viewOf(t, newPlanner(t, window.Options{Budget: window.Budget{Tokens: 1200, Reserve: 200}}))
	var shares []int
	for _, part := range v.Report.Categories {
		shares = append(shares, part.Share)
	}
	if !slices.Equal(shares, []int{100, 350, 500, 50}) {
		t.Errorf("shares are %v", shares)
	}
}

// equally makes a conversation in which each category has messages of 10 tokens,
// by letters.
func equally(counts map[window.Category]int) []session.Entry {
	b := &builder{}
	for c := window.System; c <= window.SystemOutput; c++ {
		for range counts[c] {
			b.message(session.RoleUser, session.Text("123456")).Category = c.String()
		}
	}
	return b.entries
}

func usedBy(v *window.View) map[window.Category]int {
	used := make(map[window.Category]int)
	for _, part := range v.Report.Categories {
		used[part.Category] = part.Entries
	}
	return used
}

// R89, R90, ruling 29: in a strict budget a share is a ceiling, and what is
// unused is lent to the more important categories only.
func TestStrictSharesAndLending(t *testing.T) {
	t.Parallel()
	counts := func(system, context, dialog, output int) map[window.Category]int {
		return map[window.Category]int{window.System: system, window.Context: context, window.Dialog: dialog, window.SystemOutput: output}
	}
	// A window of 1000 tokens: 10, 35, 50 and 5 messages. Cut to 80 %.
	tests := map[string]struct{ have, want map[window.Category]int }{
		"all within":                  {counts(10, 35, 50, 5), counts(10, 35, 50, 5)},
		"tools do not borrow":         {counts(0, 0, 0, 6), counts(0, 0, 0, 4)},
		"dialogue borrows from tools": {counts(0, 0, 55, 0), counts(0, 0, 55, 0)},
		"but not from documents":      {counts(0, 0, 56, 0), counts(0, 0, 44, 0)},
		"documents borrow from both":  {counts(0, 80, 10, 0), counts(0, 80, 10, 0)},
		"SYSTEM borrows from all":     {counts(90, 5, 3, 2), counts(90, 5, 3, 2)},
		"what is lent must be unused": {counts(0, 35, 55, 2), counts(0, 35, 43, 2)},
		"SYSTEM takes from all":       {counts(40, 35, 30, 0), counts(40, 23, 30, 0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := trimmed(t, equally(tt.have), window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 1000, Strict: true, CutTo: 80}})
			if diff := cmp.Diff(tt.want, usedBy(v)); diff != "" {
				t.Errorf("the view differs:\n%s\n%v", diff, v.Report.Omissions)
			}
		})
	}
}

// R90, R91: what tools answered goes first, then dialogue, then documents, each
// the oldest first; and each is sure of its share.
func TestTrimOrder(t *testing.T) {
	t.Parallel()
	var order []window.Category
	b := &builder{}
	for range 14 {
		b.message(session.RoleUser, session.Text("123456")).Category = "CONTEXT"
		b.message(session.RoleTool, session.Text("123456"))
	}
	for range 80 {
		b.message(session.RoleUser, session.Text("123456"))
	}
	for range 20 {
		b.message(session.RoleUser, session.Text("123456")).Category = "CONTEXT"
	}
	v := trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 400, CutTo: 90}})
	last := make(map[window.Category]string)
	for _, o := range v.Report.Omissions {
		if !slices.Contains(order, o.Category) {
			order = append(order, o.Category)
		}
		if o.EntryID < last[o.Category] {
			t.Errorf("%v: %s went after %s", o.Category, o.EntryID, last[o.Category])
		}
		last[o.Category] = o.EntryID
	}
	if !slices.Equal(order, []window.Category{window.SystemOutput, window.Dialog, window.Context}) {
		t.Errorf("trimmed in the order %v", order)
	}
	used := usedBy(v)
	if used[window.Context] < 400*35/100/10 || used[window.Dialog] < 400*50*9/10/100/10 {
		t.Errorf("categories have less than their shares: %v", used)
	}
}

// A planner that is brought up to date turn by turn shows what one does that
// begins anew; and begins anew by itself where the past has changed.
func TestUpdate(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	o := window.Options{Budget: window.Budget{Tokens: 600}}
	p := newPlanner(t, o)
	check := func(what string) {
		t.Helper()
		c := contextOf(t, s)
		got, err := p.Update(c)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want, err := window.Trim(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fingerprintOf(t, want), fingerprintOf(t, got)); diff != "" {
			t.Fatalf("%s: the view differs:\n%s", what, diff)
		}
	}
	check("nothing")
	var ids []string
	for n := range 40 {
		ids = append(ids, say(t, s, session.RoleUser, session.Text(words(5+n))))
		check(fmt.Sprintf("message %d", n))
	}
	check("nothing new")
	if _, err := s.AppendEntry(session.ContextEdit(ids[39], session.Text("edited"))); err != nil {
		t.Fatal(err)
	}
	check("edited")
	if err := s.Branch(ids[20]); err != nil {
		t.Fatal(err)
	}
	check("branched")
	say(t, s, session.RoleUser, session.Text("on the branch"))
	check("on the branch")
	if _, err := s.AppendCompaction("what happened", ids[15], 100); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	if _, err := s.AppendModelChange("openai", "gpt-5"); err != nil {
		t.Fatal(err)
	}
	check("another model")
	p.Add(session.Entry{Type: session.TypeMessage, ID: "x", Message: &session.MessageEntry{Role: "user"}})
	check("added behind its back")
}

// Entries that were not paired by a context: a result that comes late, one for
// two calls, and ids that are used again.
func TestGroupsOfRawEntries(t *testing.T) {
	t.Parallel()
	call := func(id string) session.Content { return session.ToolUse(id, "look", nil) }
	result := func(id string) session.Content { return session.ToolResult(id, strings.Repeat("r", 20), false) }
	filler := strings.Repeat("f", 60)
	tests := map[string]func(b *builder){
		"late": func(b *builder) {
			b.message(session.RoleAssistant, call("a"))
			for range 30 {
				b.message(session.RoleUser, session.Text(filler))
			}
			b.message(session.RoleTool, result("a"))
		},
		"for two": func(b *builder) {
			b.message(session.RoleAssistant, call("a"))
			b.message(session.RoleAssistant, call("b"))
			b.message(session.RoleTool, result("a"), result("b"))
			for range 30 {
				b.message(session.RoleUser, session.Text(filler))
			}
		},
		"for two, one of which is gone": func(b *builder) {
			b.message(session.RoleAssistant, call("a"))
			for range 30 {
				b.message(session.RoleUser, session.Text(filler))
			}
			b.message(session.RoleAssistant, call("b"))
			b.message(session.RoleTool, result("b"), result("a"))
			b.message(session.RoleUser, session.Text("go on"))
		},
		"used again": func(b *builder) {
			b.message(session.RoleAssistant, call("a"))
			b.message(session.RoleAssistant, call("a"))
			for range 8 {
				b.message(session.RoleUser, session.Text(filler))
			}
			b.message(session.RoleTool, result("a"))
			b.message(session.RoleTool, result("a"))
			for range 30 {
				b.message(session.RoleUser, session.Text(filler))
			}
			b.message(session.RoleAssistant, call("a"))
			b.message(session.RoleTool, result("a"))
		},
		"merged while others wait": func(b *builder) {
			b.message(session.RoleAssistant, call("a"))
			b.message(session.RoleAssistant, call("b"), call("c"))
			b.message(session.RoleTool, result("a"), result("b"))
			b.message(session.RoleTool, result("c"))
			for range 30 {
				b.message(session.RoleUser, session.Text(filler))
			}
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			b := &builder{}
			build(b)
			p := newPlanner(t, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 1000}})
			for _, e := range b.entries {
				p.Add(e)
				v := viewOf(t, p)
				calls, results := callsAndResults(v.Entries)
				for _, id := range results {
					at := slices.Index(calls, id)
					if at < 0 {
						t.Fatalf("after %s: a result of %s without its call", e.ID, id)
					}
					calls = slices.Delete(calls, at, at+1)
				}
				if v.Report.Tokens > 1000 {
					t.Fatalf("after %s: %d tokens", e.ID, v.Report.Tokens)
				}
			}
			v := viewOf(t, p)
			calls, results := callsAndResults(v.Entries)
			if len(calls) != len(results) {
				t.Errorf("at the end: calls %v, results %v", calls, results)
			}
		})
	}
}

// What cannot be cut is an error that says so: a call of the newest turn.
func TestNewestTurnTooLarge(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleSystem, session.Text("prompt"))
	b.message(session.RoleUser, session.Text("Write it."))
	b.message(session.RoleAssistant, session.ToolUse("c", "write", map[string]any{"text": strings.Repeat("x", 900)}))
	_, err := window.Trim(b.context(), window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 500}})
	var over *window.OverflowError
	if !errors.As(err, &over) || over.Category != window.Dialog || over.EntryID != b.entries[2].ID || over.Unit != window.Tokens {
		t.Fatalf("error is %+v", err)
	}
	if !strings.Contains(err.Error(), "the newest messages have") {
		t.Errorf("error is %v", err)
	}
	_, err = window.Trim(b.context(), window.Options{Counter: letters{}, Budget: window.Budget{Bytes: 500}})
	if !errors.As(err, &over) || over.Unit != window.Bytes || over.Over() <= 0 {
		t.Errorf("error is %+v", err)
	}
	// The next turn can do without it.
	b.message(session.RoleUser, session.Text("Never mind."))
	if v := trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 500}}); len(v.Entries) != 2 {
		t.Errorf("%v are left", idsOf(v.Entries))
	}
}

// Where the newest turn cannot be cut, what has its share gives way, the least
// important first.
func TestSharesGiveWayToTheNewestTurn(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleSystem, session.Text("prompt"))
	b.message(session.RoleUser, session.Text(strings.Repeat("d", 100))).Category = "CONTEXT"
	b.message(session.RoleUser, session.Text(strings.Repeat("d", 60))).Category = "CONTEXT"
	b.message(session.RoleUser, session.Text("Hello."))
	b.message(session.RoleUser, session.Text("Write it."))
	b.message(session.RoleAssistant, session.ToolUse("c", "write", map[string]any{"text": strings.Repeat("x", 350)}))
	v := trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 500}})
	if got, want := idsOf(v.Entries), []string{b.entries[0].ID, b.entries[2].ID, b.entries[4].ID, b.entries[5].ID}; !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
}

// Thinking that is an entry of its own stays and goes with what it led to.
func TestThinkingGoesWithItsCall(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Look."))
	b.message(session.RoleAssistant, thinking(strings.Repeat("t", 50)))
	b.message(session.RoleAssistant, session.ToolUse("c", "read", nil))
	b.message(session.RoleTool, session.ToolResult("c", strings.Repeat("r", 50), false))
	b.message(session.RoleUser, session.Text("And?"))
	for tokens := 20; tokens < 200; tokens++ {
		v, err := window.Trim(b.context(), window.Options{Counter: letters{}, Budget: window.Budget{Tokens: tokens}})
		if err != nil {
			t.Fatalf("%d tokens: %v", tokens, err)
		}
		left := idsOf(v.Entries)
		thought, called := slices.Contains(left, b.entries[1].ID), slices.Contains(left, b.entries[2].ID)
		if thought != called {
			t.Errorf("%d tokens: thinking is left: %t, its call: %t", tokens, thought, called)
		}
	}
}

// The parts of a large turn are cut evenly: the longest first.
func TestShortenedEvenly(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleAssistant, session.ToolUse("a", "read", nil), session.ToolUse("b", "read", nil), session.ToolUse("c", "read", nil))
	parts := session.ToolResult("b", "", false)
	parts.ToolResult.Parts = []session.Content{session.Text(strings.Repeat("日", 500)), session.Text("short")}
	b.message(session.RoleTool, session.ToolResult("a", strings.Repeat("x", 3000), false), parts, session.ToolResult("c", "tiny", false))
	v := trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: 1000}})
	content := v.Entries[1].Message.Content
	a, bb := len(content[0].ToolResult.Content), len(content[1].ToolResult.Parts[0].Text.Content)
	if a < 200 || a > 500 || bb < 200 || bb > 500 || content[2].ToolResult.Content != "tiny" || content[1].ToolResult.Parts[1].Text.Content != "short" {
		t.Errorf("cut to %d and %d bytes, %q", a, bb, content[2].ToolResult.Content)
	}
	if !strings.HasPrefix(content[1].ToolResult.Content, "日日") || !strings.HasSuffix(content[1].ToolResult.Content, "\nshort") || strings.ContainsRune(content[1].ToolResult.Content, '\uFFFD') {
		t.Errorf("the parts' text is %q", content[1].ToolResult.Content)
	}
	// By bytes too, and if need be down to nothing.
	v = trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Bytes: 1000}})
	if v.Report.Bytes > 1000 {
		t.Errorf("%d bytes", v.Report.Bytes)
	}
	b = &builder{}
	b.message(session.RoleAssistant, session.Text(strings.Repeat("x", 100)))
	for tokens, want := range map[int]string{15: "[…]", 12: "…", 9: ""} {
		v := trimmed(t, b.entries, window.Options{Counter: letters{}, Budget: window.Budget{Tokens: tokens}})
		if got := v.Entries[0].Message.Content[0].Text.Content; got != want {
			t.Errorf("in %d tokens it is %q, want %q", tokens, got, want)
		}
	}
}

// Answers do not stay behind when their question has gone.
func TestCutSettlesAtAQuestion(t *testing.T) {
	t.Parallel()
	b := &builder{}
	for range 200 {
		b.message(session.RoleUser, session.Text(words(8)))
		b.message(session.RoleAssistant, session.Text(words(8)))
	}
	for tokens := 1000; tokens < 1500; tokens += 17 {
		v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: tokens}})
		if role := v.Entries[0].Message.Role; role != session.RoleUser {
			t.Errorf("in a window of %d tokens the view begins with the %s", tokens, role)
		}
	}
}

// What tools answered long ago does not stay behind the dialogue around it, even
// if it is within its share.
func TestOldToolTurnsGoWithTheirDialogue(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Look."))
	b.toolTurn(1, 1, true, false)
	for range 300 {
		b.message(session.RoleUser, session.Text(words(20)))
	}
	v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: 4000}})
	if calls, _ := callsAndResults(v.Entries); len(calls) > 0 {
		t.Errorf("the call %v is left of %d messages before %s", calls, len(b.entries)-len(v.Entries), v.Entries[2].ID)
	}
}

// A result that is an instruction is kept, and its call with it.
func TestInstructionsOfTools(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleAssistant, session.ToolUse("a", "rules", nil))
	b.message(session.RoleTool, session.ToolResult("a", "Never cut the old rose.", false)).Category = "SYSTEM"
	for range 100 {
		b.message(session.RoleUser, session.Text(words(20)))
	}
	v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: 800}})
	if ids := idsOf(v.Entries); len(ids) < 3 || len(ids) > 50 || ids[0] != b.entries[0].ID || ids[1] != b.entries[1].ID {
		t.Errorf("%v are left", ids)
	}
}

// What a coding agent just read is spared while there is older dialogue.
func TestTheWorkAtHandIsSpared(t *testing.T) {
	t.Parallel()
	b := &builder{}
	for range 100 {
		b.message(session.RoleUser, session.Text(words(10)))
		b.message(session.RoleAssistant, session.Text(words(10)))
	}
	b.message(session.RoleUser, session.Text("Now read."))
	for range 4 {
		b.toolTurn(1, 30, true, false)
	}
	v := trimmed(t, b.entries, window.Options{Budget: window.Budget{Tokens: tokensIn(b.entries) - 50}})
	if calls, _ := callsAndResults(v.Entries); len(calls) != 4 {
		t.Errorf("of 4 calls of this turn %v are left", calls)
	}
}

func ExampleTrim() {
	s := []session.Entry{
		{ID: "1", Message: &session.MessageEntry{Role: "system", Content: []session.Content{session.Text("You are a gardener.")}}},
		{ID: "2", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("Tell me all about roses, please.")}}},
		{ID: "3", Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text(strings.Repeat("They need sun, water and patience. ", 20))}}},
		{ID: "4", Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("And beans?")}}},
	}
	view, err := window.Trim(&session.Context{Entries: s}, window.Options{Budget: window.Budget{Tokens: 60}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range view.Entries {
		fmt.Println("sent:", e.ID)
	}
	for _, o := range view.Report.Omissions {
		fmt.Println(o.Kind, o.EntryID, "because", o.Why)
	}
	// Output:
	// sent: 1
	// sent: 2
	// sent: 3
	// sent: 4
	// shortened 3 because it was larger than the 27 tokens of DIALOG that one turn may take
}

// What is missing from a call is an error that says so, and not a panic.
func TestNoContextIsRefused(t *testing.T) {
	t.Parallel()
	o := window.Options{Budget: window.Budget{Tokens: 1000}}
	if _, err := window.Trim(nil, o); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Trim: %v", err)
	}
	if _, err := window.Fill(nil, o); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Fill: %v", err)
	}
}
