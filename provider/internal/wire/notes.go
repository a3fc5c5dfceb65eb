package wire

import (
	"fmt"

	"github.com/coppice-dev/coppice/provider"
)

// Notes collects what an encoder could not send.
type Notes struct {
	List  []provider.Note
	entry string // the current one
}

// Of sets the entry that the next notes are about.
func (n *Notes) Of(entry string) { n.entry = entry }

// Add adds a note.
func (n *Notes) Add(format string, args ...any) {
	n.List = append(n.List, provider.Note{Entry: n.entry, What: fmt.Sprintf(format, args...)})
}
