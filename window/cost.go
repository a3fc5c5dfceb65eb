package window

import (
	"github.com/coppice-dev/coppice/session"
)

// Cost is what an entry takes of a window.
type Cost struct {
	Tokens int
	Bytes  int // of its content as it is sent, images in base64
}

// CountEntry returns what an entry costs: the tokens that were recorded with it,
// or that its provider reported for it, or else what a counter counts. provider
// says how images are priced; empty gives the most cautious price.
func CountEntry(c Counter, provider string, e *session.Entry) Cost { panic("soon") }

// CountContent returns what blocks of content cost, whatever was recorded.
func CountContent(c Counter, provider string, blocks []session.Content) Cost { panic("soon") }
