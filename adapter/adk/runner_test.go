package adk_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	coppice "github.com/coppice-dev/coppice/session"
)

// modelFunc is a model that is a function.
type modelFunc func(req *model.LLMRequest) *genai.Content

func (modelFunc) Name() string { return "gardener" }

func (f modelFunc) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{
			Content: f(req), ModelVersion: "gardener-1", FinishReason: genai.FinishReasonStop, TurnComplete: true,
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CandidatesTokenCount: 5, TotalTokenCount: 15},
		}, nil)
	}
}

// waterThenTell calls the tool "water" for every plant that the user names, and tells what
// it answered.
func waterThenTell(req *model.LLMRequest) *genai.Content {
	last := req.Contents[len(req.Contents)-1]
	var calls []*genai.Part
	var told []string
	for _, p := range last.Parts {
		switch {
		case p.FunctionResponse != nil:
			told = append(told, fmt.Sprint(p.FunctionResponse.Response["said"]))
		case p.Text != "":
			for plant := range strings.FieldsSeq(p.Text) {
				calls = append(calls, genai.NewPartFromFunctionCall("water", map[string]any{"plant": plant}))
			}
		}
	}
	if len(calls) > 0 {
		return genai.NewContentFromParts(calls, genai.RoleModel)
	}
	return genai.NewContentFromText(strings.Join(told, ", "), genai.RoleModel)
}

type plant struct {
	Plant string `json:"plant"`
}

type answer struct {
	Said string `json:"said"`
}

func gardener(t testing.TB, c conversation, long bool) *runner.Runner {
	t.Helper()
	water := mustGet(functiontool.New(functiontool.Config{Name: "water", Description: "waters a plant", IsLongRunning: long},
		func(ctx agent.Context, p plant) (answer, error) {
			if err := ctx.State().Set("user:last", p.Plant); err != nil {
				return answer{}, err
			}
			return answer{p.Plant + " is wet"}, ctx.State().Set("wet "+p.Plant, true)
		}))(t)
	a := mustGet(llmagent.New(llmagent.Config{Name: "gardener", Model: modelFunc(waterThenTell), Tools: []tool.Tool{water}}))(t)
	return mustGet(runner.New(runner.Config{AppName: "app", Agent: a, SessionService: c, AutoCreateSession: true}))(t)
}

func run(t testing.TB, r *runner.Runner, id string, msg *genai.Content) []*session.Event {
	t.Helper()
	var events []*session.Event
	for e, err := range r.Run(t.Context(), "user", id, msg, agent.RunConfig{}) {
		mustDo(t, err)
		events = append(events, e)
	}
	return events
}

// requireSound makes sure that a session has no faults, which would be calls without
// results and the like.
func requireSound(t testing.TB, s *coppice.Session) {
	t.Helper()
	for _, p := range mustGet(s.Problems())(t) {
		t.Errorf("problem: %v", p)
	}
}

// gist returns a context in few words.
func gist(entries []coppice.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Message.Role)
		for _, c := range e.Message.Content {
			switch {
			case c.Text != nil:
				fmt.Fprintf(&b, " %q", c.Text.Content)
			case c.ToolUse != nil:
				fmt.Fprintf(&b, " %s(%v)", c.ToolUse.Name, c.ToolUse.Input["plant"])
			case c.ToolResult != nil:
				fmt.Fprintf(&b, " -> %s", c.ToolResult.Content)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A real agent calls tools, on a session that the rest of Coppice can read.
func TestRunnerKeepsAConversation(t *testing.T) {
	c := converse(t, fileStore(t, t.TempDir()), nil)
	r := gardener(t, c, false)
	run(t, r, "s", genai.NewContentFromText("rose oak", genai.RoleUser))
	run(t, gardener(t, c, false), "s", genai.NewContentFromText("ivy", genai.RoleUser))

	s := c.coppice()
	requireSound(t, s)
	entries := mustGet(s.GetContext())(t)
	want := `user "rose oak"
assistant water(rose) water(oak)
tool -> {"said":"rose is wet"} -> {"said":"oak is wet"}
assistant "rose is wet, oak is wet"
user "ivy"
assistant water(ivy)
tool -> {"said":"ivy is wet"}
assistant "ivy is wet"
`
	if got := gist(entries); got != want {
		t.Errorf("the context is\n%s\nwant\n%s", got, want)
	}
	if m := entries[3].Message; m.Model != "gardener-1" || m.Usage == nil || m.Usage.Input != 10 || m.Usage.Output != 5 || m.StopReason != "end_turn" {
		t.Errorf("the answer says %q, %+v, %q", m.Model, m.Usage, m.StopReason)
	}
	got := c.get("s", 0)
	if n := got.Events().Len(); n != 8 {
		t.Errorf("%d events, want 8", n)
	}
	for key, want := range map[string]any{"wet rose": true, "wet oak": true, "wet ivy": true, "user:last": "ivy"} {
		if v, err := got.State().Get(key); v != want || err != nil {
			t.Errorf("state %q is %v, %v; want %v", key, v, err, want)
		}
	}
}

// A tool that runs for long answers a second time, when it is done. The model hears of it, and
// the call keeps its one result.
func TestSecondAnswerOfALongTool(t *testing.T) {
	c := converse(t, fileStore(t, t.TempDir()), nil)
	r := gardener(t, c, true)
	events := run(t, r, "s", genai.NewContentFromText("rose", genai.RoleUser))
	call := events[0].Content.Parts[0].FunctionCall
	later := genai.NewPartFromFunctionResponse("water", map[string]any{"said": "rose blooms"})
	later.FunctionResponse.ID = call.ID
	run(t, r, "s", genai.NewContentFromParts([]*genai.Part{later}, genai.RoleUser))

	s := c.coppice()
	requireSound(t, s)
	entries := mustGet(s.GetContext())(t)
	if got := gist(entries); !strings.Contains(got, "rose blooms") || strings.Count(got, "->") != 1 {
		t.Errorf("the context is\n%s", got)
	}
	found := false
	for e := range c.get("s", 0).Events().All() {
		for _, p := range e.Content.Parts {
			found = found || p.FunctionResponse != nil && p.FunctionResponse.Response["said"] == "rose blooms" && p.FunctionResponse.ID == call.ID
		}
	}
	if !found {
		t.Error("ADK does not get the second answer back as it was")
	}
}

// Calls without ids find their results, whatever order these come in.
func TestCallsWithoutIDs(t *testing.T) {
	c := converse(t, fileStore(t, t.TempDir()), nil)
	s := c.create("s", nil)
	c.append(s, text("user", "go"))
	for range 2 {
		c.append(s, contents(genai.NewPartFromFunctionCall("f", nil), genai.NewPartFromFunctionCall("g", nil)))
		results := contents(genai.NewPartFromFunctionResponse("g", map[string]any{"output": "of g"}), genai.NewPartFromFunctionResponse("f", map[string]any{"output": "of f"}))
		results.Content.Role = genai.RoleUser
		c.append(s, results)
	}
	log := c.coppice()
	requireSound(t, log)
	var pairs coppice.Pairs
	entries := mustGet(log.GetContext())(t)
	for i := range entries {
		pairs.Add(&entries[i])
	}
	refs := pairs.Refs()
	for _, ref := range refs {
		if !ref.Call {
			continue
		}
		name := entries[ref.Entry].Message.Content[ref.Block].ToolUse.Name
		result := refs[ref.Pair]
		if got := entries[result.Entry].Message.Content[result.Block].ToolResult.Content; got != "of "+name {
			t.Errorf("the call of %s is answered with %q", name, got)
		}
	}
	if len(refs) != 8 {
		t.Errorf("%d calls and results, want 8", len(refs))
	}
}
