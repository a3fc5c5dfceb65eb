package conversation

import "github.com/coppice-dev/coppice/session"

// pairing follows the tool calls of a conversation and their results.
type pairing struct {
	session.Pairs
	run      int  // the first message of the model that results may follow
	speaking bool // the last message was the model's
}

// add adds the next message. It returns false if a call or a result is alone or not in its
// place. The context is then not simply the messages in order.
func (p *pairing) add(e *session.Entry) (inOrder bool) {
	waiting, answers := p.Pending(), false
	inOrder = true
	added := p.Add(e)
	for _, ref := range added.Refs {
		if !ref.Call {
			answers = true
			inOrder = inOrder && ref.Pair != session.NoPair && p.Refs()[ref.Pair].Entry >= p.run
		}
	}
	speaks := e.Message.Role == session.RoleAssistant && !answers
	switch {
	case speaks && !p.speaking:
		p.run = added.Index
	case !speaks && !answers:
		p.run = added.Index + 1
	}
	p.speaking = speaks
	return inOrder && (answers || !waiting) // nothing came between a call and its result
}
