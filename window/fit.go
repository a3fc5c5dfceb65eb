package window

import (
	"fmt"
	"math"
)

// largePart is from which part of the room on a group is remembered as large.
const largePart = 64

// emptyPart is the part of the room that is not worth shortening a group for.
const emptyPart = 20

// tailPart is the part of the room whose newest groups are spared as long as
// there are others: the work at hand needs what its tools just answered.
const tailPart = 4

// fit makes the conversation fit the budget again if it has outgrown it. Once it
// cuts, it cuts down to the lower mark: a boundary that moves with every message
// would make every prompt cache miss every time.
//
// It runs after each entry, so what it does depends on the entries alone, not on
// when a view was asked for.
func (p *Planner) fit() {
	over := p.exceeded()
	if over == (excess{}) {
		return
	}
	p.shedImages(over)
	p.shortenLarge(over)
	p.cutCategories(over)
	p.cutTotal(over)
	p.cutBeyondShares()
	p.shortenPrompt()
	p.shortenNewest()
	p.dropPrompt()
}

// excess says which limits are exceeded.
type excess struct {
	tokens, bytes bool
	categories    bool // one has more than its ceiling
}

func (p *Planner) exceeded() excess {
	return excess{
		tokens:     p.total.Tokens > p.budget.Room(),
		bytes:      p.total.Bytes > p.budget.byteRoom(),
		categories: p.overCeiling(),
	}
}

// overCeiling reports whether a category has more than a strict budget gives it.
// What is over because of SYSTEM shows in the total.
func (p *Planner) overCeiling() bool {
	if !p.budget.Strict || p.budget.Tokens == 0 {
		return false
	}
	ceilings := p.budget.ceilings(p.used)
	return p.used[Context] > ceilings[Context] || p.used[Dialog] > ceilings[Dialog] || p.used[SystemOutput] > ceilings[SystemOutput]
}

// above reports whether what was exceeded is still more than some limits.
func (p *Planner) above(over excess, tokens, bytes int) bool {
	return over.tokens && p.total.Tokens > tokens || over.bytes && p.total.Bytes > bytes
}

// shedImages makes room in a request that has too many bytes by placeholders,
// the oldest images first. The newest group keeps its own as long as it can.
func (p *Planner) shedImages(over excess) {
	if !over.bytes {
		return
	}
	target := p.budget.lower(p.budget.byteRoom())
	why := fmt.Sprintf("the request had more than %d bytes", p.budget.byteRoom())
	for p.total.Bytes > target {
		at := p.oldestImages()
		if at == none || p.groupOf(at) == p.newest {
			return
		}
		p.removeImages(at, why, func() bool { return p.total.Bytes > target })
	}
}

// cutCategories trims, in a strict budget, the categories that exceed their
// ceilings.
func (p *Planner) cutCategories(over excess) {
	if !over.categories {
		return
	}
	for _, c := range trimOrder {
		ceiling := p.budget.ceilings(p.used)[c]
		if p.used[c] <= ceiling {
			continue
		}
		keep := p.budget.lower(ceiling)
		why := fmt.Sprintf("%v had more than its %d tokens", c, ceiling)
		for p.mayGive(c, keep) {
			of := p.oldest(c, 0)
			if of == none || p.used[c] <= ceiling && p.overshoots(of, p.used[c]-keep) {
				break
			}
			p.drop(of, why)
		}
	}
}

// overshoots reports whether a group is so much more than what is still to be
// left out that it had better stay.
func (p *Planner) overshoots(of int32, tokens int) bool { return p.groups[of].cost.Tokens > 2*tokens }

// cutTotal trims the categories down to the lower mark of the window, each as
// far as to what it is sure to keep. CONTEXT is sure of its whole share; of the
// others, which grow with every turn, it is the lower mark of theirs.
func (p *Planner) cutTotal(over excess) {
	if !over.tokens && !over.bytes {
		return
	}
	tokens, bytes := p.budget.lower(p.budget.Room()), p.budget.lower(p.budget.byteRoom())
	why := p.whyFull(over)
	for _, c := range trimOrder {
		keep := math.MaxInt
		if over.tokens {
			keep = p.budget.due(c, p.used[System])
			if c != Context {
				keep = p.budget.lower(keep)
			}
		}
		dropped := false
		for p.above(over, tokens, bytes) && (p.mayGive(c, keep) || p.above(excess{bytes: over.bytes}, 0, bytes)) {
			of := p.oldest(c, p.tail())
			if of == none || !p.full() && p.overshoots(of, p.total.Tokens-tokens) {
				break
			}
			p.makeRoom(of, why)
			dropped = true
		}
		if c == Dialog && dropped && over.tokens {
			p.settle(keep / 4)
		}
	}
}

// makeRoom leaves a group out. If all is decided at once, it is shortened instead
// where leaving it out would leave a good part of the window empty. An answer is
// not: without its question it goes soon.
func (p *Planner) makeRoom(of int32, why string) {
	need, g := p.total.Tokens-p.budget.Room(), &p.groups[of]
	if p.atOnce && need > 0 && g.cost.Tokens-need > p.budget.Room()/emptyPart && (g.byUser || g.class != Dialog) {
		p.shorten(of, need, tokensOf, why)
		if p.total.Tokens <= p.budget.Room() {
			return
		}
	}
	p.drop(of, why)
}

// full reports whether there is more than the window or the request holds.
func (p *Planner) full() bool {
	return p.total.Tokens > p.budget.Room() || p.total.Bytes > p.budget.byteRoom()
}

// tail is how many of the newest tokens are spared. In a strict budget the
// shares alone decide.
func (p *Planner) tail() int {
	if p.budget.Strict || p.budget.Tokens == 0 {
		return 0
	}
	return max(0, p.budget.Room()-p.used[System]) / tailPart
}

// settle moves a cut of the dialogue on to where the user speaks, if that is
// near: an answer without its question is of little use.
func (p *Planner) settle(most int) {
	for most > 0 {
		of := p.oldest(Dialog, p.tail())
		if of == none || p.groups[of].byUser || of > p.prompt && p.prompt != none {
			return // here the user speaks; or what is left answers the newest prompt
		}
		if most -= p.groups[of].cost.Tokens; most >= 0 {
			p.drop(of, "the question before it was left out")
		}
	}
}

// mayGive reports whether a category has more than it is to keep. The newest
// group may be all of that; then half of it is for the others.
func (p *Planner) mayGive(c Category, keep int) bool {
	if p.used[c] <= keep {
		return false
	}
	return p.used[c]-p.newestOf(c) > keep/2
}

// newestOf is how many tokens of a category are in the newest group.
func (p *Planner) newestOf(c Category) int {
	if p.newest == none {
		return 0
	}
	return p.groups[p.newest].used[c]
}

// oldest returns the oldest group that is trimmed with a category, or none. The
// newest group is never among them, nor those in the newest tail of tokens. What
// tools answered goes with the dialogue around it.
func (p *Planner) oldest(c Category, tail int) int32 {
	of := p.head(c)
	if c == Dialog {
		if output := p.head(SystemOutput); of == none || output != none && output < of {
			of = output
		}
	}
	if of == none || tail > 0 && p.added-p.groups[of].begun <= tail {
		return none
	}
	return of
}

// head returns the first group of a class that is still there and is not the
// newest one, or none. A result that came late may have made an old group the
// newest: then it is passed over, and those after it still give way.
func (p *Planner) head(class Category) int32 {
	queue := p.queues[class]
	left := func(of int32) bool { return p.groups[of].gone || p.groups[of].class != class }
	for len(queue) > 0 && left(queue[0]) {
		queue = queue[1:]
	}
	for len(queue) > 1 && queue[0] == p.newest && left(queue[1]) {
		queue[1] = queue[0] // so that nobody passes over queue[1] again
		queue = queue[1:]
	}
	p.queues[class] = queue
	switch {
	case len(queue) > 0 && queue[0] != p.newest:
		return queue[0]
	case len(queue) > 1:
		return queue[1]
	}
	return none
}

// cutBeyondShares trims what is left until the window is big enough: SYSTEM or
// the newest groups take more than their part.
func (p *Planner) cutBeyondShares() {
	over := p.exceeded()
	why := p.whyFull(over)
	for _, c := range trimOrder {
		for p.above(over, p.budget.Room(), p.budget.byteRoom()) {
			of := p.oldest(c, 0)
			if of == none {
				break
			}
			p.drop(of, why)
		}
	}
}

func (p *Planner) whyFull(over excess) string {
	if over.tokens {
		return fmt.Sprintf("the context had more than %d tokens", p.budget.Room())
	}
	return fmt.Sprintf("the request had more than %d bytes", p.budget.byteRoom())
}
