package window

import (
	"fmt"
	"math"
)

// largePart: a group larger than this fraction of the room is remembered as large.
const largePart = 64

// emptyPart: it is not worth shortening a group to fill less than this fraction of the room.
const emptyPart = 20

// tailPart: the newest groups, up to this fraction of the room, are spared as long as
// there are others, because the current work needs what its tools just returned.
const tailPart = 4

// fit makes the conversation fit the budget again if it has outgrown it. When it cuts,
// it cuts down to the lower mark. If the boundary moved with every message, every
// request would miss the prompt cache.
//
// It runs after each entry, and what it does depends only on the entries, not on when a
// view is asked for. So a program that was restarted sends the same beginning as
// before.
func (p *Planner) fit() {
	over := p.exceeded()
	if over == (excess{}) {
		return
	}
	p.dropImages(over)
	p.shortenLarge(over)
	p.cutCategories(over)
	p.cutTotal(over)
	p.cutBeyondShares()
	p.shortenPrompt()
	p.shortenNewest()
	p.dropPrompt()
}

// excess is which limits are exceeded.
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

// overCeiling reports whether a category has more than a strict budget allows. What is
// too much because of SYSTEM shows in the total.
func (p *Planner) overCeiling() bool {
	if !p.budget.Strict || p.budget.Tokens == 0 {
		return false
	}
	ceilings := p.budget.ceilings(p.used)
	return p.used[Context] > ceilings[Context] || p.used[Dialog] > ceilings[Dialog] || p.used[SystemOutput] > ceilings[SystemOutput]
}

// stillExceeds reports whether what was exceeded is still more than some limits.
func (p *Planner) stillExceeds(over excess, tokens, bytes int) bool {
	return over.tokens && p.total.Tokens > tokens || over.bytes && p.total.Bytes > bytes
}

// dropImages makes room in a request with too many bytes by turning images into
// placeholders, oldest first. The newest group keeps its own as long as possible.
func (p *Planner) dropImages(over excess) {
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

// overshoots reports whether a group is so much larger than what still has to go that
// it had better stay.
func (p *Planner) overshoots(of int32, tokens int) bool { return p.groups[of].cost.Tokens > 2*tokens }

// cutTotal trims the categories down to the lower mark of the window, but each only to
// what it is guaranteed. For CONTEXT that is its whole share; for the others, which
// grow with every turn, the lower mark of their share.
func (p *Planner) cutTotal(over excess) {
	if !over.tokens && !over.bytes {
		return
	}
	tokens, bytes := p.budget.lower(p.budget.Room()), p.budget.lower(p.budget.byteRoom())
	why := p.whyFull(over)
	for _, c := range trimOrder {
		keep := math.MaxInt
		if over.tokens {
			keep = p.budget.guaranteed(c, p.used[System])
			if c != Context {
				keep = p.budget.lower(keep)
			}
		}
		dropped := false
		for p.stillExceeds(over, tokens, bytes) && (p.mayGive(c, keep) || p.stillExceeds(excess{bytes: over.bytes}, 0, bytes)) {
			of := p.oldest(c, p.tail())
			if of == none || !p.isFull() && p.overshoots(of, p.total.Tokens-tokens) {
				break
			}
			p.makeRoom(of, why)
			dropped = true
		}
		if c == Dialog && dropped && over.tokens {
			p.cutToNextPrompt(keep / 4)
		}
	}
}

// makeRoom leaves a group out. If everything is decided at once (see Fill), the group
// is shortened instead where leaving it out would leave a good part of the window
// empty. An answer is not shortened, because without its question it goes soon anyway.
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

// isFull reports whether there is more than fits the window or the request.
func (p *Planner) isFull() bool {
	return p.total.Tokens > p.budget.Room() || p.total.Bytes > p.budget.byteRoom()
}

// tail returns how many of the newest tokens are spared. In a strict budget, the shares
// alone decide.
func (p *Planner) tail() int {
	if p.budget.Strict || p.budget.Tokens == 0 {
		return 0
	}
	return max(0, p.budget.Room()-p.used[System]) / tailPart
}

// cutToNextPrompt moves a cut of the dialogue on to the user's next message, if that is near: an
// answer without its question is of little use.
func (p *Planner) cutToNextPrompt(most int) {
	for most > 0 {
		of := p.oldest(Dialog, p.tail())
		if of == none || p.groups[of].byUser || of > p.prompt && p.prompt != none {
			return // this is a message of the user, or what is left answers the newest prompt
		}
		if most -= p.groups[of].cost.Tokens; most >= 0 {
			p.drop(of, "the question before it was left out")
		}
	}
}

// mayGive reports whether a category has more than it should keep. If the newest group
// is all of that, half of it counts for the others.
func (p *Planner) mayGive(c Category, keep int) bool {
	if p.used[c] <= keep {
		return false
	}
	return p.used[c]-p.newestOf(c) > keep/2
}

// newestOf returns how many tokens of a category are in the newest group.
func (p *Planner) newestOf(c Category) int {
	if p.newest == none {
		return 0
	}
	return p.groups[p.newest].used[c]
}

// oldest returns the oldest group that is trimmed with a category, or none. It is never
// the newest group, nor one in the newest tail of tokens. Tool results go with the
// dialogue around them.
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

// head returns the first group of a class that is still there and is not the newest
// one, or none. A late result may have made an old group the newest; it is then
// skipped, and those after it can still go.
func (p *Planner) head(class Category) int32 {
	queue := p.queues[class]
	left := func(of int32) bool { return p.groups[of].gone || p.groups[of].class != class }
	for len(queue) > 0 && left(queue[0]) {
		queue = queue[1:]
	}
	for len(queue) > 1 && queue[0] == p.newest && left(queue[1]) {
		queue[1] = queue[0] // so that the next call does not skip queue[1] again
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

// cutBeyondShares trims what is left until it fits the window, because SYSTEM or the
// newest groups take more than their part.
func (p *Planner) cutBeyondShares() {
	over := p.exceeded()
	why := p.whyFull(over)
	for _, c := range trimOrder {
		for p.stillExceeds(over, p.budget.Room(), p.budget.byteRoom()) {
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
