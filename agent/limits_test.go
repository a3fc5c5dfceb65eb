package agent_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// busy is a model that calls a tool in every answer but the last of six.
func busy(name string, answer func(step int) error) provider.Func {
	info := provider.Info{Provider: "p", Model: name}
	info.Retries.Most = 1
	return provider.Func{About: info, Answer: func(_ context.Context, r *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		step := len(r.Entries) / 2
		if err := answer(step); err != nil {
			_ = tell("half of " + name)
			return nil, err
		}
		m := &session.MessageEntry{Provider: "p", Model: name, Content: []session.Content{session.Text("done by " + name)}, Usage: &session.Usage{Input: 90, Output: 10}}
		if step < 5 {
			m.Content = []session.Content{session.ToolUseJSON(session.NewID(), "one", []byte(`{"text":"x"}`))}
		}
		return m, nil
	}}
}

func always(err error) func(int) error { return func(int) error { return err } }

// TestFallback: when a model does not answer, the next one finishes the turn, in the middle
// of its work too. The log and the events say so.
func TestFallback(t *testing.T) {
	t.Parallel()
	asked := 0
	first := busy("first", func(step int) error {
		if asked++; step < 2 {
			return nil
		}
		return &provider.Error{Kind: provider.ErrUnavailable, Provider: "p", Message: "Overloaded"}
	})
	missing := busy("missing", always(&provider.Error{Kind: session.ErrInvalid, Provider: "p", Status: 404}))
	a := start(t, agent.Options{
		Model: first, Fallback: []provider.Model{missing, busy("second", always(nil))}, Tools: []agent.Tool{echo("one")}, RetryWait: 1,
	})
	news := a.Subscribe(0)
	out := send(t, a, "go")
	if text := session.TextOf(out.Message.Content); text != "done by second" || out.Steps != 6 || asked != 4 {
		t.Errorf("%q after %d steps; the first model was asked %d times", text, out.Steps, asked)
	}
	var changes []string
	for e, err := range a.Session().Entries() {
		if err == nil && e.ModelChange != nil {
			changes = append(changes, e.ModelChange.ModelID)
		}
	}
	if want := []string{"first", "missing", "second"}; !slices.Equal(changes, want) {
		t.Errorf("the log has the models %q, want %q", changes, want)
	}
	if all := strings.Join(said(t, a.Session()), "\n"); strings.Contains(all, "half of") {
		t.Errorf("the conversation has what broke off:\n%s", all)
	}
	send(t, a, "again")
	if asked != 6 { // twice more, because it fails
		t.Errorf("the next turn must begin with the first model, which was asked %d times", asked)
	}
	check(t, a.Session())
	_ = a.Close()
	var told []string
	for e := range news.Events(t.Context()) {
		if e.Type == agent.Error {
			told = append(told, e.Error)
		}
	}
	if len(told) < 2 || !strings.Contains(told[0], "continues with p/missing, because p/first does not answer") || !strings.Contains(told[0], "Overloaded") {
		t.Errorf("the events say %q", told)
	}
}

// TestNoFallback: what another model cannot help, or nobody wants any more, ends the turn.
func TestNoFallback(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{
		"denied":    &provider.Error{Kind: provider.ErrDenied, Provider: "p"},
		"cancelled": context.Canceled,
		"last":      &provider.Error{Kind: provider.ErrLimited, Provider: "p", Code: "insufficient_quota"},
	} {
		a := start(t, agent.Options{Model: busy("m", always(cause)), Fallback: []provider.Model{busy("n", always(cause))}, RetryWait: 1})
		_, err := a.Send(t.Context(), session.Text("go"))
		n := len(records(t, a.Session()))
		if want := map[string]int{"denied": 1, "cancelled": 1, "last": 2}[name]; !errors.Is(err, cause) || n != want {
			t.Errorf("%s: %d requests, want %d; %v", name, n, want, err)
		}
	}
}

// TestBudget: a turn that has used up its budget ends with a reason that the log has too,
// and goes on when it is resumed.
func TestBudget(t *testing.T) {
	t.Parallel()
	price := func(model provider.Info, u session.Usage) int { return u.Input * 1000 }
	for name, tt := range map[string]struct {
		o     agent.Options
		stop  string
		steps int
		why   string
	}{
		"steps":  {agent.Options{MaxSteps: 2}, agent.StopMaxSteps, 2, "the model was asked 2 times in this turn"},
		"tokens": {agent.Options{Budget: agent.Budget{Tokens: 250}}, agent.StopBudget, 3, "the turn has used 300 of 250 tokens"},
		"cost":   {agent.Options{Budget: agent.Budget{MicroUSD: 180_000, Price: price}}, agent.StopBudget, 2, "the turn has cost $0.18 of $0.18"},
		"time":   {agent.Options{Budget: agent.Budget{Time: time.Nanosecond}}, agent.StopBudget, 1, "the turn has taken 0s of 1ns"},
		"no cost": {
			agent.Options{Budget: agent.Budget{MicroUSD: 1, Tokens: 1000, Time: time.Hour}},
			provider.StopEndTurn, 6, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.o.Model, tt.o.Tools = busy("m", always(nil)), []agent.Tool{echo("one")}
			a := start(t, tt.o)
			out := send(t, a, "go")
			if out.Stop != tt.stop || out.Steps != tt.steps || out.Why != tt.why {
				t.Fatalf("stop %q after %d steps, %q", out.Stop, out.Steps, out.Why)
			}
			all := records(t, a.Session())
			if last := all[len(all)-1]; tt.why != "" && last.Error != "it was not sent: "+tt.why || len(all) < tt.steps {
				t.Errorf("%d records, the last is %+v", len(all), last)
			}
			for n := 0; out.Stop != provider.StopEndTurn; n++ {
				var err error
				if out, err = a.Resume(t.Context()); err != nil || n > 5 {
					t.Fatal(out, err)
				}
			}
			if lines := said(t, a.Session()); lines[len(lines)-1] != "assistant: done by m" {
				t.Errorf("the conversation is %q", lines)
			}
			check(t, a.Session())
		})
	}
}

// However a turn hands on its work, to tasks side by side and to tasks of tasks, it asks no more
// often than it may.
func TestTasksCountInTheSteps(t *testing.T) {
	t.Parallel()
	const most = 25
	var asked atomic.Int64
	endless := answers(func(r *provider.Request) (*session.MessageEntry, error) {
		n := asked.Add(1)
		if n > 10*most {
			return nil, errors.New("it goes on for ever")
		}
		m := &session.MessageEntry{StopReason: provider.StopToolUse}
		for i := range 3 {
			name := r.Tools[min(i, len(r.Tools)-1)].Name
			m.Content = append(m.Content, session.ToolUse(fmt.Sprint("c", n, "-", i), name, map[string]any{"description": "more", "prompt": "go on"}))
		}
		return m, nil
	})
	one := echo("one")
	inner := taskTool(t, agent.TaskOptions{Tools: []agent.Tool{one}})
	outer := taskTool(t, agent.TaskOptions{Tools: []agent.Tool{inner, one}})
	a := start(t, agent.Options{Model: endless, Tools: []agent.Tool{outer, one}, MaxSteps: most})
	for turn := range 2 {
		out, err := a.Send(t.Context(), session.Text("go"))
		if err != nil || out.Stop != agent.StopMaxSteps || out.Steps != most {
			t.Errorf("%+v, %v", out, err)
		}
		if got := asked.Load(); got != int64(most*(turn+1)) {
			t.Errorf("after %d turns the model was asked %d times", turn+1, got)
		}
	}
	check(t, a.Session())
}

// A message that is larger than the window is not sent, and not kept either: it would be in the
// way of everything after it.
func TestAMessageLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	asked := 0
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: 2000}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		asked++
		return &session.MessageEntry{Content: []session.Content{session.Text("yes")}}, nil
	}}
	a := start(t, agent.Options{Model: model})
	_, err := a.Send(t.Context(), session.Text(strings.Repeat("many words ", 2000)))
	if !errors.Is(err, session.ErrInvalid) || !regexp.MustCompile(`about \d{4,} tokens.* has 2000.*in parts`).MatchString(err.Error()) || asked != 0 {
		t.Errorf("%d requests: %v", asked, err)
	}
	send(t, a, "few words")
	if got := said(t, a.Session()); asked != 1 || len(got) != 2 {
		t.Errorf("%d requests, and the log has %d messages", asked, len(got))
	}
}
