package transcript

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// # What an export wrote
//
// A program that continues an exported conversation appends to the file, and what it
// appends belongs to the exported session. In formats with ids, the records come back
// with the ids of our entries. In others, a reader makes the ids from the content of the records
// say; for those, an export remembers which entry each record is.

// entriesByRecord returns the entry that each record of a file is, where their ids differ. A
// record that comes from nothing in the session, such as the program's text before the
// first prompt, is "".
func entriesByRecord(s *Script, records []Record) map[string]string {
	places := make(map[string][]int) // where on the path each text, call and result is
	for i := range s.Path {
		for _, key := range blockKeys(&s.Path[i]) {
			places[key] = append(places[key], i)
		}
	}
	entries := make(map[string]string)
	at, id := 0, ""
	for i := range records {
		r := &records[i]
		for _, key := range blockKeys(&r.Entry) {
			if n := slices.IndexFunc(places[key], func(place int) bool { return place >= at }); n >= 0 {
				at = places[key][n]
				id = s.Path[at].ID
				break
			}
		}
		if r.ID != "" && r.ID != id {
			entries[r.ID] = id
		}
	}
	return entries
}

// blockKeys identifies what a message says in terms that every format keeps.
func blockKeys(e *session.Entry) []string {
	if e.Message == nil {
		return nil
	}
	var keys []string
	for i := range e.Message.Content {
		switch c := &e.Message.Content[i]; {
		case c.ToolUse != nil:
			keys = append(keys, "call "+c.ToolUse.ID)
		case c.ToolResult != nil:
			keys = append(keys, "result "+c.ToolResult.ToolUseID)
		case c.Text != nil && plain(c.Text.Content) != "":
			keys = append(keys, "text "+plain(c.Text.Content))
		}
	}
	return keys
}
