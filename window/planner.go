package window

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Options says what a view should be like.
type Options struct {
	Budget Budget
	// Counter counts. Default: what a Chooser picks for Provider and Model, and
	// picks again when they change.
	Counter Counter
	// Exact are asked for exact counters: see Chooser. Default: none.
	Exact []func(provider, model string) Counter
	// Provider and Model name the model that will read the view. Default: those in force in
	// the context.
	Provider, Model string
	// Images is how many images are kept, newest first; the others become placeholders.
	// Default: 1. See AllImages and NoImages.
	Images int
	// Logger gets a debug message that says which counter was chosen. Default: none.
	Logger *slog.Logger
}

// Values of Options.Images.
const (
	AllImages = -1
	NoImages  = -2
)

// errNoContext is the error for a nil context of a conversation.
var errNoContext = fmt.Errorf("there is no context to fit into a window: %w", session.ErrInvalid)

// Trim returns the part of a context that fits a window. It is a pure function: the
// same entries and options give the same view, and so does a Planner that saw the
// entries one by one. If the SYSTEM messages or the newest group alone do not fit, it
// returns an *OverflowError.
func Trim(c *session.Context, o Options) (*View, error) {
	p, err := NewPlanner(o)
	if err != nil {
		return nil, err
	}
	return p.Update(c)
}

// Fill returns as much of a context as fits a window. It follows the rules of Trim but
// decides about everything at once: it leaves out nothing that fits, and Budget.CutTo
// has no effect. For a conversation that continues, use Trim or a Planner: they leave
// out more at a time and then nothing for a while, so that prompt caches are useful.
func Fill(c *session.Context, o Options) (*View, error) {
	if c == nil {
		return nil, errNoContext
	}
	p, err := NewPlanner(o)
	if err != nil {
		return nil, err
	}
	p.atOnce, p.budget.CutTo = true, 100
	p.setContext(c)
	p.fit()
	if v, err := p.View(); err == nil {
		return v, nil
	}
	// The newest group is too large. If a late result made it the newest, Trim left it out
	// before that.
	return Trim(c, o)
}

// Planner keeps the view of a growing conversation. A turn costs the same however long
// the conversation is. A Planner must not be used concurrently, but the views that it
// returns may.
type Planner struct {
	options Options
	budget  Budget // with defaults
	atOnce  bool   // only collect entries, and fit at the end: see Fill
	state
}

// state has everything that a planner knows about its conversation.
type state struct {
	counter         Counter
	provider, model string
	whose           string // both, by which images are priced

	// The conversation. entries, costs and owner have what will be in the view, and
	// the entries that have gone since the last one was made. Views share these arrays and may be
	// read by other goroutines, so existing elements are never written: the arrays are
	// only appended to, and changes wait in changed until compact makes new arrays.
	entries []session.Entry
	costs   []Cost
	owner   []int32 // the item of each
	changed map[int32]session.Entry
	dirty   bool // something has gone or changed since the last view

	items           []item
	groups          []group
	pairs           session.Pairs             // of the items
	queues          [SystemOutput + 1][]int32 // groups by class, oldest first
	newest          int32                     // the newest group that is not SYSTEM, or none
	prompt          int32                     // the group of the user's latest message, or none; it is in no queue
	promptOmissions []Omission                // of the prompt, while the newest group needs its room
	large           []int32                   // groups that may be worth shortening
	texts           textList                  // of the newest group, once it has been shortened
	added           int                       // tokens ever added

	// The view's size, and what was left out.
	total     Cost
	used      sums // tokens in the view
	count     sums // entries in the view
	sources   sourceSums
	gone      sums // tokens that are not in it
	goneCount sums
	omissions []Omission
	expected  int // how many entries will come, if known

	images   []int32 // items with images that are not placeholders yet, oldest first
	pictures int     // how many images they have
	usage    lastUsage
	asked    tokensAsked

	// The context that the planner was last updated with.
	fingerprint session.Fingerprint
	updated     int // entries, or none if entries were added otherwise
	compaction  string
	edited      map[string]string
}

// NewPlanner returns a planner for an empty conversation. If the options make no sense,
// the error matches session.ErrInvalid.
func NewPlanner(o Options) (*Planner, error) {
	budget, err := o.Budget.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Images == 0 {
		o.Images = 1
	}
	p := &Planner{options: o, budget: budget}
	p.begin(o.Provider, o.Model)
	return p, nil
}

// begin forgets the conversation and chooses the counter for a model.
func (p *Planner) begin(provider, model string) {
	p.state = state{provider: provider, model: model, whose: provider + "/" + model, newest: none, prompt: none, texts: textList{of: none}, counter: p.options.Counter}
	if p.counter == nil {
		p.counter = Chooser{Exact: p.options.Exact, Logger: p.options.Logger}.Counter(provider, model)
	}
}

// Update sets the planner's conversation to a context. It adds what is new or, if the
// beginning has changed or another model is in force, starts again. It returns the
// view, as View does; the view shares the context's entries. A context without
// fingerprints always means a new start.
func (p *Planner) Update(c *session.Context) (*View, error) {
	if c == nil {
		return nil, errNoContext
	}
	p.setContext(c)
	return p.View()
}

// setContext sets the planner's conversation to a context.
func (p *Planner) setContext(c *session.Context) {
	provider, model := p.options.Provider, p.options.Model
	if provider == "" && model == "" {
		provider, model = c.Provider, c.Model
	}
	if provider != p.provider || model != p.model || !p.beginsLike(c) {
		p.begin(provider, model)
	}
	p.edited = c.Edited
	p.reserve(len(c.Entries) - len(p.items))
	if len(p.items) > 0 {
		p.Add(c.Entries[len(p.items):]...)
	} else {
		for i := range c.Entries {
			p.entries = c.Entries[: i+1 : i+1] // shared: a copy would cost as much as the planning
			p.add(&c.Entries[i])
		}
	}
	if n := len(c.Entries); n > 0 && len(c.Fingerprints) == n {
		p.fingerprint, p.updated, p.compaction = c.Fingerprints[n-1], n, c.Compaction
	}
}

// beginsLike reports whether a context begins with what the planner has seen. Comparing
// one fingerprint is enough, because it covers all entries before it.
func (p *Planner) beginsLike(c *session.Context) bool {
	n := len(p.items)
	switch {
	case n == 0:
		return true
	case n != p.updated || n > len(c.Entries) || len(c.Fingerprints) != len(c.Entries):
		return false
	}
	return c.Fingerprints[n-1] == p.fingerprint && c.Compaction == p.compaction
}

// reserve makes room for entries.
func (p *Planner) reserve(n int) {
	p.costs, p.owner = slices.Grow(p.costs, n), slices.Grow(p.owner, n)
	p.items, p.groups = slices.Grow(p.items, n), slices.Grow(p.groups, n)
	p.expected = len(p.items) + n
}

// Add adds the next entries of the conversation.
func (p *Planner) Add(entries ...session.Entry) {
	for i := range entries {
		p.entries = append(p.entries, entries[i])
		p.add(&entries[i])
	}
}

// add adds the last of entries.
func (p *Planner) add(e *session.Entry) {
	p.updated = none
	at := int32(len(p.items))
	it := item{category: CategoryOf(e), next: none, at: int32(len(p.entries) - 1)}
	p.learnFrom(e)
	n := countEntry(p.counter, p.whose, e)
	it.cost = n.Cost
	p.asked.known += n.known
	p.asked.text += n.text
	if e.Message != nil {
		it.images = int32(imagesIn(e.Message.Content))
	}
	p.costs = append(p.costs, it.cost)
	p.owner = append(p.owner, at)
	p.items = append(p.items, it)

	of := p.addToGroup(at, e, p.joined(e))
	p.added += it.cost.Tokens
	p.total.add(it.cost)
	p.used[it.category] += it.cost.Tokens
	p.count[it.category]++
	p.sources.add(it.cost)
	if p.groups[of].gone {
		p.leaveOut(at, "its call was left out")
		return
	}
	if p.groups[of].class != System && p.newest != of {
		p.newest = of
		p.restorePrompt()
	}
	p.addImages(at)
	p.noteLarge(p.newest)
	if !p.atOnce {
		p.fit()
	}
}

// addToGroup puts an item into the group that it joins, or into a new one.
func (p *Planner) addToGroup(at int32, e *session.Entry, joined []int32) int32 {
	it := &p.items[at]
	if len(joined) == 0 {
		it.group = int32(len(p.groups))
		p.groups = append(p.groups, group{
			cost: it.cost, begun: p.added, first: at, last: at, into: none, class: it.category,
			byUser: e.BeginsTurn() && it.category == Dialog,
		})
		p.groups[it.group].used[it.category] = it.cost.Tokens
		if p.groups[it.group].byUser {
			p.begins(it.group)
		} else {
			p.queues[it.category] = append(p.queues[it.category], it.group)
		}
		return it.group
	}
	for i := range joined {
		joined[i] = p.mergedInto(joined[i])
	}
	of := slices.Min(joined)
	for _, other := range joined {
		p.merge(of, other)
	}
	g := &p.groups[of]
	it.group = of
	p.items[g.last].next, g.last = at, at
	g.cost.add(it.cost)
	g.used[it.category] += it.cost.Tokens
	p.reclass(of, classWith(g.class, it.category))
	return of
}

// groupOf returns the group of an item.
func (p *Planner) groupOf(at int32) int32 { return p.mergedInto(p.items[at].group) }

// mergedInto returns the group that a group has become part of. It shortens the chain
// each time (as in union-find), because there may be as many merges as entries.
func (p *Planner) mergedInto(of int32) int32 {
	for p.groups[of].into != none {
		if next := p.groups[p.groups[of].into].into; next != none {
			p.groups[of].into = next
		}
		of = p.groups[of].into
	}
	return of
}

// merge makes one group of two, because a message answers calls of both.
func (p *Planner) merge(into, from int32) {
	if into == from || p.groups[from].first == none {
		return
	}
	a, b := &p.groups[into], &p.groups[from]
	// If one is gone, the other must go too: neither can be sent without it.
	if a.gone != b.gone {
		live := into
		if a.gone {
			live = from
		}
		p.drop(live, "a call that it belongs to was left out")
	}
	p.items[a.last].next, a.last = b.first, b.last
	class := classWith(a.class, b.class)
	a.cost.add(b.cost)
	for c := range b.used {
		a.used[c] += b.used[c]
	}
	*b = group{first: none, last: none, into: into, gone: true}
	if p.newest == from {
		p.newest = into
	}
	p.reclass(into, class)
}

func (p *Planner) reclass(of int32, class Category) {
	if g := &p.groups[of]; g.class != class {
		g.class = class
		p.queues[class] = append(p.queues[class], of)
	}
}

// drop leaves a group out of the view.
func (p *Planner) drop(of int32, why string) {
	g := &p.groups[of]
	for at := g.first; at != none; at = p.items[at].next {
		if !p.items[at].gone {
			p.leaveOut(at, why)
		}
	}
	g.gone = true
}

// leaveOut leaves an item out of the view.
func (p *Planner) leaveOut(at int32, why string) {
	it := &p.items[at]
	it.gone, p.dirty = true, true
	p.total.Tokens -= it.cost.Tokens
	p.total.Bytes -= it.cost.Bytes
	p.used[it.category] -= it.cost.Tokens
	p.groups[p.groupOf(at)].used[it.category] -= it.cost.Tokens
	p.count[it.category]--
	p.sources.remove(it.cost)
	p.gone[it.category] += it.cost.Tokens
	p.goneCount[it.category]++
	p.pictures -= int(it.images)
	it.images = 0
	p.omit(Omission{
		Kind: LeftOut, EntryID: p.entries[it.at].ID, Category: it.category,
		Tokens: it.cost.Tokens, Bytes: it.cost.Bytes, Why: why,
	})
}

// current returns an item's entry as it will be in the next view.
func (p *Planner) current(at int32) *session.Entry {
	if e, ok := p.changed[at]; ok {
		return &e
	}
	return &p.entries[p.items[at].at]
}

// change replaces the content of an item, which must not cost more than before, and
// records why.
func (p *Planner) change(at int32, content []session.Content, o Omission) {
	e := p.setContent(at, content)
	p.setCost(at, e.ID, countAfresh(p.counter, p.whose, e).Cost, o)
}

// setContent replaces the content of an item and returns its entry.
func (p *Planner) setContent(at int32, content []session.Content) *session.Entry {
	e := *p.current(at)
	message := *e.Message
	message.Content, message.Tokens, message.Usage = content, nil, nil
	e.Message = &message
	if p.changed == nil {
		p.changed = make(map[int32]session.Entry)
	}
	p.changed[at], p.dirty = e, true
	return &e
}

// setCost records what an item costs after a change, and why it was changed.
func (p *Planner) setCost(at int32, id string, cost Cost, o Omission) {
	it := &p.items[at]
	cost.Tokens = min(cost.Tokens, it.cost.Tokens) // the recorded number may have been lower
	saved := Cost{Tokens: it.cost.Tokens - cost.Tokens, Bytes: it.cost.Bytes - cost.Bytes}
	p.sources.remove(it.cost)
	p.sources.add(cost)
	it.cost = cost
	g := &p.groups[p.groupOf(at)]
	g.cost.add(Cost{Tokens: -saved.Tokens, Bytes: -saved.Bytes})
	g.used[it.category] -= saved.Tokens
	p.total.add(Cost{Tokens: -saved.Tokens, Bytes: -saved.Bytes})
	p.used[it.category] -= saved.Tokens
	p.gone[it.category] += saved.Tokens
	o.EntryID, o.Category, o.Tokens, o.Bytes = id, it.category, saved.Tokens, saved.Bytes
	p.omit(o)
}

// omit records an omission. Cuts leave out many entries at once, and in a long
// conversation nearly all of them in the end.
func (p *Planner) omit(o Omission) {
	if len(p.omissions) == cap(p.omissions) {
		p.omissions = slices.Grow(p.omissions, max(16, len(p.items)/2, p.expected-len(p.omissions)))
	}
	p.omissions = append(p.omissions, o)
}
