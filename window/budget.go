package window

import (
	"fmt"
	"math"

	"github.com/coppice-dev/coppice/session"
)

// The usual numbers, in tokens, for callers who name none.
const (
	DefaultWindow  = 100_000 // of a model that does not say how much it takes
	DefaultReserve = 16_384  // stays free for the answer; models may announce far more, and seldom use it
	DefaultKeep    = 20_000  // of the end of a conversation stay as they are: about as many as the current work needs
)

// Budget is how much may be sent, and how it is divided.
type Budget struct {
	// Tokens is the model's window: the request and the answer together. Default: no
	// limit.
	Tokens int
	// Reserve is how much of the window is kept free for the answer, and for what the
	// caller sends in addition to the entries, such as the schemas of tools.
	Reserve int
	// Bytes is how much of the largest request that the provider accepts the content of
	// the entries may take. Default: no limit.
	Bytes int
	// Shares is how the tokens are divided. Default: DefaultShares.
	Shares Shares
	// Strict makes the shares ceilings: a category is trimmed when it exceeds its share plus
	// what less important categories leave unused, even if the window has room. Otherwise
	// nothing is trimmed before the window is full, and a share is a guarantee.
	Strict bool
	// CutTo is the lower mark, in percent: when the budget is exceeded, enough is left out
	// to get down to this part of it. The lower it is, the more is left out at a time, the
	// less often that happens, and the more a provider's prompt cache is used. Default: 60.
	CutTo int
}

// Shares are the parts of the window that belong to the categories, in percent.
type Shares struct {
	System, Context, Dialog, SystemOutput float64
}

// DefaultShares are the shares of a Budget without any.
var DefaultShares = Shares{System: 10, Context: 35, Dialog: 50, SystemOutput: 5}

// Of returns the share of a category, in percent.
func (s Shares) Of(c Category) float64 {
	switch c {
	case System:
		return s.System
	case Context:
		return s.Context
	case Dialog:
		return s.Dialog
	case SystemOutput:
		return s.SystemOutput
	}
	return 0
}

const defaultCutTo = 60

// withDefaults returns the budget with defaults filled in, or what is wrong with it.
func (b Budget) withDefaults() (Budget, error) {
	if b.Shares == (Shares{}) {
		b.Shares = DefaultShares
	}
	if b.CutTo == 0 {
		b.CutTo = defaultCutTo
	}
	switch {
	case b.Tokens < 0 || b.Reserve < 0 || b.Bytes < 0:
		return b, fmt.Errorf("budget of %d tokens, %d of them reserved, and %d bytes: a number is negative: %w", b.Tokens, b.Reserve, b.Bytes, session.ErrInvalid)
	case b.Tokens > 0 && b.Reserve >= b.Tokens:
		return b, session.Invalidf("a reserve of %d tokens leaves nothing of a window of %d", b.Reserve, b.Tokens)
	case b.CutTo < 1 || b.CutTo > 100:
		return b, fmt.Errorf("budget: it cannot be cut to %d %%: %w", b.CutTo, session.ErrInvalid)
	}
	return b, b.Shares.check()
}

func (s Shares) check() error {
	sum := 0.0
	for c := System; c <= SystemOutput; c++ {
		share := s.Of(c)
		if share < 0 || math.IsNaN(share) {
			return fmt.Errorf("budget: the share of %v is %v %%: %w", c, share, session.ErrInvalid)
		}
		sum += share
	}
	if sum > 100.001 { // shares such as 33.3 and 66.7 may be slightly off
		return fmt.Errorf("budget: the shares add up to %v %%: %w", sum, session.ErrInvalid)
	}
	return nil
}

// Room returns how many tokens may be sent, or math.MaxInt if there is no limit.
func (b Budget) Room() int {
	if b.Tokens == 0 {
		return math.MaxInt
	}
	return b.Tokens - b.Reserve
}

// byteRoom is the same in bytes.
func (b Budget) byteRoom() int {
	if b.Bytes == 0 {
		return math.MaxInt
	}
	return b.Bytes
}

// lower returns the lower mark of an upper one.
func (b Budget) lower(upper int) int {
	if upper == math.MaxInt {
		return upper
	}
	return int(float64(upper) * float64(b.CutTo) / 100)
}

// guaranteed returns what a category is guaranteed when SYSTEM takes system tokens: its share
// of the window or, if SYSTEM takes more than its own share, its part of what SYSTEM
// leaves.
func (b Budget) guaranteed(c Category, system int) int {
	room := float64(b.Room())
	share := b.Shares.Of(c)
	whole := room
	if others := 100 - b.Shares.System; others > 0 {
		whole = min(room, (room-float64(system))*100/others)
	}
	return max(0, int(whole*share/100))
}

// ceilings returns what each category may take in a strict budget: its share plus what
// less important ones leave unused.
func (b Budget) ceilings(used sums) (ceilings sums) {
	spare := 0
	for c := SystemOutput; c >= System; c-- {
		ceilings[c] = int(float64(b.Room())*b.Shares.Of(c)/100) + spare
		spare = max(0, ceilings[c]-used[c])
	}
	return ceilings
}

// sums are numbers of tokens by category.
type sums [SystemOutput + 1]int
