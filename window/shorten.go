package window

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/session"
)

// noteLarge records a group that may be worth shortening later.
func (p *Planner) noteLarge(of int32) {
	if of == none || p.budget.Tokens == 0 {
		return
	}
	if g := &p.groups[of]; !g.large && g.cost.Tokens > p.budget.Room()/largePart {
		g.large = true
		p.large = append(p.large, of)
	}
}

// shortenLarge shortens groups that are larger than the room for their whole category,
// before anything else has to go because of them. It takes no more from them than is
// needed to reach the lower mark.
func (p *Planner) shortenLarge(over excess) {
	if !over.tokens && !over.categories {
		return
	}
	p.large = slices.DeleteFunc(p.large, func(of int32) bool {
		g := &p.groups[of]
		if g.gone || g.class == System {
			return true
		}
		limit := p.limit(g.class)
		by := min(g.cost.Tokens-p.budget.lower(limit), p.needed(over, g.class))
		if g.cost.Tokens <= limit || by <= 0 {
			return false
		}
		p.shorten(of, by, tokensOf, fmt.Sprintf("it was larger than the %d tokens of %v that one turn may take", limit, g.class))
		return true // once is enough: now it is no larger than the others
	})
}

// needed returns by how much the window or a category is above its lower mark.
func (p *Planner) needed(over excess, class Category) int {
	tokens := 0
	if over.tokens {
		tokens = p.total.Tokens - p.budget.lower(p.budget.Room())
	}
	if over.categories {
		tokens = max(tokens, p.used[class]-p.budget.lower(p.budget.ceilings(p.used)[class]))
	}
	return tokens
}

// limit returns the size up to which a group of a class is not shortened: the
// category's share or, if shares are not ceilings, a quarter of the room if that is
// more.
func (p *Planner) limit(class Category) int {
	share := p.budget.guaranteed(class, p.used[System])
	if p.budget.Strict {
		return share
	}
	return max(share, max(0, p.budget.Room()-p.used[System])/4)
}

// shortenNewest shortens the newest group to the room that is left. It must be kept,
// and nothing else can go any more.
func (p *Planner) shortenNewest() {
	over := p.exceeded()
	if p.newest == none || !over.tokens && !over.bytes {
		return
	}
	why := p.whyFull(over)
	if over.tokens {
		p.shortenAgain(p.total.Tokens-p.budget.Room(), tokensOf, why)
	}
	above := func() bool { return p.stillExceeds(over, p.budget.Room(), p.budget.byteRoom()) }
	for above() {
		at := p.oldestImages()
		if at == none || p.groupOf(at) != p.newest && p.groupOf(at) != p.prompt {
			break
		}
		p.removeImages(at, why, above)
	}
	if by := p.total.Tokens - p.budget.Room(); by > 0 {
		p.shortenAgain(by, tokensOf, why) // placeholders of images are text
	}
	if by := p.total.Bytes - p.budget.byteRoom(); by > 0 {
		p.shortenAgain(by, bytesOf, why)
	}
}

// exactCuts is how often the newest group is cut to exactly the room that is left. If
// it keeps growing after that, more is cut at a time, so that it need not be cut again
// with every result: cutting all texts over and over would take quadratic time.
const (
	exactCuts = 16
	mostKept  = 80 // how many percent of its texts are kept then, at most
)

// textList is what may still be cut of the newest group, once it was cut so often that
// looking at all of it is too expensive.
type textList struct {
	of    int32   // the group
	cuts  int     // how often it was cut
	items []int32 // those that may have text left
	last  int32   // the last item that was taken in, or none
	// What the other items cost: counted, and as recorded.
	afresh, now Cost
}

// shortenAgain shortens the newest group, which may have been shortened before.
func (p *Planner) shortenAgain(by int, m measure, why string) {
	t := &p.texts
	if t.of != p.newest {
		*t = textList{of: p.newest, last: none}
	}
	if t.cuts++; t.cuts <= exactCuts {
		p.shorten(p.newest, by, m, why)
		return
	}
	at := p.groups[t.of].first
	if t.last != none {
		at = p.items[t.last].next
	}
	for ; at != none; at = p.items[at].next {
		t.items, t.last = append(t.items, at), at
	}
	now := t.sum(p, t.items, m)
	need := now.need(by)
	need += max(0, now.texts-need) * (100 - min(p.budget.CutTo, mostKept)) / 100
	p.cutTexts(t.items, level(now.sizes, need), m, why)
	t.items = slices.DeleteFunc(t.items, func(at int32) bool { return p.isSpent(at, t) })
}

// isSpent reports whether an item has no text left, and if so moves its cost out of
// what is examined.
func (p *Planner) isSpent(at int32, t *textList) bool {
	if !p.mayShorten(at) {
		return true
	}
	e, left := p.current(at), false
	eachText(e.Message.Content, func(text string) { left = left || text != "" })
	if left || p.items[at].images > 0 {
		return false
	}
	t.afresh.add(countAfresh(p.counter, p.whose, e).Cost)
	t.now.add(p.items[at].cost)
	return true
}

// sum measures the texts of items, and adds what was measured before.
func (t *textList) sum(p *Planner, items []int32, m measure) measured {
	sum := measured{afresh: m.of(t.afresh), now: m.of(t.now)}
	for _, at := range items {
		if !p.mayShorten(at) {
			continue
		}
		e := p.current(at)
		eachText(e.Message.Content, func(text string) {
			size := m.text(p, text)
			sum.sizes = append(sum.sizes, size)
			sum.texts += size
		})
		sum.afresh += m.of(countAfresh(p.counter, p.whose, e).Cost)
		sum.now += m.of(p.items[at].cost)
	}
	return sum
}

// measured is the size of items and of their texts.
type measured struct {
	sizes              []int // of the texts
	texts, afresh, now int
}

// need returns how much of the texts must go to make the items smaller by a number. The
// recorded and the counted size may differ, so the texts are cut in proportion, and far
// enough that the count is small enough too.
func (s *measured) need(by int) int {
	return max(by*s.texts/max(s.now, 1), s.afresh-(s.now-by))
}

// measure is one side of a cost: tokens or bytes.
type measure struct {
	of   func(Cost) int
	text func(*Planner, string) int
}

var (
	tokensOf = measure{func(c Cost) int { return c.Tokens }, func(p *Planner, text string) int { return p.counter.CountText(text) }}
	bytesOf  = measure{func(c Cost) int { return c.Bytes }, func(_ *Planner, text string) int { return len(text) }}
)

// shorten cuts the texts of a group to make it smaller by a number of tokens or bytes:
// the longest first, all of them to one length. Calls, thinking and blocks of unknown
// types stay whole, because providers reject half of one.
func (p *Planner) shorten(of int32, by int, m measure, why string) {
	var items []int32
	for at := p.groups[of].first; at != none; at = p.items[at].next {
		items = append(items, at)
	}
	now := (&textList{}).sum(p, items, m)
	p.cutTexts(items, level(now.sizes, now.need(by)), m, why)
}

// cutTexts cuts the texts of items to a length.
func (p *Planner) cutTexts(items []int32, longest int, m measure, why string) {
	size := func(text string) int { return m.text(p, text) }
	for _, at := range items {
		if !p.mayShorten(at) {
			continue
		}
		if content, cut := shortened(p.current(at).Message.Content, longest, size); cut {
			p.change(at, content, Omission{Kind: Shortened, Why: why})
		}
	}
}

func (p *Planner) mayShorten(at int32) bool {
	it := &p.items[at]
	return !it.gone && it.category != System && p.current(at).Message != nil
}

// level returns the length to which the longest texts must be cut so that together they
// become shorter by a number.
func level(sizes []int, by int) int {
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	for n := range sizes {
		next := 0
		if n+1 < len(sizes) {
			next = sizes[n+1]
		}
		// The first n+1 can be cut down to the next one's length.
		if gain := (n + 1) * (sizes[n] - next); gain < by {
			by -= gain
			continue
		}
		return max(0, sizes[n]-(by+n)/(n+1))
	}
	return 0
}

// eachText visits the texts that may be cut: plain text and tool results.
func eachText(blocks []session.Content, visit func(string)) {
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			visit(b.Text.Content)
		case b.ToolResult != nil && len(b.ToolResult.Parts) > 0:
			eachText(b.ToolResult.Parts, visit)
		case b.ToolResult != nil:
			visit(b.ToolResult.Content)
		}
	}
}

// shortened returns the blocks with every text cut to a size, and whether any was
// longer. The given blocks do not change.
func shortened(blocks []session.Content, most int, size func(string) int) (_ []session.Content, cut bool) {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Text != nil:
			if text, short := Shorten(b.Text.Content, most, size); short {
				t := *b.Text
				t.Content, b.Text, cut = text, &t, true
			}
		case b.ToolResult != nil && len(b.ToolResult.Parts) > 0:
			if parts, short := shortened(b.ToolResult.Parts, most, size); short {
				r := *b.ToolResult
				r.Parts, r.Content = parts, session.TextOf(parts)
				b.ToolResult, cut = &r, true
			}
		case b.ToolResult != nil:
			if text, short := Shorten(b.ToolResult.Content, most, size); short {
				r := *b.ToolResult
				r.Content, r.Blob, r.Size = text, "", 0
				b.ToolResult, cut = &r, true
			}
		}
	}
	return blocks, cut
}

// marker replaces the middle of a text. It does not say how much was cut, because the
// text may be cut again.
const marker = "\n[… middle left out …]\n"

// Shorten cuts the middle out of a text until its size is no more than most, and puts a
// marker there that says so. If not even the marker fits, the marker is cut too. It reports
// whether the text was longer.
func Shorten(text string, most int, size func(string) int) (string, bool) {
	has := size(text)
	if has <= most {
		return text, false
	}
	for keep := len(text); keep > 0; {
		keep = int(float64(keep) * float64(most) / float64(has) * 0.9) // a little less, because texts are not uniform
		head, tail := Ends(text, keep*2/3, keep/3)
		short := head + marker + tail
		if has = size(short); has <= most {
			return short, true
		}
	}
	for _, short := range stumps {
		if size(short) <= most {
			return short, true
		}
	}
	return "", true
}

// stumps replace a text that is cut completely.
var stumps = []string{"[…]", "…", ""}

// Ends returns the beginning and the end of a text whose middle is left out: at most head and
// tail bytes, and only whole characters.
func Ends(text string, head, tail int) (beginning, end string) {
	return text[:runeEnd(text, head)], text[runeStart(text, len(text)-tail):]
}

// runeEnd returns the last position up to at that does not split a character.
func runeEnd(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// runeStart returns the first position from at on that does not split one.
func runeStart(s string, at int) int {
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}
