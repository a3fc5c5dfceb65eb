package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

type weather struct {
	City string   `json:"city" jsonschema:"where"`
	Days int      `json:"days,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

func TestToolOfAFunction(t *testing.T) {
	t.Parallel()
	var got weather
	tool, err := agent.NewTool("weather", "Tell the weather.", func(_ context.Context, call agent.Call, in weather) (agent.Result, error) {
		got = in
		return agent.Result{Text: call.ID + " rain"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"city":{"type":"string","description":"where"},"days":{"type":"integer"},` +
		`"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`
	if string(tool.Schema) != want || tool.Name != "weather" || tool.Description == "" {
		t.Errorf("%s", tool.Schema)
	}
	r, err := tool.Run(t.Context(), agent.Call{ID: "1", Input: json.RawMessage(`{"city":"Bern","days":null,"tags":["a"]}`)})
	if err != nil || r.IsError || r.Text != "1 rain" || got.City != "Bern" || len(got.Tags) != 1 {
		t.Errorf("%+v, %+v: %v", r, got, err)
	}
	for input, want := range map[string]string{
		`{}`:                          `missing properties: ["city"]; the arguments are city, days, tags`,
		`{"city":7}`:                  `city: type: 7 has type "integer", want "string"`,
		`{"city":"a","City":"b"}`:     `unexpected additional properties ["City"]`,
		`{"city":"a","city":"b"}`:     `"city" is given twice`,
		`{"city":"a","tags":["",1]}`:  `tags/items: type: 1`,
		`{"city":"a","days":1e99}`:    `cannot be read`,
		`["a"]`:                       `not a JSON object`,
		`{"city":"a"`:                 `not a JSON object`,
		`{"city":"a","days":"three"}`: `days: type: three has type "string", want "integer"`,
	} {
		r, err := tool.Run(t.Context(), agent.Call{Input: json.RawMessage(input)})
		if err != nil || !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v, %v, want %q", input, r, err, want)
		}
	}
	if _, err := agent.NewTool("x", "", func(context.Context, agent.Call, struct{ F func() }) (agent.Result, error) {
		return agent.Result{}, nil
	}); err == nil {
		t.Error("a function is no argument")
	}
	if _, err := agent.NewTool("x", "", func(context.Context, agent.Call, string) (agent.Result, error) { return agent.Result{}, nil }); err == nil {
		t.Error("a string is no struct")
	}
	if _, err := agent.Arguments[int](nil); err == nil {
		t.Error("a number is no struct")
	}
}

// Nobody is asked about a call that cannot run: the model is told at once. A call before it
// may change that, so then it asks.
func TestACallThatCannotRunDoesNotAsk(t *testing.T) {
	t.Parallel()
	var asked []string
	typed, err := agent.NewTool("typed", "", func(context.Context, agent.Call, weather) (agent.Result, error) {
		return agent.Result{Text: "rain"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wild := echo("wild")
	wild.Check = func(agent.Call) error { panic("no idea") }
	typed.Ask, wild.Ask = agent.AskAlways, agent.AskAlways
	a := start(t, agent.Options{Tools: []agent.Tool{typed, wild}, Approve: func(_ context.Context, c agent.Call) (agent.Decision, error) {
		asked = append(asked, c.Name+" "+string(c.Input))
		return agent.Allow, nil
	}})
	for prompt, want := range map[string]string{
		`call typed {"city":7}`:                                        "",
		`call typed {"city":"Bern"}`:                                   `typed {"city":"Bern"}`,
		`call wild {"text":"x"}`:                                       `wild {"text":"x"}`,
		"call wild {\"text\":\"x\"}\ncall typed {\"city\":7}":          `wild {"text":"x"}|typed {"city":7}`,
		"call typed {}\ncall typed {}\ncall typed {\"city\":\"Bern\"}": `typed {"city":"Bern"}`,
	} {
		asked = nil
		if out := send(t, a, prompt); strings.Join(asked, "|") != want || strings.Contains(session.TextOf(out.Message.Content), "typed failed: the arguments do not fit") != (strings.Contains(prompt, "7") || strings.Contains(prompt, "{}")) {
			t.Errorf("%s: asked about %q, want %q: %s", prompt, asked, want, session.TextOf(out.Message.Content))
		}
	}
}

// What cannot work is refused where it is written.
func TestToolsThatCannotWork(t *testing.T) {
	t.Parallel()
	run := func(context.Context, agent.Call, struct{}) (agent.Result, error) { return agent.Result{}, nil }
	for _, name := range []string{"", "two words"} {
		if _, err := agent.NewTool(name, "x", run); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("a tool with the name %q: %v", name, err)
		}
	}
	run = nil
	if _, err := agent.NewTool("one", "x", run); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a tool without a function: %v", err)
	}
	if _, err := agent.New(nil, agent.Options{Model: &offline.Model{}}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an agent without a session: %v", err)
	}
}
