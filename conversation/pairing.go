package conversation

import "github.com/coppice-dev/coppice/session"

// pairing follows the tool calls of a conversation and their results.
type pairing struct{ session.Pairs }

// add takes the next message into account. It returns false if a call or a result
// stands alone, or not where it should.
func (p *pairing) add(e *session.Entry) (inOrder bool) {
	waiting, results := p.Pending(), 0
	inOrder = true
	for _, ref := range p.Add(e).Refs {
		if !ref.Call {
			results++
			inOrder = inOrder && ref.Pair != session.NoPair
		}
	}
	return inOrder && (results > 0 || !waiting) // nothing came between a call and its result
}
