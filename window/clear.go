package window

import "github.com/coppice-dev/coppice/session"

// ClearOptions says which tool results are cleared.
type ClearOptions struct {
	// Counter counts. Default: what Chooser picks for the model in force.
	Counter Counter
	// KeepTokens is how much of the conversation's end is left as it is.
	// Default: 20,000.
	KeepTokens int
	// MinTokens is the smallest result that is worth clearing. Default: 500.
	MinTokens int
	// AtLeast is how many tokens must be gained; with less nothing is cleared.
	// Each time costs the prompt cache of all that follows, so it should be
	// worth it. Default: 5,000.
	AtLeast int
	// Protect are the names of tools whose results are never cleared.
	Protect []string
}

// Cleared is a message whose tool results are replaced by stubs.
type Cleared struct {
	EntryID string
	EditID  string   // the context edit; "" in a plan
	Tools   []string // the names of the tools whose results are cleared
	Tokens  int      // what is gained
}

// PlanClear returns what Clear would clear, and writes nothing.
func PlanClear(c *session.Context, o ClearOptions) ([]Cleared, error) { panic("soon") }

// Clear replaces old large tool results by stubs, in the context from here on:
// it appends context edits, all at once. The log keeps the results; Restore, or
// Session.Revert of each edit, brings them back.
func Clear(s *session.Session, o ClearOptions) ([]Cleared, error) { panic("soon") }

// Restore takes back what Clear did.
func Restore(s *session.Session, cleared []Cleared) error { panic("soon") }
