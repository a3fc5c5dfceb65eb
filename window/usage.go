package window

import (
	"cmp"

	"github.com/coppice-dev/coppice/session"
)

// lastUsage is the latest report of a provider, and the counts at that time.
type lastUsage struct {
	prompt   int // tokens of the last request with a report; 0 if there is none
	response string
	items    int // how many items there were
	asked    tokensAsked
	cuts     int // omissions by then
}

// tokensAsked are all tokens that were ever added: those that did not come from the
// counter, and those of texts as the counter counts them before it learns.
type tokensAsked struct{ known, text int }

// learnFrom tells the counter what a response's usage says about the entries since the
// previous response: how much the request has grown. Taking the difference cancels what
// is in every request but not among the entries, such as the schemas of tools. Only
// texts that the counter counted are compared: what was recorded or reported needs no
// correction, and would distort it.
func (p *Planner) learnFrom(e *session.Entry) {
	learning, ok := p.counter.(*learning)
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
