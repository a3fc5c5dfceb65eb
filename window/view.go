package window

import (
	"math"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// View returns what fits the window now. If the SYSTEM messages or the newest group
// alone do not fit, it returns an *OverflowError.
func (p *Planner) View() (*View, error) {
	if err := p.overflow(); err != nil {
		return nil, err
	}
	if err := p.checkGutted(); err != nil {
		return nil, err
	}
	if p.dirty {
		p.compact()
	}
	n := len(p.entries)
	v := &View{Entries: p.entries[:n:n], Costs: p.costs[:n:n], Report: p.report()}
	if p.promptOmissions != nil {
		return p.withoutPrompt(v), nil
	}
	return v, nil
}

// overflow returns an error if something still does not fit after everything else has gone.
func (p *Planner) overflow() error {
	room, byteRoom := p.budget.Room(), p.budget.byteRoom()
	if p.total.Tokens <= room && p.total.Bytes <= byteRoom {
		return nil
	}
	err := &OverflowError{Category: System, Need: p.total.Tokens, Budget: room, Unit: Tokens}
	if p.total.Tokens <= room {
		err.Need, err.Budget, err.Unit = p.total.Bytes, byteRoom, Bytes
	}
	var system, largest Cost
	for i := range p.items {
		it := &p.items[i]
		if it.gone {
			continue
		}
		if it.category == System {
			system.add(it.cost)
		}
		if err.of(it.cost) > err.of(largest) {
			largest, err.EntryID = it.cost, p.entries[it.at].ID
		}
	}
	switch {
	case err.of(system) > err.Budget:
		err.Need = err.of(system)
	case p.newest != none:
		err.Category = p.groups[p.newest].class
	}
	return err
}

// checkGutted returns an error if next to nothing is left of the user's last message: a model
// must not answer a question that it was not sent.
func (p *Planner) checkGutted() error {
	if p.newest == none || !p.groups[p.newest].byUser {
		return nil
	}
	at := p.groups[p.newest].first
	e := p.current(at)
	if p.items[at].gone || e.Message == nil {
		return nil
	}
	texts, left := 0, false
	eachText(e.Message.Content, func(text string) {
		texts++
		left = left || !slices.Contains(stumps, text) && (len(text) > 2*len(marker) || !strings.Contains(text, marker))
	})
	if texts == 0 || left {
		return nil
	}
	err := &OverflowError{Category: Dialog, EntryID: e.ID, Need: p.total.Tokens, Budget: p.budget.Room(), Unit: Tokens}
	for _, o := range p.omissions {
		if o.Kind == Shortened && o.EntryID == e.ID {
			err.Need += o.Tokens
		}
	}
	if err.Need <= err.Budget {
		return nil // it said no more
	}
	return err
}

// of returns the side of a cost that the error is about.
func (e *OverflowError) of(c Cost) int {
	if e.Unit == Bytes {
		return c.Bytes
	}
	return c.Tokens
}

// compact makes new arrays without the entries that have gone. Earlier views keep the old ones.
func (p *Planner) compact() {
	left := 0
	for _, c := range p.count {
		left += c
	}
	room := left + left/4 + 16 // for what comes before the next cut
	entries, costs, owner := make([]session.Entry, 0, room), make([]Cost, 0, room), make([]int32, 0, room)
	for i, at := range p.owner {
		it := &p.items[at]
		if it.gone && !p.mayReturn(at) {
			continue
		}
		e := &p.entries[i]
		if changed, ok := p.changed[at]; ok {
			e = &changed
		}
		it.at = int32(len(entries))
		entries, costs, owner = append(entries, *e), append(costs, it.cost), append(owner, at)
	}
	p.entries, p.costs, p.owner = entries, costs, owner
	p.changed, p.dirty = nil, false
}

func (p *Planner) report() Report {
	n := len(p.omissions)
	r := Report{
		Counter: p.counter.Name(), Counts: p.sources.report(),
		Tokens: p.total.Tokens, Bytes: p.total.Bytes,
		Room: limitOrZero(p.budget.Room()), ByteRoom: limitOrZero(p.budget.byteRoom()),
		Categories: make([]CategoryReport, 0, SystemOutput),
		Omissions:  p.omissions[:n:n],
	}
	var ceilings sums
	if p.budget.Strict && p.budget.Tokens > 0 {
		ceilings = p.budget.ceilings(p.used)
	}
	for c := System; c <= SystemOutput; c++ {
		r.LeftOutTokens += p.gone[c]
		part := CategoryReport{
			Category: c, Share: ceilings[c], Entries: p.count[c], Tokens: p.used[c],
			LeftOutEntries: p.goneCount[c], LeftOutTokens: p.gone[c],
		}
		if !p.budget.Strict && p.budget.Tokens > 0 {
			part.Share = p.budget.guaranteed(c, p.used[System])
		}
		r.Categories = append(r.Categories, part)
	}
	return r
}

func limitOrZero(limit int) int {
	if limit == math.MaxInt {
		return 0
	}
	return limit
}
