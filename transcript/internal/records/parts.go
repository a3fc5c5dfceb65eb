package records

import (
	"strconv"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// AddParts adds what one record of a source became: no entry, one, or several, such as a
// message and the results of tools in it. All have the record's time. The last has its id,
// because the next record of the source follows that one; the others have it with a mark and
// their number.
func AddParts(to transcript.Sink, rec transcript.Record, mark string, entries []session.Entry) error {
	at := rec.Entry.Timestamp
	for i, e := range entries {
		part := rec
		part.Entry, part.Entry.Timestamp = e, at
		if i < len(entries)-1 && rec.ID != "" {
			part.ID += mark + strconv.Itoa(i+1)
		}
		if err := to.Add(part); err != nil {
			return err
		}
		rec.Parent = "" // the next part follows this one
	}
	return nil
}

// ChildOf says that a conversation came from another one, unless that has no id.
func ChildOf(c *transcript.Conversation, parent, relation string) {
	if parent != "" {
		c.Parent, c.Relation = parent, relation
	}
}
