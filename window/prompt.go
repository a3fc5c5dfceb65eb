package window

import (
	"slices"
)

// begins makes a group the prompt of the turn that begins with it. The prompt is kept
// as long as anything else can go: what a model does makes no sense to it without what
// it was asked, and in a long turn of an agent the prompt is the oldest entry. The
// previous prompt goes back into its queue, in order of age.
func (p *Planner) begins(of int32) {
	p.restorePrompt()
	if before := p.prompt; before != none && !p.groups[before].gone {
		queue := p.queues[Dialog]
		at, _ := slices.BinarySearch(queue, before)
		p.queues[Dialog] = slices.Insert(queue, at, before)
	}
	p.prompt = of
}

// shortenPrompt shortens the prompt of the newest turn if it takes more than half of
// what SYSTEM leaves. By then nothing else can go except the newest group, which should
// be useful too.
func (p *Planner) shortenPrompt() {
	over := p.exceeded()
	if p.prompt == none || p.prompt == p.newest || p.groups[p.prompt].gone || !over.tokens {
		return
	}
	half := max(0, p.budget.Room()-p.used[System]) / 2
	if by := min(p.total.Tokens-p.budget.Room(), p.groups[p.prompt].cost.Tokens-half); by > 0 {
		p.shorten(p.prompt, by, tokensOf, p.whyFull(over))
	}
}

// dropPrompt leaves out the prompt of the newest turn because the newest group needs
// all the room. It comes back with the next group: see restorePrompt.
func (p *Planner) dropPrompt() {
	over := p.exceeded()
	if p.prompt == none || p.prompt == p.newest || p.groups[p.prompt].gone || !over.tokens && !over.bytes {
		return
	}
	settled := p.omissions
	p.omissions = nil
	p.drop(p.prompt, p.whyFull(over))
	p.promptOmissions, p.omissions = p.omissions, settled
}

// restorePrompt restores the prompt that dropPrompt has left out. The group that needed its
// room is no longer the newest, and can go first.
func (p *Planner) restorePrompt() {
	if p.promptOmissions == nil {
		return
	}
	p.promptOmissions = nil
	g := &p.groups[p.prompt]
	it := &p.items[g.first] // a prompt is always a group by itself, and its images are placeholders by now
	it.gone, g.gone = false, false
	p.total.add(it.cost)
	p.used[it.category] += it.cost.Tokens
	g.used[it.category] += it.cost.Tokens
	p.count[it.category]++
	p.sources.add(it.cost)
	p.gone[it.category] -= it.cost.Tokens
	p.goneCount[it.category]--
	if g.large && !slices.Contains(p.large, p.prompt) {
		p.large = append(p.large, p.prompt)
	}
}

// mayReturn reports whether an item is a prompt that may be brought back.
func (p *Planner) mayReturn(at int32) bool {
	return p.promptOmissions != nil && p.groupOf(at) == p.prompt
}

// withoutPrompt returns a view without the prompt, which the planner keeps.
func (p *Planner) withoutPrompt(v *View) *View {
	at := int(p.items[p.groups[p.prompt].first].at)
	v.Entries = slices.Concat(v.Entries[:at], v.Entries[at+1:])
	v.Costs = slices.Concat(v.Costs[:at], v.Costs[at+1:])
	v.Report.Omissions = slices.Concat(v.Report.Omissions, p.promptOmissions)
	return v
}
