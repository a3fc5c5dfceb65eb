package transcript

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// order moves a result that comes just before its call to the place after it. Programs
// that write from several threads produce that, and a result without a waiting call is
// not sent. It handles records that follow each other in the order of the source; where
// records name their predecessor, their reader knows the order.
type order struct {
	open session.OpenCalls[struct{}]
	held []Record // results whose calls may come next
}

// next returns the records that can be passed on now that one more has come.
func (o *order) next(r Record) []Record {
	if r.Parent != "" || r.Entry.Message == nil {
		return append(o.rest(), r)
	}
	calls, results := callsIn(r.Entry.Message)
	early := len(results) > 0 && len(results) == len(r.Entry.Message.Content)
	for _, id := range results {
		early = early && !o.open.Has(id)
	}
	if early {
		o.held = append(o.held, r)
		return nil
	}
	for _, id := range calls {
		o.open.Call(id, struct{}{})
	}
	for _, id := range results {
		o.open.Result(id)
	}
	return o.withResults(r, calls)
}

// withResults returns a record followed by the results that waited for its calls. If there are
// none, it gives up waiting and returns all held results first.
func (o *order) withResults(r Record, calls []string) []Record {
	out := []Record{r}
	var waiting []Record
	for _, held := range o.held {
		_, results := callsIn(held.Entry.Message)
		if slices.ContainsFunc(results, func(id string) bool { return !slices.Contains(calls, id) }) {
			waiting = append(waiting, held)
			continue
		}
		for _, id := range results {
			o.open.Result(id)
		}
		out = append(out, held)
	}
	if len(out) == 1 {
		return append(o.rest(), r)
	}
	o.held = waiting
	return out
}

// rest returns the results whose calls never came.
func (o *order) rest() []Record {
	held := o.held
	o.held = nil
	return held
}

// callsIn returns the ids of the calls and of the results in a message.
func callsIn(m *session.MessageEntry) (calls, results []string) {
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.ToolUse != nil:
			calls = append(calls, c.ToolUse.ID)
		case c.ToolResult != nil:
			results = append(results, c.ToolResult.ToolUseID)
		}
	}
	return calls, results
}
