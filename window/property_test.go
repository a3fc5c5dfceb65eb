package window_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// drawConversation makes a conversation of every kind of message: prompts,
// documents, turns with thinking, several calls at once, results of all sizes
// and with pictures, responses in several entries, interrupted calls.
func drawConversation(t *rapid.T, most int) []session.Entry {
	b := &builder{}
	size := func() int { return rapid.SampledFrom([]int{1, 5, 20, 100, 400, 3000}).Draw(t, "size") }
	for range rapid.IntRange(0, most).Draw(t, "turns") {
		switch rapid.IntRange(0, 9).Draw(t, "turn") {
		case 0:
			b.message(session.RoleSystem, session.Text(words(rapid.IntRange(1, 30).Draw(t, "prompt"))))
		case 1:
			b.message(session.RoleUser, session.Text(words(size()))).Category = "CONTEXT"
		case 2, 3, 4:
			b.message(session.RoleUser, session.Text(words(size())))
			b.message(session.RoleAssistant, session.Text(words(size())))
		case 5:
			b.message(session.RoleUser, session.Text("look"), picture(rapid.IntRange(1, 900).Draw(t, "width"), 300))
		case 6:
			response := fmt.Sprintf("r%d", len(b.entries))
			b.message(session.RoleAssistant, thinking(words(size()))).ResponseID = response
			b.message(session.RoleAssistant, session.Text(words(size()))).ResponseID = response
		default:
			calls := rapid.IntRange(1, 3).Draw(t, "calls")
			b.toolTurn(calls, size(), rapid.Bool().Draw(t, "answered"), rapid.Bool().Draw(t, "pictured"))
		}
		if rapid.IntRange(0, 3).Draw(t, "recorded") == 0 && len(b.entries) > 0 {
			tokens := rapid.IntRange(0, 500).Draw(t, "tokens")
			b.entries[len(b.entries)-1].Message.Tokens = &tokens
		}
	}
	return b.entries
}

func drawBudget(t *rapid.T) window.Budget {
	tokens := rapid.SampledFrom([]int{0, 60, 300, 1000, 5000, 20_000}).Draw(t, "window")
	return window.Budget{
		Tokens:  tokens,
		Reserve: rapid.SampledFrom([]int{0, 0, tokens / 5, tokens / 2}).Draw(t, "reserve"),
		Bytes:   rapid.SampledFrom([]int{0, 0, 2000, 20_000, 100_000}).Draw(t, "bytes"),
		Shares: rapid.SampledFrom([]window.Shares{
			{}, {System: 100}, {Dialog: 100}, {System: 25, Context: 25, Dialog: 25, SystemOutput: 25}, {SystemOutput: 90},
		}).Draw(t, "shares"),
		Strict: rapid.Bool().Draw(t, "strict"),
		CutTo:  rapid.SampledFrom([]int{0, 30, 90, 100}).Draw(t, "cut to"),
	}
}

// stored writes a conversation into a session and returns its context and file.
func stored(t *rapid.T, dir string, entries []session.Entry) (*session.Session, *session.Context) {
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		if _, err := s.AppendAll(entries...); err != nil {
			t.Fatal(err)
		}
	}
	if rapid.Bool().Draw(t, "compacted") {
		plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: rapid.SampledFrom([]int{0, 200, 2000}).Draw(t, "kept"), Count: func(e session.Entry) int {
			return window.CountEntry(window.Estimate("", ""), "", &e).Tokens
		}})
		if err == nil {
			_, _ = s.AppendCompaction(words(20), plan.FirstKept, 0) // not while a call waits
		}
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// For all conversations and budgets: the view never exceeds its budget, never
// splits a group, never drops SYSTEM, is stable when nothing changed, is the
// same whether planned at once or entry by entry, and the log is untouched.
func TestViewProperties(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	soak.Check(t, func(t *rapid.T) {
		s, c := stored(t, dir, drawConversation(t, 25))
		defer s.Close()
		before, err := os.ReadFile(s.File())
		if err != nil {
			t.Fatal(err)
		}
		shown := snapshot(t, c.Entries)
		o := window.Options{Budget: drawBudget(t), Images: rapid.SampledFrom([]int{0, 3, window.AllImages, window.NoImages}).Draw(t, "images")}

		v, err := window.Trim(c, o)
		if after, readErr := os.ReadFile(s.File()); readErr != nil || !bytes.Equal(before, after) {
			t.Fatalf("the log has changed (%v)", readErr)
		}
		if !bytes.Equal(shown, snapshot(t, c.Entries)) {
			t.Fatal("the context has changed")
		}
		stepwise, stepErr := addOneByOne(t, c, o)
		if err != nil {
			checkOverflow(t, c, o, err)
			if stepErr == nil {
				t.Fatalf("at once %v, step by step it fits", err)
			}
			return
		}
		if stepErr != nil {
			t.Fatalf("step by step: %v", stepErr)
		}
		checkView(t, c, v, o)
		filled, err := window.Fill(c, o)
		if err != nil {
			t.Fatalf("all at once: %v", err)
		}
		checkView(t, c, filled, o)
		again, err := window.Trim(c, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fingerprintOf(t, v), fingerprintOf(t, again)); diff != "" {
			t.Fatalf("a second view of the same differs:\n%s", diff)
		}
		if diff := cmp.Diff(fingerprintOf(t, v), fingerprintOf(t, stepwise)); diff != "" {
			t.Fatalf("step by step differs:\n%s", diff)
		}
	})
}

// addOneByOne plans a context one entry at a time, looking at the view each
// time, and checks that looking never changes an earlier view.
func addOneByOne(t *rapid.T, c *session.Context, o window.Options) (*window.View, error) {
	p, err := window.NewPlanner(o)
	if err != nil {
		t.Fatal(err)
	}
	var v, last *window.View
	var bytesOfLast []byte
	for i := range c.Entries {
		p.Add(c.Entries[i])
		v, err = p.View()
		if last != nil && !bytes.Equal(bytesOfLast, snapshot(t, last.Entries)) {
			t.Fatal("an earlier view has changed")
		}
		if last = v; v != nil {
			bytesOfLast = snapshot(t, v.Entries)
		}
	}
	if len(c.Entries) == 0 {
		return p.View()
	}
	return v, err
}

func checkOverflow(t *rapid.T, c *session.Context, o window.Options, err error) {
	var over *window.OverflowError
	if !errors.As(err, &over) || !errors.Is(err, session.ErrTooLarge) {
		t.Fatalf("error is %v", err)
	}
	if over.Over() <= 0 {
		t.Fatalf("%v is over by %d", err, over.Over())
	}
	system := 0
	for i := range c.Entries {
		if window.CategoryOf(&c.Entries[i]) == window.System {
			system += window.CountEntry(window.Estimate("", ""), "", &c.Entries[i]).Tokens
		}
	}
	if over.Category == window.System && over.Unit == window.Tokens && (over.Need != system || over.Budget != o.Budget.Room()) {
		t.Fatalf("%v, but SYSTEM has %d tokens of %d", err, system, o.Budget.Room())
	}
}

// checkView checks what holds for every view.
func checkView(t *rapid.T, c *session.Context, v *window.View, o window.Options) {
	checkBudget(t, v, o.Budget)
	checkSums(t, c, v)
	checkSystem(t, c, v)
	checkGroups(t, c, v)
	checkImages(t, v, o.Images)
	checkPrompt(t, c, v)
	checkNeed(t, c, v, o.Budget)
}

// checkPrompt makes sure that the user's newest words stay as long as anything does
// besides SYSTEM and the newest group.
func checkPrompt(t *rapid.T, c *session.Context, v *window.View) {
	at := -1
	for i, e := range c.Entries {
		if e.BeginsTurn() && window.CategoryOf(&e) == window.Dialog {
			at = i
		}
	}
	kept := make(map[string]bool)
	for _, e := range v.Entries {
		kept[e.ID] = true
	}
	if at < 0 || kept[c.Entries[at].ID] {
		return
	}
	var others []session.Entry
	for _, e := range v.Entries {
		if window.CategoryOf(&e) != window.System {
			others = append(others, e)
		}
	}
	if groups := session.CutPoints(others); len(groups) > 1 {
		t.Fatalf("the prompt %s went, and of others stayed %v", c.Entries[at].ID, idsOf(others))
	}
}

// checkNeed makes sure that nothing goes from a window that holds it all.
func checkNeed(t *rapid.T, c *session.Context, v *window.View, b window.Budget) {
	var whole window.Cost
	for i := range c.Entries {
		cost := window.CountEntry(window.Estimate("", ""), "", &c.Entries[i])
		whole.Tokens += cost.Tokens
		whole.Bytes += cost.Bytes
	}
	if b.Strict || whole.Tokens > b.Room() || b.Bytes > 0 && whole.Bytes > b.Bytes {
		return
	}
	for _, o := range v.Report.Omissions {
		if o.Kind != window.ImageLeftOut {
			t.Fatalf("all %+v fit, and still: %+v", whole, o)
		}
	}
}

func checkBudget(t *rapid.T, v *window.View, b window.Budget) {
	if b.Tokens > 0 && v.Report.Tokens > b.Tokens-b.Reserve {
		t.Fatalf("the view has %d tokens of %d", v.Report.Tokens, b.Tokens)
	}
	if b.Bytes > 0 && v.Report.Bytes > b.Bytes {
		t.Fatalf("the view has %d bytes of %d", v.Report.Bytes, b.Bytes)
	}
}

// checkSums adds everything up again.
func checkSums(t *rapid.T, c *session.Context, v *window.View) {
	r := v.Report
	tokens, size, left, entries, omitted := 0, 0, 0, 0, 0
	for _, cost := range v.Costs {
		tokens += cost.Tokens
		size += cost.Bytes
	}
	sum := 0
	for _, part := range r.Categories {
		sum += part.Tokens
		left += part.LeftOutTokens
		entries += part.Entries
	}
	for _, o := range r.Omissions {
		omitted += o.Tokens
		if o.Why == "" || o.Tokens < 0 {
			t.Fatalf("omission %+v", o)
		}
	}
	whole := 0
	for i := range c.Entries {
		whole += window.CountEntry(window.Estimate("", ""), "", &c.Entries[i]).Tokens
	}
	if tokens != r.Tokens || sum != r.Tokens || size != r.Bytes || entries != len(v.Entries) || len(v.Costs) != len(v.Entries) {
		t.Fatalf("costs %d tokens %d bytes, categories %d tokens %d entries, view of %d entries, report %+v", tokens, size, sum, entries, len(v.Entries), r)
	}
	if left != r.LeftOutTokens || omitted != left || tokens+left != whole {
		t.Fatalf("left out %d by category, %d by omission, %d in all; %d are left of %d", left, omitted, r.LeftOutTokens, tokens, whole)
	}
}

func checkSystem(t *rapid.T, c *session.Context, v *window.View) {
	var want, got []session.Entry
	for _, e := range c.Entries {
		if window.CategoryOf(&e) == window.System {
			want = append(want, e)
		}
	}
	for _, e := range v.Entries {
		if window.CategoryOf(&e) == window.System {
			got = append(got, e)
		}
	}
	if !bytes.Equal(snapshot(t, want), snapshot(t, got)) {
		t.Fatalf("%d SYSTEM messages became %d, or other ones", len(want), len(got))
	}
}

// checkGroups makes sure that every call has its result and every result its
// call, that responses are whole, and that the order is the context's.
func checkGroups(t *rapid.T, c *session.Context, v *window.View) {
	calls, results := callsAndResults(v.Entries)
	slices.Sort(calls)
	slices.Sort(results)
	if !slices.Equal(calls, results) {
		t.Fatalf("calls %v, results %v", calls, results)
	}
	kept := make(map[string]bool)
	at := 0
	for _, e := range v.Entries {
		kept[e.ID] = true
		for at < len(c.Entries) && c.Entries[at].ID != e.ID {
			at++
		}
		if at == len(c.Entries) {
			t.Fatalf("entry %s is out of order", e.ID)
		}
	}
	responses := make(map[string]bool)
	for _, e := range c.Entries {
		if e.Message == nil || e.Message.ResponseID == "" {
			continue
		}
		if was, seen := responses[e.Message.ResponseID]; seen && was != kept[e.ID] {
			t.Fatalf("response %s was split", e.Message.ResponseID)
		}
		responses[e.Message.ResponseID] = kept[e.ID]
	}
}

func callsAndResults(entries []session.Entry) (calls, results []string) {
	for _, e := range entries {
		if e.Message == nil {
			continue
		}
		for _, b := range e.Message.Content {
			switch {
			case b.ToolUse != nil:
				calls = append(calls, b.ToolUse.ID)
			case b.ToolResult != nil:
				results = append(results, b.ToolResult.ToolUseID)
			}
		}
	}
	return calls, results
}

func checkImages(t *rapid.T, v *window.View, most int) {
	switch most {
	case window.AllImages:
		return
	case window.NoImages:
		most = 0
	case 0:
		most = 1
	}
	if n := strings.Count(string(snapshot(t, v.Entries)), `"type":"image"`); n > most {
		t.Fatalf("the view has %d images of at most %d", n, most)
	}
}
