package redact

// TokenKinds returns the kinds of the secrets that begin with fixed bytes.
func TokenKinds() []string {
	var kinds []string
	for _, t := range tokens {
		kinds = append(kinds, t.kind)
	}
	return kinds
}

// Anchors returns what each rule looks for.
func Anchors() [][]string {
	var all [][]string
	for _, r := range allRules() {
		all = append(all, r.anchors)
	}
	return all
}

// Work returns how many bytes the rules look at after their anchors.
func Work(text string) int {
	_, work := new(Scanner).round("", []byte(text))
	return work
}
