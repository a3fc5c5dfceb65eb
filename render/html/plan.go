package html

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// plan is where everything goes on the page. Making it reads every entry once, without
// content in blobs, and keeps only what must be known before the entry is written. So
// the page can be written with few entries in memory.
type plan struct {
	outline  *render.Outline
	items    []item // by their place in outline.Order
	at       map[*render.Node]int
	sections []section
	marks    []mark
	tags     []string
	messages int
}

// item is an entry and its place on the page.
type item struct {
	node    *render.Node
	section int
	class   string
	gist    string // what it says in a line, if that is shown elsewhere
	kind    string // what it is in a word, if that is shown elsewhere
	mute    int    // 1 + the item before it that needs a gist and has none of its own
	when    time.Time

	// What its card would show: see hasCard.
	prose, tools, thinking bool
	own                    int // how many blocks of its own it shows, not counting results
	size                   int // of its prose, in bytes
	results                []placedResult
	outs                   []placedResult // the results of its calls
	follows                bool           // it continues the card before it
	newDay                 bool           // it is the first card of a day
}

// placedResult is the result of a call and where it is shown.
type placedResult struct {
	tool      string // the name of the tool
	call      int    // the item that made the call, or -1
	callBlock int
	item      int // the item that has the result
	block     int
	moved     bool // it is shown in the card of the call
}

// section is a part of the page without branches, so that it is shown or hidden as a
// whole. A browser does not lay out sections that are out of sight.
type section struct {
	first, last int // items, including the last
	parent      int // the section before it, or -1
	onward      int // the section with which the conversation continues, or -1
	shown       bool
	height      int // roughly, in pixels
}

// mark is an item that the list beside the page names.
type mark struct {
	item int
	kind string // prompt, label or compaction
	text string
}

const (
	maxInSection = 16
	// maxReads is how often an entry is read for the results that it has. If its
	// results belong to calls of many others, it keeps some of them itself.
	maxReads  = 8
	gistWidth = 140
)

func newPlan(ctx context.Context, c render.Conversation, o *Options) (*plan, error) {
	outline, err := render.NewOutline(c, render.OutlineOptions{Leaf: cmp.Or(o.Leaf, c.LeafID())})
	if err != nil {
		return nil, err
	}
	p := &plan{outline: outline, items: make([]item, len(outline.Order)), at: make(map[*render.Node]int, len(outline.Order))}
	for i, n := range outline.Order {
		p.items[i].node = n
		p.at[n] = i
	}
	now, err := c.Remarks()
	if err != nil {
		return nil, err
	}
	p.tags = now.Tags
	if err := p.read(ctx, c, o.Look); err != nil {
		return nil, err
	}
	p.moveResults()
	p.splitSections()
	p.connect()
	return p, nil
}

// read looks at every entry.
func (p *plan) read(ctx context.Context, c render.Conversation, look func(*session.Entry)) error {
	f := follower{plan: p}
	i := 0
	for chunk := range slices.Chunk(p.outline.Order, render.ReadAtOnce) {
		if err := ctx.Err(); err != nil {
			return err
		}
		done := budget.Part(ctx)
		entries, err := c.PeekNodes(chunk)
		if err != nil {
			return err
		}
		for k := range entries {
			p.inspect(i, &entries[k])
			f.add(i, &entries[k])
			if look != nil {
				look(&entries[k])
			}
			i++
		}
		done()
	}
	return nil
}

// inspect records the facts about an entry that the page needs.
func (p *plan) inspect(i int, e *session.Entry) {
	it := &p.items[i]
	it.class, it.when = classOf(e), e.Timestamp
	if e.Message != nil {
		p.messages++
		it.look(e.Message)
	} else {
		it.own, it.prose = 1, true
	}
	n := it.node
	if n.Label != "" || len(p.outline.Siblings(n)) > 1 {
		it.gist, it.kind = render.Gist(e, gistWidth), render.Kind(e)
		if it.gist == "" {
			it.mute = i + 1
		}
	} else if parent := n.Parent; parent != nil && p.items[p.at[parent]].mute > 0 {
		// A branch that begins with thinking is named after what follows from it.
		it.mute = p.items[p.at[parent]].mute
		if gist := render.Gist(e, gistWidth); gist != "" {
			p.items[it.mute-1].gist = gist
			it.mute = 0
		}
	}
	switch {
	case e.Compaction != nil:
		p.marks = append(p.marks, mark{i, "compaction", "Compacted"})
	case e.BeginsTurn() && it.own > 0:
		p.marks = append(p.marks, mark{i, "prompt", render.Gist(e, gistWidth)})
	}
	if n.Label != "" {
		p.marks = append(p.marks, mark{i, "label", render.OneLine(n.Label, gistWidth)})
	}
}

// look works out what the card of a message would show.
func (it *item) look(m *session.MessageEntry) {
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case isBlank(c):
			continue
		case c.ToolResult != nil:
			it.tools = true
			continue // it may be shown elsewhere
		case c.ToolUse != nil:
			it.tools = true
		case c.Thinking != nil:
			it.thinking = true
		case c.Text != nil:
			it.prose = true
			it.size += len(c.Text.Content)
		default:
			it.prose = true
		}
		it.own++
	}
	if render.StopWords(m) != "" {
		it.own++
		it.prose = true
	}
}

// isBlank reports whether a block shows nothing.
func isBlank(c *session.Content) bool {
	switch {
	case c.Text != nil:
		return !hasInk(c.Text.Content)
	case c.Thinking != nil:
		return !hasInk(c.Thinking.Content)
	}
	return false
}

func hasInk(s string) bool {
	for i := range len(s) {
		if s[i] > ' ' {
			return true
		}
	}
	return false
}

// classOf is the style of an entry: the known roles have their own.
func classOf(e *session.Entry) string {
	switch {
	case e.Compaction != nil:
		return "compaction"
	case e.BranchSummary != nil, e.Merge != nil:
		return "summary"
	case e.Message == nil:
		return "note"
	}
	switch role := e.Message.Role; role {
	case session.RoleUser, session.RoleAssistant, session.RoleTool, session.RoleSystem:
		return role
	}
	return "other"
}

// follower pairs calls and results on all branches, in one walk down the tree.
type follower struct {
	*plan
	pairs session.Pairs
	path  []int                         // the items that pairs has, in its order
	names []string                      // the tools that its refs call
	marks map[*render.Node]session.Mark // of the entries with several children
	last  *render.Node
}

func (f *follower) add(i int, e *session.Entry) {
	n := f.items[i].node
	if n.Parent != f.last {
		f.rewind(n.Parent)
	}
	f.last = n
	added := f.pairs.Add(e)
	f.path = append(f.path, i)
	for _, r := range added.Refs {
		f.names = append(f.names, "")
		if r.Call {
			f.names[len(f.names)-1] = e.Message.Content[r.Block].ToolUse.Name
			continue
		}
		res := placedResult{call: -1, item: i, block: r.Block}
		if r.Pair != session.NoPair {
			call := f.pairs.Refs()[r.Pair]
			res.call, res.callBlock, res.tool = f.path[call.Entry], call.Block, f.names[r.Pair]
			to := &f.items[res.call]
			to.outs = append(to.outs, res)
		}
		f.items[i].results = append(f.items[i].results, res)
	}
	if len(n.Children) > 1 {
		if f.marks == nil {
			f.marks = make(map[*render.Node]session.Mark)
		}
		f.marks[n] = f.pairs.Mark()
	}
}

// rewind returns to an entry with several children, or to before the first entry.
func (f *follower) rewind(to *render.Node) {
	f.pairs.Rewind(f.marks[to]) // the zero mark is before the first
	f.path = f.path[:f.pairs.Len()]
	f.names = f.names[:len(f.pairs.Refs())]
}

// moveResults puts results into the cards of their calls.
func (p *plan) moveResults() {
	reads := make(map[int]int)
	for i := range p.items {
		outs := p.items[i].outs
		slices.SortFunc(outs, func(a, b placedResult) int {
			return cmp.Or(cmp.Compare(a.callBlock, b.callBlock), cmp.Compare(a.item, b.item), cmp.Compare(a.block, b.block))
		})
		at := -1
		kept := outs[:0]
		for _, out := range outs {
			if out.item != at {
				if reads[out.item] == maxReads {
					continue
				}
				reads[out.item]++
				at = out.item
			}
			kept = append(kept, out)
			p.moved(out)
		}
		p.items[i].outs = kept
	}
}

func (p *plan) moved(out placedResult) {
	results := p.items[out.item].results
	k, ok := slices.BinarySearchFunc(results, out.block, func(r placedResult, block int) int { return cmp.Compare(r.block, block) })
	if ok {
		results[k].moved = true
	}
}

// hasCard reports whether an entry has a card of its own. An entry that shows nothing
// has none.
func (p *plan) hasCard(i int) bool {
	it := &p.items[i]
	if it.own > 0 || it.node.Label != "" || len(it.node.Children) > 1 {
		return true
	}
	return slices.ContainsFunc(it.results, func(r placedResult) bool { return !r.moved })
}

// splitSections splits the page into sections, and finds the cards that continue others.
func (p *plan) splitSections() {
	before := make([]int, len(p.items)) // the last card on the way to an item, itself included, or -1
	for i := range p.items {
		it := &p.items[i]
		parent, last := -1, -1
		if it.node.Parent != nil {
			parent = p.at[it.node.Parent]
			last = before[parent]
		}
		before[i] = last
		if p.hasCard(i) {
			before[i] = i
			it.newDay = !it.when.IsZero() && (last < 0 || day(p.items[last].when) != day(it.when))
			it.follows = last >= 0 && it.node.Label == "" && it.class == session.RoleAssistant && p.items[last].class == it.class && len(p.items[last].node.Children) < 2
		}
		if k := len(p.sections) - 1; parent >= 0 && parent == i-1 && len(it.node.Parent.Children) == 1 && i-p.sections[k].first < maxInSection {
			it.section = k
			p.sections[k].last = i
			continue
		}
		it.section = len(p.sections)
		s := section{first: i, last: i, parent: -1, onward: -1}
		if parent >= 0 {
			s.parent = p.items[parent].section
		}
		p.sections = append(p.sections, s)
	}
}

func day(t time.Time) int { return t.UTC().Year()*1000 + t.UTC().YearDay() }

// connect works out how sections continue, and which are visible at first: those on the
// live path and what comes after it. Without a leaf, it is what was worked on last.
func (p *plan) connect() {
	for k := range p.sections {
		s := &p.sections[k]
		if next := p.items[s.last].node.Onward; next != nil {
			s.onward = p.items[p.at[next]].section
		}
		s.shown = p.items[s.first].node.Live
		for i := s.first; i <= s.last; i++ {
			s.height += p.items[i].height(p.hasCard(i))
		}
	}
	first := p.outline.Leaf
	if n := len(p.outline.Roots); first == nil && n > 0 {
		first = p.outline.Roots[n-1]
	}
	if first == nil {
		return
	}
	for k := p.items[p.at[first]].section; k >= 0; k = p.sections[k].onward {
		p.sections[k].shown = true
	}
}

// height estimates the height of a card. The browser corrects it when it shows the
// card; a good estimate keeps the scroll bar still.
func (it *item) height(hasCard bool) int {
	if !hasCard {
		return 0
	}
	const line, lineHeight = 70, 26
	h := 16 + 36*len(it.outs)
	if it.prose {
		h += 48 + lineHeight*(1+min(it.size, 1<<20)/line)
	}
	return h
}

// isShown reports whether an item can be seen at first.
func (p *plan) isShown(i int) bool { return p.sections[p.items[i].section].shown }
