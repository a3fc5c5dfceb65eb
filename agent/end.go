package agent

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// end returns the end of the context, as much of it as decides what is left to do: from the last
// prompt that the model has answered, in part or in full. No call before that is pending, as
// session.Pairs says. A context can be a thousand times as long, so end reads the log from its
// end, unless something there makes the context differ from the path.
func (k *Keeper) end() ([]session.Entry, error) {
	var end []session.Entry
	answered := false
	for e, err := range k.s.Path("") {
		if err != nil {
			return nil, err
		}
		switch {
		case e.Message != nil:
			end = append(end, e)
			if answered && e.BeginsTurn() {
				return k.endOrWhole(end)
			}
			answered = answered || e.Message.Role == session.RoleAssistant
		case e.Type.IsRemark(), e.Type == session.TypeModelChange, e.Type == session.TypeThinkingLevel:
		default:
			return k.whole()
		}
	}
	return k.endOrWhole(end)
}

// endOrWhole returns messages, given from the last to the first, if a context has them in this
// order, and otherwise the context.
func (k *Keeper) endOrWhole(messages []session.Entry) ([]session.Entry, error) {
	slices.Reverse(messages)
	if !isInOrder(messages) {
		return k.whole()
	}
	return messages, nil
}

// whole returns the entries of the context.
func (k *Keeper) whole() ([]session.Entry, error) {
	c, err := k.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	return c.Entries, nil
}

// isInOrder reports whether each result comes right after the response with its call. A context
// moves others, or leaves them out.
func isInOrder(messages []session.Entry) bool {
	var pairs session.Pairs
	responses := make([]int, len(messages)) // where the response of each message begins
	last := -1                              // the response after which results may come
	for i := range messages {
		added := pairs.Add(&messages[i])
		responses[i] = i
		if added.Continues >= 0 {
			responses[i] = responses[added.Continues]
		}
		isResult := len(added.Refs) > 0 && !added.Refs[0].Call
		switch {
		case messages[i].Message.Role == session.RoleAssistant:
			last = responses[i]
		case !isResult:
			last = -1
		}
		for _, ref := range added.Refs {
			if !ref.Call && (ref.Pair == session.NoPair || responses[pairs.Refs()[ref.Pair].Entry] != last) {
				return false
			}
		}
	}
	return true
}
