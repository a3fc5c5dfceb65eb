package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TaskOptions say how tasks work. Fields that are not set are as in the agent that starts
// them.
type TaskOptions struct {
	Model  provider.Model
	System string
	// Tools are what a task may use. Default: the agent's tools, except those that start
	// tasks.
	Tools []Tool
	// MaxSteps is how often the model may be asked in a task. Each time also counts in
	// Options.MaxSteps of the agent.
	MaxSteps int
}

// maxTask is how long a task may take. Budgets and cancelling end one earlier.
const maxTask = 24 * time.Hour

type taskInput struct {
	Description string `json:"description" jsonschema:"the task in three to five words"`
	Prompt      string `json:"prompt" jsonschema:"what to do, with all that must be known for it, and what to report"`
}

// TaskTool returns a tool with which a model hands a piece of work to another agent, and gets
// its last message as the result. The work is a session of its own, which begins with the
// prompt and is linked to the call. For several kinds of helpers, give each tool its own Name
// and Description. If the program dies, Resume continues the task where it was. Tasks of one
// answer run side by side. The agent's Approve decides about their calls that need approval;
// a call that it leaves for Later is denied. Their cost counts in the agent's Outcome and
// Budget, and is only in the logs of their own sessions.
func TaskTool(o TaskOptions) (Tool, error) {
	tool, err := NewTool("task", "Hands a piece of work to another agent, which starts without knowledge of this conversation, works on its own, "+
		"and reports once, at the end. Use it for searches and changes whose details you do not need.", o.run)
	tool.Repeatable, tool.Timeout, tool.startsTasks = true, maxTask, true // a task that was begun continues
	return tool, err
}

// runningCall is the call that a tool runs for, in the context of Tool.Run.
type runningCall struct {
	turn  *turn
	entry string // the message that has the call
}

type runningKey struct{}

func (o *TaskOptions) run(ctx context.Context, call Call, in taskInput) (Result, error) {
	by, ok := ctx.Value(runningKey{}).(runningCall)
	if !ok {
		return Result{}, errors.New("a task can only be started by an agent")
	}
	s, err := session.OpenSubagent(ctx, by.turn.s, by.entry, call.ID)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	a, err := New(s, o.options(by.turn, in.Description))
	if err != nil {
		return Result{}, err
	}
	defer a.Close()
	news := a.Subscribe(0)
	defer news.Close()
	go reportProgress(ctx, news)
	n, err := s.MessageCount()
	if err != nil {
		return Result{}, err
	}
	begin := a.Resume
	if n == 0 {
		begin = func(ctx context.Context) (*Outcome, error) { return a.Send(ctx, session.Text(in.Prompt)) }
	}
	out, err := begin(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("the task failed: %w", err)
	}
	return taskResult(a, out)
}

// options returns how the agent of a task works.
func (o *TaskOptions) options(t *turn, description string) Options {
	c := t.opts
	c.parent, c.Wait = t, true
	c.Budget = Budget{Price: t.opts.Budget.Price} // the turn's own limits hold
	c.System, c.MaxSteps = cmp.Or(o.System, c.System), cmp.Or(o.MaxSteps, c.MaxSteps)
	if o.Model != nil {
		c.Model, c.Fallback, c.Fields, c.Thinking = o.Model, nil, nil, ""
	}
	if c.Tools = o.Tools; c.Tools == nil {
		c.Tools = slices.DeleteFunc(slices.Clone(t.opts.Tools), func(tool Tool) bool { return tool.startsTasks })
	}
	c.Approve = func(ctx context.Context, call Call) (Decision, error) {
		call.Reason = strings.TrimSuffix("task "+description+": "+call.Reason, ": ")
		decision, err := t.decideAlone(ctx, call)
		if decision == Later && err == nil {
			decision = Deny.Because("a task cannot wait for a decision")
		}
		return decision, err
	}
	return c
}

// reportProgress reports which calls a task makes.
func reportProgress(ctx context.Context, news *Subscription) {
	for e := range news.Events(ctx) {
		if e.Type == ToolStart {
			Progress(ctx, "→ "+e.Call.Name)
		}
	}
}

// taskResult returns the last message of a task.
func taskResult(a *Agent, out *Outcome) (Result, error) {
	m := out.Message
	if m == nil { // it was done before
		last, err := a.keeper.lastMessage()
		if err != nil {
			return Result{}, err
		}
		if last != nil && last.Message.Role == session.RoleAssistant {
			m = last.Message
		}
	}
	r := Result{}
	if m != nil {
		r.Text = session.TextOf(m.Content)
		out.Stop = cmp.Or(out.Stop, m.StopReason)
	}
	switch {
	case out.Why != "":
		r.Text, r.IsError = strings.TrimSpace(r.Text+"\n[the task is not done: "+out.Why+"]"), true
	case strings.TrimSpace(r.Text) == "":
		r.Text, r.IsError = fmt.Sprintf("[the task ended without a word: %s]", out.Stop), true
	}
	return r, nil
}
