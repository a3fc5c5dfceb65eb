package wire

import (
	"fmt"

	"github.com/coppice-dev/coppice/provider"
)

// Notes collects what an encoder could not take along.
type Notes struct {
	List  []provider.Note
	entry string // whose turn it is
}

// Of says whose notes follow.
func (n *Notes) Of(entry string) { n.entry = entry }

// Add adds a note.
func (n *Notes) Add(format string, args ...any) {
	n.List = append(n.List, provider.Note{Entry: n.entry, What: fmt.Sprintf(format, args...)})
}
