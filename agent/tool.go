package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Tool is something that a model may call.
type Tool struct {
	provider.Tool
	// Run does the work. It must return soon after ctx ends; otherwise the agent stops
	// waiting, and drops its result. An error becomes a result that says so.
	Run func(ctx context.Context, call Call) (Result, error)
	// Repeatable says that running a call twice does no more than running it once.
	// Only such a call is run again after the program died in the middle of it.
	Repeatable bool
	// Alone says that a call must not run beside other calls, nor before a decision about
	// one that comes before it.
	Alone bool
	// Ask reports whether a call must be approved before it runs (see Options.Approve),
	// and why, in words for the person who decides. It is called before every call of the
	// tool, even in parallel. If it asks or panics, the call never runs without approval; Run
	// may rely on that. Default: no call needs approval. See AskAlways.
	Ask func(call Call) (ask bool, reason string)
	// Check returns why a call cannot run, if that is known before anyone is asked about it.
	// The model gets the error at once. It is not called while earlier calls of the same
	// answer have yet to run: they may change the result. Default: the call fails when it
	// runs.
	Check func(call Call) error
	// Timeout is how long a call may take. Default: Options.ToolTimeout.
	Timeout time.Duration
	// Files returns the files that a call reads and changes, so that a summary can
	// name them. Default: what package summary knows about tools of that name.
	Files func(input json.RawMessage) (read, changed []string)

	startsTasks bool // see TaskTool
}

// Call is a model's request to run a tool.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the arguments: always a JSON object.
	Input json.RawMessage `json:"input"`
	// Session is the id of the session in which the call was made.
	Session string `json:"session,omitempty"`
	// Reason is why the call must be approved, as Tool.Ask gave it. It is set for
	// Options.Approve, and may be empty.
	Reason string `json:"reason,omitempty"`
}

// Progress shows subscribers what a running tool has to say so far, as a whole or its last
// lines. Each text replaces the one before, and none goes into the log. ctx is that of
// Tool.Run; after it has ended, Progress does nothing.
func Progress(ctx context.Context, text string) {
	if tell, ok := ctx.Value(progressKey{}).(func(string)); ok && ctx.Err() == nil {
		tell(text)
	}
}

// WithProgress returns a context for Tool.Run in which Progress calls tell. An agent
// publishes ToolUpdate events that way.
func WithProgress(ctx context.Context, tell func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

type progressKey struct{}

// AskAlways is for Tool.Ask: every call must be approved.
func AskAlways(Call) (bool, string) { return true, "" }

// Result is what a tool answers.
type Result struct {
	Text string `json:"text,omitempty"`
	// Parts is the answer if it is more than text, such as an image. Default: Text.
	Parts   []session.Content `json:"parts,omitempty"`
	IsError bool              `json:"is_error,omitempty"`

	endsTurn bool // the model has nothing to add to it
}

// Decision says whether a call may run.
type Decision string

// The decisions.
const (
	// Allow runs the call: see With.
	Allow Decision = "allow"
	// Deny answers the call with a refusal: see Because. The model continues.
	Deny Decision = "deny"
	// Later leaves the call waiting. The turn ends. Agent.Decide and Agent.Resume
	// continue from there, perhaps in another program on another day.
	Later Decision = "later"
)

// SameTools reports whether a model sees no difference between two lists of tools.
func SameTools(a, b []Tool) bool {
	return slices.EqualFunc(a, b, func(a, b Tool) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	})
}

// MaxToolName is the length of a tool's name in bytes that every provider accepts.
const MaxToolName = 64

// JoinTools combines tools from several sources. Of tools with the same name, the first keeps
// it, and the others get a number.
func JoinTools(lists ...[]Tool) []Tool {
	var all []Tool
	taken := make(map[string]bool)
	for _, t := range slices.Concat(lists...) {
		name := t.Name
		for n := 2; taken[name]; n++ {
			tag := fmt.Sprintf("_%d", n)
			name = t.Name[:min(len(t.Name), MaxToolName-len(tag))] + tag
		}
		t.Name, taken[name] = name, true
		all = append(all, t)
	}
	return all
}
