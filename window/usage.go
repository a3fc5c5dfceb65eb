package window

import (
	"cmp"

	"github.com/coppice-dev/coppice/session"
)

// lastUsage is what a provider last reported, and what was counted by then.
type lastUsage struct {
	prompt   int // tokens of the last request that has a report; 0 if none has
	response string
	items    int // how many items there were
	asked    tokensAsked
	cuts     int // omissions by then
}

// tokensAsked are tokens that were added, ever: those that no counter was asked
// for, and those of texts as the counter counts them before it learns.
type tokensAsked struct{ known, text int }

// learn tells the counter what a response's usage says about the entries since
// the response before: by how much the request has grown. The difference leaves
// out what is in every request and not among the entries, such as the schemas of
// the tools. Of what was added, only texts that the counter counted are compared:
// what was recorded or reported needs no correction, and would distort it.
func (p *Planner) learn(e *session.Entry) {
	learning, ok := p.counter.(*Learning)
	m := e.Message
	if !ok || m == nil || m.Usage == nil || m.Role != session.RoleAssistant ||
		m.Model != "" && p.model != "" && m.Model != p.model {
		return
	}
	last := p.usage
	if m.ResponseID != "" && m.ResponseID == last.response {
		return // the same report again
	}
	prompt := m.Usage.Context() - m.Usage.Output
	p.usage = lastUsage{prompt, m.ResponseID, len(p.items), p.asked, len(p.omissions)}
	if last.prompt == 0 || len(p.omissions) != last.cuts {
		return // nothing to compare with, or the request was cut in between
	}
	for _, it := range p.items[last.items:] {
		if it.images > 0 {
			return // an image says nothing about text
		}
	}
	grown := prompt - last.prompt - (p.asked.known - last.asked.known)
	learning.Observe(cmp.Or(m.ResponseID, e.ID), grown, p.asked.text-last.asked.text)
}
