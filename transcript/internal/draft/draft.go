// Package draft is a conversation on its way into another program's file: the lines that are
// written so far, and what that file cannot hold.
package draft

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/transcript"
)

// Draft is a conversation that is being written. Writers embed it.
type Draft struct {
	Script *transcript.Script
	Data   bytes.Buffer // of a file of lines
	Losses []transcript.Loss
}

// Line writes a line.
func (d *Draft) Line(text json.RawMessage) {
	d.Data.Write(text)
	d.Data.WriteByte('\n')
}

// Lose says that the file cannot hold something of an entry, and why.
func (d *Draft) Lose(entry, what, why string) {
	d.Losses = append(d.Losses, transcript.Loss{EntryID: entry, What: what, Why: why})
}

// LoseLabels says that a program has no labels, if there are any.
func (d *Draft) LoseLabels(program string) {
	for i := range d.Script.All {
		if e := &d.Script.All[i]; e.Label != nil {
			d.Lose(e.ID, "label", fmt.Sprintf("%s has no labels", program))
		}
	}
}

// LoseBranches says that a program holds one list of messages, if there are others.
func (d *Draft) LoseBranches() { d.Losses = append(d.Losses, d.Script.OtherBranches()...) }

// NativeID returns the id that a conversation has in a program: the one that it had there, or
// else that of its session, if the program accepts it. Otherwise it makes one, a UUID.
func NativeID(s *transcript.Script, format string, accepts func(id string) bool) string {
	for _, id := range []string{s.NativeID, s.Header.ID} {
		if accepts(id) {
			return id
		}
	}
	return transcript.HashID(format, s.Header.ID)
}
