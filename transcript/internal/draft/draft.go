// Package draft is a conversation on its way into another program's file: the lines that are
// written so far, and what that file cannot hold.
package draft

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
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

// LoseSummary says that a program sends all messages itself, so that it has no place for an
// entry that changes which are sent.
func (d *Draft) LoseSummary(e *session.Entry, why string) {
	switch e.Type {
	case session.TypeCompaction, session.TypeBranchSummary, session.TypeMerge, session.TypeContextEdit:
		d.Lose(e.ID, string(e.Type), why)
	}
}

// LoseBlocks says which blocks of a message a program has no place for: see transcript.Lost.
func (d *Draft) LoseBlocks(e *session.Entry, why string, holds ...session.ContentType) {
	d.Losses = append(d.Losses, transcript.Lost(e, why, holds...)...)
}

// LoseBranches says that a program holds one list of messages, if there are others.
func (d *Draft) LoseBranches() { d.Losses = append(d.Losses, d.Script.OtherBranches()...) }

// Fact returns a text that the conversation's reader kept, or another if there is none.
func (d *Draft) Fact(name, otherwise string) string {
	text, _ := d.Script.Facts[name].(string)
	return cmp.Or(text, otherwise)
}

// Members returns the members of a file that is there already, for a merge; none if there is no
// such file. A file that cannot be read is not replaced.
func Members(path string, old []byte) (residue.Object, error) {
	if len(bytes.TrimSpace(old)) == 0 {
		return nil, nil
	}
	v, err := loose.Parse(old)
	if err != nil {
		return nil, &session.Error{Op: "write", Path: path, Kind: session.ErrCorrupt, Err: err}
	}
	return residue.Object(v.Except()), nil
}

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
