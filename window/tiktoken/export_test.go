package tiktoken

import "github.com/coppice-dev/coppice/window"

// Tokens returns the ids of the tokens of a text, and their texts.
func Tokens(counter window.Counter, text string) (ids []uint32, tokens []string) {
	e := counter.(*encoding)
	for id := range e.IDs(text) {
		ids, tokens = append(ids, id), append(tokens, e.load().token(id))
	}
	return ids, tokens
}

// Pieces returns the pieces of a text.
func Pieces(counter window.Counter, text string) (pieces []string) {
	for split := counter.(*encoding).load().split; text != ""; {
		n := split(text)
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// MergeSteps returns how many pairs merging a piece looks at.
func MergeSteps(counter window.Counter, piece string) int {
	var m merger
	m.merge(counter.(*encoding).load(), piece)
	return m.steps
}

// Load unpacks a vocabulary again.
func Load(counter window.Counter) error {
	_, err := read(counter.Name(), nil)
	return err
}
