package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// ClearOptions says which tool results to clear.
type ClearOptions struct {
	// Counter counts. Default: what Chooser picks for the model in force.
	Counter Counter
	// KeepTokens is how much of the conversation's end is left as it is.
	// Default: 20,000.
	KeepTokens int
	// MinTokens is the smallest result that is worth clearing. Default: 500.
	MinTokens int
	// AtLeast is how many tokens must be gained; if it would be less, nothing is cleared.
	// Every clearing invalidates the prompt cache from there on, so it should be worth it.
	// Default: 5,000.
	AtLeast int
	// Protect are the names of tools whose results are never cleared.
	Protect []string
}

func (o ClearOptions) withDefaults(c *session.Context) (ClearOptions, error) {
	if o.KeepTokens < 0 || o.MinTokens < 0 || o.AtLeast < 0 {
		return o, fmt.Errorf("clear tool results: keep %d tokens, from %d on, gain %d: a number is negative: %w",
			o.KeepTokens, o.MinTokens, o.AtLeast, session.ErrInvalid)
	}
	if o.Counter == nil {
		o.Counter = Chooser{}.Counter(c.Provider, c.Model)
	}
	orDefault(&o.KeepTokens, DefaultKeep)
	orDefault(&o.MinTokens, 500)
	orDefault(&o.AtLeast, 5_000)
	return o, nil
}

func orDefault(n *int, value int) {
	if *n == 0 {
		*n = value
	}
}

// Cleared is a message whose tool results were replaced by stubs.
type Cleared struct {
	EntryID string
	EditID  string   // the context edit; "" in a plan
	Tools   []string // the names of the tools whose results are cleared
	Tokens  int      // what is gained

	replacement []session.Content
}

// PlanClear returns what Clear would clear, oldest first, and writes nothing. It
// returns nothing if too little would be gained.
func PlanClear(c *session.Context, o ClearOptions) ([]Cleared, error) {
	o, err := o.withDefaults(c)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]int) // how often an entry appears: a late result is apart from its message
	for i := range c.Entries {
		shown[c.Entries[i].ID]++
	}
	tools := make(map[string]string) // names by call id
	var plan []Cleared
	gain := 0
	for i := range c.Entries[:oldPart(c, o)] {
		e := &c.Entries[i]
		if e.Message == nil {
			continue
		}
		for _, b := range e.Message.Content {
			if b.ToolUse != nil {
				tools[b.ToolUse.ID] = b.ToolUse.Name
			}
		}
		if c.Edited[e.ID] != "" || shown[e.ID] > 1 || strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			continue // it was edited before, appears in parts, or is not in the log
		}
		if cleared, ok := o.clear(e, tools); ok {
			plan = append(plan, cleared)
			gain += cleared.Tokens
		}
	}
	if gain < o.AtLeast {
		return nil, nil
	}
	return plan, nil
}

// oldPart returns how many entries are older than the newest tokens, which are kept.
func oldPart(c *session.Context, o ClearOptions) int {
	whose := c.Provider + "/" + c.Model
	at, kept := len(c.Entries), 0
	for at > 0 {
		kept += CountEntry(o.Counter, whose, &c.Entries[at-1]).Tokens
		if kept > o.KeepTokens {
			break
		}
		at--
	}
	return at
}

// clear makes the stubs of one message's results.
func (o ClearOptions) clear(e *session.Entry, tools map[string]string) (Cleared, bool) {
	cleared := Cleared{EntryID: e.ID, replacement: slices.Clone(e.Message.Content)}
	for i, b := range e.Message.Content {
		if b.ToolResult == nil {
			continue
		}
		name := tools[b.ToolResult.ToolUseID]
		size := blockCost(o.Counter, "", &b)
		if size < o.MinTokens || slices.Contains(o.Protect, name) {
			continue
		}
		result := session.ToolResult(b.ToolResult.ToolUseID, stub(name, size), b.ToolResult.IsError)
		result.Extra, result.ToolResult.Extra = b.Extra, b.ToolResult.Extra
		cleared.replacement[i] = result
		cleared.Tools = append(cleared.Tools, name)
		cleared.Tokens += size - blockCost(o.Counter, "", &result)
	}
	return cleared, cleared.Tokens > 0
}

// stub returns the text that replaces a result.
func stub(tool string, tokens int) string {
	if tool == "" {
		return fmt.Sprintf("[result of about %d tokens cleared]", tokens)
	}
	return fmt.Sprintf("[result of %s, about %d tokens, cleared; call it again if needed]", tool, tokens)
}

// Clear replaces old, large tool results with stubs, in the context from here on: it
// appends context edits, all at once. The log keeps the results; Restore, or
// Session.Revert of each edit, brings them back. If too little would be gained, it
// writes nothing.
func Clear(s *session.Session, o ClearOptions) ([]Cleared, error) {
	c, err := s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	plan, err := PlanClear(c, o)
	if err != nil || len(plan) == 0 {
		return nil, err
	}
	edits := make([]session.Entry, len(plan))
	for i := range plan {
		edits[i] = session.ContextEdit(plan[i].EntryID, plan[i].replacement...)
	}
	ids, err := s.AppendAll(edits...)
	if err != nil {
		return nil, fmt.Errorf("clear tool results: %w", err)
	}
	for i := range plan {
		plan[i].EditID = ids[i]
	}
	return plan, nil
}

// Restore takes back what Clear did, all at once.
func Restore(s *session.Session, cleared []Cleared) error {
	reverts := make([]session.Entry, len(cleared))
	for i := range cleared {
		if cleared[i].EditID == "" {
			return fmt.Errorf("restore the results of entry %q: they were not cleared: %w", cleared[i].EntryID, session.ErrInvalid)
		}
		reverts[i] = session.Revert(cleared[i].EditID)
	}
	if len(reverts) == 0 {
		return nil
	}
	_, err := s.AppendAll(reverts...)
	if err != nil {
		return fmt.Errorf("restore tool results: %w", err)
	}
	return nil
}
