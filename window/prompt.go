package window

import (
	"slices"
)

// begins makes a group the prompt of the turn that begins with it. It is kept as
// long as anything else can go: what a model does is of no use to it without what
// it was asked for, and in a long turn of an agent that is the oldest thing there
// is. The prompt before joins its queue again, in the order of age.
func (p *Planner) begins(of int32) {
	p.bringBack()
	if before := p.prompt; before != none && !p.groups[before].gone {
		queue := p.queues[Dialog]
		at, _ := slices.BinarySearch(queue, before)
		p.queues[Dialog] = slices.Insert(queue, at, before)
	}
	p.prompt = of
}

// shortenPrompt shortens the prompt of the newest turn if it takes more than half
// of what SYSTEM leaves: nothing else is there any more that could give way, except
// for the newest group, and that is to be of use, too.
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

// dropPrompt leaves out the prompt of the newest turn: the newest group needs all
// the room. That is only until there is another group: see bringBack.
func (p *Planner) dropPrompt() {
	over := p.exceeded()
	if p.prompt == none || p.prompt == p.newest || p.groups[p.prompt].gone || !over.tokens && !over.bytes {
		return
	}
	settled := p.omissions
	p.omissions = nil
	p.drop(p.prompt, p.whyFull(over))
	p.away, p.omissions = p.omissions, settled
}

// bringBack takes the prompt into account again that dropPrompt has left out. What
// needed its room is not the newest group any more and can go before it does.
func (p *Planner) bringBack() {
	if p.away == nil {
		return
	}
	p.away = nil
	g := &p.groups[p.prompt]
	it := &p.items[g.first] // the user's words are a group by themselves, and its images are placeholders by now
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

// isAway reports whether an item is a prompt that may be brought back.
func (p *Planner) isAway(at int32) bool { return p.away != nil && p.groupOf(at) == p.prompt }

// withoutPrompt is a view without the prompt that is away. The planner keeps it.
func (p *Planner) withoutPrompt(v *View) *View {
	at := int(p.items[p.groups[p.prompt].first].at)
	v.Entries = slices.Concat(v.Entries[:at], v.Entries[at+1:])
	v.Costs = slices.Concat(v.Costs[:at], v.Costs[at+1:])
	v.Report.Omissions = slices.Concat(v.Report.Omissions, p.away)
	return v
}
