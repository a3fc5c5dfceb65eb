package session

// CountedTokens returns a message's Tokens for the number in a format that has no
// other way to say "not counted" than 0: nil unless the number is positive. In our
// own files a count that is missing and one that is 0 differ.
func CountedTokens(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

// MaxCount is the greatest number of tokens, or of millionths of a dollar, that a
// message or a compaction can have. It is far beyond any real one, and small enough
// that sums over a store cannot overflow. In a log, a number that is negative or
// greater counts as missing; whoever appends one is refused with ErrInvalid.
const MaxCount = 1 << 40

// badCount returns the first number of an entry that cannot be a count.
func (e *Entry) badCount() (name string, n int, bad bool) {
	is := func(what string, count int) bool {
		name, n, bad = what, count, count < 0 || int64(count) > MaxCount
		return bad
	}
	switch m := e.Message; {
	case e.Compaction != nil && is("tokens_before", e.Compaction.TokensBefore):
		return
	case m == nil:
	case m.Tokens != nil && is("tokens", *m.Tokens):
		return
	case m.Usage == nil:
	case is("usage.input", m.Usage.Input), is("usage.output", m.Usage.Output), is("usage.cache_read", m.Usage.CacheRead),
		is("usage.cache_write", m.Usage.CacheWrite), is("usage.reasoning", m.Usage.Reasoning), is("usage.cost_micro_usd", m.Usage.CostMicroUSD):
		return
	}
	return "", 0, false
}
