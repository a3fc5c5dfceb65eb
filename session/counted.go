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
