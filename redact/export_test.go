package redact

// TokenKinds returns the kinds of the secrets that begin with fixed bytes.
func TokenKinds() []string {
	var kinds []string
	for _, t := range tokens {
		kinds = append(kinds, t.kind)
	}
	return kinds
}
