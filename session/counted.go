package session

import (
	"cmp"
	"fmt"
)

// CountedTokens returns a message's Tokens for the number in a format that has no
// other way to say "not counted" than 0: nil unless the number is positive. In our
// own files a count that is missing and one that is 0 differ.
func CountedTokens(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

// maxCount is the greatest number of tokens, or of millionths of a dollar, that a
// message or a compaction can have. It is far beyond any real one, and small enough
// that sums over a store cannot overflow. In a log, a number that is negative or
// greater counts as missing; an append of one is refused with ErrInvalid.
const maxCount = 1 << 40

// check refuses a role that is not one of the constants, and numbers that are no
// counts, which readers would pass over.
func (m *MessageEntry) check() error {
	if !isRole(m.Role) {
		return fmt.Errorf("a message cannot have the role %q: it must be one of the Role constants, such as %q", m.Role, RoleUser)
	}
	if m.Tokens != nil {
		if err := checkCount("tokens", *m.Tokens); err != nil {
			return err
		}
	}
	if u := m.Usage; u != nil {
		return cmp.Or(
			checkCount("usage.input", u.Input), checkCount("usage.output", u.Output), checkCount("usage.cache_read", u.CacheRead),
			checkCount("usage.cache_write", u.CacheWrite), checkCount("usage.cache_write_1h", u.CacheWriteHour), checkCount("usage.reasoning", u.Reasoning), checkCount("usage.cost_micro_usd", u.CostMicroUSD))
	}
	return nil
}

func (c *CompactionEntry) check() error { return checkCount("tokens_before", c.TokensBefore) }

// checkCount makes sure that a number is a count.
func checkCount(name string, n int) error {
	if n < 0 || int64(n) > maxCount {
		return fmt.Errorf("%q is %d: it must be from 0 to %d", name, n, int64(maxCount))
	}
	return nil
}
