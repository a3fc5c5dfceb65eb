package agent

import (
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// EventType says what an Event is about.
type EventType string

// The types of events, and the fields that each has besides the common ones.
const (
	TurnStart EventType = "turn_start" // a turn begins, or continues
	TurnEnd   EventType = "turn_end"   // Outcome, and Err if it failed

	Queued EventType = "queued" // Entry: what the user said waits until the turn gets to it

	MessageStart  EventType = "message_start"  // the model begins to answer
	MessageUpdate EventType = "message_update" // Update: the answer grows
	MessageEnd    EventType = "message_end"    // Entry: a message is in the log: the user's, the model's, or results
	// MessageDropped means that what was shown since MessageStart is void: the attempt
	// failed before anything could be kept. Err says why.
	MessageDropped EventType = "message_dropped"

	ToolWaiting EventType = "tool_waiting" // Call: it must be approved
	ToolStart   EventType = "tool_start"   // Call: it runs now
	ToolUpdate  EventType = "tool_update"  // Call, Text: what it says so far, see Progress
	ToolEnd     EventType = "tool_end"     // Call, Result: it has run, or was refused

	CompactionStart EventType = "compaction_start" // the summary is being written
	CompactionEnd   EventType = "compaction_end"   // Compacted, or Err if it failed

	Retry EventType = "retry" // Retry: the request failed and will be sent again
	Error EventType = "error" // Err: a failure that did not end the turn

	// CaughtUp means that others have continued the conversation since the last turn: Missed
	// messages, the last of which is Entry. The turn continues from there.
	CaughtUp EventType = "caught_up"
	// Missed means that this subscriber was too slow: Missed events were left out
	// before this one. The log has what they were about.
	Missed EventType = "missed"
)

// Event is a piece of news from an agent. Subscribers share what it points to, so
// they must not change it.
type Event struct {
	Type EventType `json:"type"`
	// Number counts the events of an agent, from 1.
	Number  int64     `json:"number"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"`

	Entry     *session.Entry  `json:"entry,omitempty"`
	Update    *provider.Event `json:"update,omitempty"`
	Call      *Call           `json:"call,omitempty"`
	Text      string          `json:"text,omitempty"`
	Result    *Result         `json:"result,omitempty"`
	Compacted *Compacted      `json:"compacted,omitempty"`
	Retry     *provider.Retry `json:"retry,omitempty"`
	Outcome   *Outcome        `json:"outcome,omitempty"`
	Missed    int64           `json:"missed,omitempty"`
	Error     string          `json:"error,omitempty"`

	// Err is the error itself, for errors.Is.
	Err error `json:"-"`
}

// Outcome is how a turn ended.
type Outcome struct {
	// Message is the model's last message, or nil if it said nothing; Entry is its id.
	Message *session.MessageEntry `json:"message,omitempty"`
	Entry   string                `json:"entry,omitempty"`
	// Stop is why the turn ended: the model's stop reason, or one of StopApproval,
	// StopMaxSteps and StopBudget. Why says in words which limit was reached.
	Stop  string `json:"stop"`
	Why   string `json:"why,omitempty"`
	Steps int    `json:"steps"` // how often a model was asked, in tasks too
	// Usage adds up what the requests of the turn cost, and those of its tasks.
	Usage session.Usage `json:"usage"`
	// Waiting are the calls that must be approved before the turn can continue.
	Waiting []Pending `json:"waiting,omitempty"`
}

// Stop reasons that come from the agent, not from a model.
const (
	StopApproval = "approval"  // calls wait for approval
	StopMaxSteps = "max_steps" // models were asked Options.MaxSteps times
	StopBudget   = "budget"    // a limit of Options.Budget was reached
)

// CallState says how far an unanswered call has come.
type CallState string

// The states of a call that has no result.
const (
	CallNew     CallState = "new"     // it never started
	CallWaiting CallState = "waiting" // it waits for approval
	CallAllowed CallState = "allowed" // it was approved, and never started
	CallRunning CallState = "running" // it was started, and may be half done
	// CallElsewhere means that it started on another branch, which may have its result.
	CallElsewhere CallState = "elsewhere"
)

// Pending is a call that has no result yet.
type Pending struct {
	Call
	Entry string    `json:"entry"` // the message that has the call
	State CallState `json:"state"`

	started    bool // by the running turn, which need not log it again
	order      int  // its place among the calls that are performed together
	approved   bool // by a person
	ours       bool // an agent of this store wrote it, in this conversation: see sign.go
	changed    bool // the person who approved it gave it other arguments
	denied     bool // on another branch
	found      bool // its arguments are those that the log has
	superseded bool // the user has spoken since
	cutOff     bool // with the answer that has it
}

// isDecidedLater reports whether approval was requested for the call, and it waits for the
// decision, or to be run after it.
func (p *Pending) isDecidedLater() bool {
	return !p.superseded && !p.denied && (p.State == CallWaiting || p.State == CallAllowed)
}

// Compacted says what a compaction did.
type Compacted struct {
	Entry        string `json:"entry"` // the compaction, for Undo
	FirstKept    string `json:"first_kept"`
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
	// Reason is why it happened: "window", "overflow" or "asked".
	Reason string `json:"reason"`
}

// Status describes an agent at one moment.
type Status struct {
	// Session is the one that the agent writes to, and Leaf the end of the conversation.
	Session string `json:"session"`
	Leaf    string `json:"leaf"`
	// Provider, Model and Thinking are what the next request goes to.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Thinking string `json:"thinking,omitempty"`
	// Tokens is the size of the next request's conversation: as reported where the
	// provider did, counted for the rest. Window is the model's; 0 if not known.
	Tokens int `json:"tokens"`
	Window int `json:"window,omitempty"`
	// Spent adds up what all responses of the session cost so far, on all branches.
	Spent session.Spent `json:"-"`
	Busy  bool          `json:"busy,omitempty"` // a turn is under way
}
