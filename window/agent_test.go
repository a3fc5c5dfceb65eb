package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// One large result fits an empty window whole: a share is what a category is sure
// of, not a ceiling.
func TestOneLargeResultIsSentWhole(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Read it."))
	b.message(session.RoleAssistant, session.ToolUse("c", "read", map[string]any{"path": "garden.txt"}))
	text := strings.Repeat("All roses are red. ", 1468) // 27,892 bytes
	b.message(session.RoleTool, session.ToolResult("c", text, false))
	for name, view := range map[string]func(*session.Context, window.Options) (*window.View, error){"Trim": window.Trim, "Fill": window.Fill} {
		v := must(view(b.context(), window.Options{Budget: window.Budget{Tokens: 100_000}}))(t)
		if len(v.Entries) != 3 || v.Entries[2].Message.Content[0].ToolResult.Content != text || len(v.Report.Omissions) > 0 {
			t.Errorf("%s: the view has %d tokens of 100,000 and lacks %+v", name, v.Report.Tokens, v.Report.Omissions)
		}
	}
}

// agentSession is what a coding agent leaves behind: questions, and for each some
// steps with results of very different sizes.
func agentSession(seed uint64, turns int) *builder {
	rng := rand.New(rand.NewPCG(seed, 2))
	b := &builder{}
	b.message(session.RoleSystem, session.Text(words(300)))
	for range turns {
		b.message(session.RoleUser, session.Text(words(5+rng.IntN(100))))
		for range rng.IntN(12) {
			b.toolTurn(1+rng.IntN(2), 10+int(600*rng.ExpFloat64()), true, false)
		}
		b.message(session.RoleAssistant, session.Text(words(20+rng.IntN(200))))
	}
	return b
}

// Decided at once, a window is filled.
func TestFillUsesTheWindow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		c := agentSession(seed, 40).context()
		v := must(window.Fill(c, window.Options{Budget: window.Budget{Tokens: 20_000}}))(t)
		if got := v.Report.Tokens; got > 20_000 || got < 19_000 {
			t.Errorf("seed %d: the view has %d of 20,000 tokens, and leaves out %d", seed, got, v.Report.LeftOutTokens)
		}
	}
	_, err := window.Fill(&session.Context{}, window.Options{Budget: window.Budget{Tokens: -1}})
	if err == nil {
		t.Error("a budget of -1 is filled")
	}
}

// In one long turn the question is the oldest thing there is. It stays while the
// steps go, also when these are calls with much input and results of one word.
func TestPromptOfALongTurnStays(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleSystem, session.Text("You tend a garden."))
	b.message(session.RoleUser, session.Text("Hello."))
	b.message(session.RoleAssistant, session.Text(words(50)))
	prompt := fmt.Sprintf("e%05d", len(b.entries))
	b.message(session.RoleUser, session.Text("Plant three hundred roses. "+words(50)))
	for range 300 {
		b.message(session.RoleAssistant, session.ToolUse("c", "write", map[string]any{"text": words(400)}))
		b.message(session.RoleTool, session.ToolResult("c", "ok", false))
	}
	for _, cutTo := range []int{0, 100} {
		v := must(window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: 5000, CutTo: cutTo}}))(t)
		if ids := idsOf(v.Entries); !slices.Contains(ids, prompt) {
			t.Errorf("cut to %d: the prompt is not in %v", cutTo, ids)
		}
	}
	// The next turn's prompt takes its place.
	next := fmt.Sprintf("e%05d", len(b.entries))
	b.message(session.RoleUser, session.Text("And now tulips."))
	for range 300 {
		b.message(session.RoleAssistant, session.ToolUse("d", "write", map[string]any{"text": words(400)}))
		b.message(session.RoleTool, session.ToolResult("d", "ok", false))
	}
	v := must(window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: 5000}}))(t)
	if ids := idsOf(v.Entries); slices.Contains(ids, prompt) || !slices.Contains(ids, next) {
		t.Errorf("of the prompts %s and %s, the view has %v", prompt, next, ids)
	}
}

// A step that needs all the room takes that of the prompt, but only until the next
// step: then the large one goes, and the prompt is there again.
func TestPromptComesBackAfterALargeStep(t *testing.T) {
	t.Parallel()
	b := &builder{}
	say := func(tokens int, role session.MessageRole, content session.Content) {
		b.message(role, content).Tokens = &tokens
	}
	say(10, session.RoleSystem, session.Text("You tend a garden."))
	say(50, session.RoleUser, session.Text("Plant roses."))
	prompt := b.entries[1].ID
	p := must(window.NewPlanner(window.Options{Budget: window.Budget{Tokens: 1000}}))(t)
	var views []*window.View
	step := func(size int) []string {
		say(size, session.RoleAssistant, session.ToolUse("c", "write", map[string]any{"text": "roses"}))
		say(10, session.RoleTool, session.ToolResult("c", "ok", false))
		p.Add(b.entries[len(b.entries)-2:]...)
		v := must(p.View())(t)
		views = append(views, v)
		same := must(window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: 1000}}))(t)
		if diff := cmp.Diff(fingerprintOf(t, same), fingerprintOf(t, v)); diff != "" {
			t.Fatalf("(-at once +step by step):\n%s", diff)
		}
		return idsOf(v.Entries)
	}
	p.Add(b.entries...)
	for range 3 {
		step(100)
	}
	large := step(960)
	if slices.Contains(large, prompt) || len(large) != 3 {
		t.Fatalf("the view of the large step is %v", large)
	}
	omitted := views[3].Report.Omissions
	if last := omitted[len(omitted)-1]; last.EntryID != prompt || last.Kind != window.LeftOut {
		t.Errorf("the last omission is %+v, want the prompt's", last)
	}
	if next := step(20); !slices.Contains(next, prompt) || len(next) != 4 {
		t.Errorf("after the large step, the view is %v", next)
	}
	if slices.ContainsFunc(views[4].Report.Omissions, func(o window.Omission) bool { return o.EntryID == prompt }) {
		t.Error("the prompt is there and was left out")
	}
	if omitted[len(omitted)-1].EntryID != prompt {
		t.Error("an earlier view has changed")
	}
}

// A prompt that is larger than the window is shortened, not left out.
func TestLargePromptIsShortened(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("Sum this up: "+words(3000)))
	for range 30 {
		b.toolTurn(1, 100, true, false)
	}
	v := must(window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: 2000}}))(t)
	if first := v.Entries[0]; first.ID != b.entries[0].ID || !strings.HasPrefix(session.TextOf(first.Message.Content), "Sum this up") {
		t.Errorf("the view begins with %v", idsOf(v.Entries))
	}
}
