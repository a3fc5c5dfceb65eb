package home_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

// While one chat works on a conversation, another one is told which program does, and so is
// everyone who reads it.
func TestASecondChatIsToldWhoWorksThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var one *home.Chat
	ran := false
	wait := agent.Tool{Tool: provider.Tool{Name: "wait"}, Run: func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		ran = true
		id := one.Conversation().ID()
		other := h.chat(home.ChatRequest{Session: id})
		if _, err := other.Say(ctx, []session.Content{session.Text("me too")}); home.KindOf(err) != home.KindLocked {
			t.Errorf("the other says something: %v", err)
		}
		if err := inOtherProgram(ctx, h, id); home.KindOf(err) != home.KindLocked {
			t.Errorf("another program says something: %v", err)
		}
		shape, err := one.Conversation().Shape()
		if err != nil {
			return agent.Result{}, err
		}
		_, err = other.Branch(ctx, shape.ID(0), false)
		held, ok := errors.AsType[*lease.HeldError](err)
		if !ok || home.KindOf(err) != home.KindLocked {
			t.Errorf("the other goes back: %v", err)
			return agent.Result{}, err
		}
		path, err := h.Entries.Path(ctx, home.PathRequest{Session: id}, nil)
		if err != nil || path.Working == nil || *path.Working != held.Holder {
			t.Errorf("the result is %+v, %v", path, err)
		}
		drawn, err := one.Conversation().Rendered(ctx)
		if err != nil || drawn.Working != held.Holder.String() {
			t.Errorf("%q works there, %v", drawn.Working, err)
		}
		return agent.Result{Text: "done"}, nil
	}}
	one = h.chat(home.ChatRequest{}, wait)
	h.tell(one, `call wait {}`)
	if !ran {
		t.Error("the tool did not run")
	}
	path, err := h.Entries.Path(t.Context(), home.PathRequest{Session: one.Conversation().ID()}, nil)
	if err != nil || path.Working != nil {
		t.Errorf("works there now: %+v, %v", path, err)
	}
}

// inOtherProgram says something in a conversation, in a home of its own.
func inOtherProgram(ctx context.Context, h *house, id string) error {
	c, err := h.open(&home.Options{}).Chat(ctx, home.TurnOptions{ChatRequest: home.ChatRequest{Session: id}})
	if err != nil {
		return err
	}
	defer c.Close()
	turn, err := c.Say(ctx, []session.Content{session.Text("me too")})
	if err != nil {
		return err
	}
	_, err = turn.Listen(ctx, nil)
	return err
}

// While a chat goes back to an entry, no other program can begin a turn.
func TestAChatHoldsTheConversationThatItBranches(t *testing.T) {
	t.Parallel()
	var h *house
	var c *home.Chat
	var said error
	h, server := answering(t, "## Goal\nIt was the lexer.", func(*providertest.Answer) {
		said = inOtherProgram(t.Context(), h, c.Conversation().ID())
	})
	s := h.longStory()
	c = h.chat(home.ChatRequest{Session: s.ID()})
	moved, err := c.Branch(t.Context(), h.ids(s)[0], true)
	if err != nil || !moved.Moved || len(server.Requests()) != 1 {
		t.Fatalf("moved: %+v, %v", moved, err)
	}
	if home.KindOf(said) != home.KindLocked {
		t.Errorf("another program says something: %v", said)
	}
	e, err := c.Conversation().Entry(moved.Leaf)
	if err != nil || e.BranchSummary == nil {
		t.Errorf("the leaf is %+v, %v", e, err)
	}
}

// A chat can go back to an entry that another program added.
func TestAChatBranchesToWhatOthersAdded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.chat(home.ChatRequest{})
	h.tell(c, "one")
	here, err := c.Conversation().Resolve(home.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	id := c.Conversation().ID()
	if err := inOtherProgram(t.Context(), h, id); err != nil {
		t.Fatal(err)
	}
	added, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: id, Label: "added"})
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := c.Branch(t.Context(), here, false); err != nil || !moved.Moved || moved.Leaf != here || moved.Left != added.Target {
		t.Errorf("moved: %+v, %v", moved, err)
	}
	if moved, err := c.Branch(t.Context(), "added", false); err != nil || !moved.Moved || moved.Leaf != added.Target {
		t.Errorf("moved: %+v, %v", moved, err)
	}
	h.tell(c, "two")
	if s, err := c.Status(t.Context()); err != nil || s.Branches != 1 {
		t.Errorf("the status is %+v, %v", s, err)
	}
}

// A tool of the program around a chat is asked about as well. There are no rules for it.
func TestAChatAsksAboutTheToolsOfItsProgram(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ran := false
	dig := agent.Tool{
		Tool: provider.Tool{Name: "dig"},
		Ask:  func(agent.Call) (bool, string) { return true, "" },
		Run: func(context.Context, agent.Call) (agent.Result, error) {
			ran = true
			return agent.Result{Text: "a hole"}, nil
		},
	}
	c, err := h.Chat(t.Context(), home.TurnOptions{}, dig)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	turn, err := c.Say(t.Context(), []session.Content{session.Text("call dig {}")})
	if err != nil {
		t.Fatal(err)
	}
	heard := listen(t, func(send func(home.TurnEvent) error) (*home.TurnResult, error) { return turn.Listen(t.Context(), send) })
	asked := heard.until(agent.ToolWaiting)
	if asked.Question.NoRules == "" || len(asked.Question.Rules) > 0 {
		t.Errorf("the question is %+v", asked.Question)
	}
	if _, err := h.Turns.Approve(t.Context(), home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Rules: []string{"dig"}}); home.Describe(err).Field != "rules" {
		t.Errorf("a rule for it: %v", err)
	}
	if _, err := h.Turns.Approve(t.Context(), home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Allow}); err != nil {
		t.Error(err)
	}
	if out := heard.end(); !ran || !strings.Contains(text(out), "a hole") {
		t.Errorf("it ran: %v; the answer is %q", ran, text(out))
	}
}

// A turn goes on as it began. It obeys the rules that are added.
func TestAChatChangesWhileItsTurnRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dig := agent.Tool{
		Tool: provider.Tool{Name: "dig"},
		Ask:  func(agent.Call) (bool, string) { return true, "" },
		Run:  func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{Text: "a hole"}, nil },
	}
	c, err := h.Chat(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{CWD: t.TempDir()}}, dig)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	turn, err := c.Say(t.Context(), []session.Content{session.Text("call dig {}")})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"model": c.SetModel("offline/parrot"), "thinking": c.SetThinking("low"), "tools": c.SetTools(t.Context(), "bash"),
	} {
		if !errors.Is(err, agent.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Allow(t.Context(), "bash(ls)"); err != nil { // there were no rules before
		t.Error(err)
	}
	heard := listen(t, func(send func(home.TurnEvent) error) (*home.TurnResult, error) { return turn.Listen(t.Context(), send) })
	asked := heard.until(agent.ToolWaiting)
	if facts := heard.until(agent.TurnStart).Facts; facts.Model != "parrot" || !slices.Equal(facts.Tools, []string{"dig"}) {
		t.Errorf("the facts are %+v", facts)
	}
	if asked.Question.NoRules == "" || len(asked.Question.Rules) > 0 {
		t.Errorf("the question is %+v", asked.Question)
	}
	h.approve(home.ApproveRequest{Session: asked.Session, Call: asked.Call.ID, Decision: agent.Allow, Rules: []string{"bash(pwd)"}})
	heard.end()
	if rules, err := c.Allow(t.Context()); err != nil || !slices.Equal(rules, []string{"bash(ls)", "bash(pwd)"}) {
		t.Errorf("the rules are %v, %v", rules, err)
	}
}
