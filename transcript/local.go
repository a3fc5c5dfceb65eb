package transcript

import (
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// # Files of this machine
//
// Some programs record in a message the path of an attached file, and send its content.
// Another program cannot use the path, and would disclose it to its provider. So only
// the program that wrote it gets it back.

// withoutLocal returns a copy of the script without the blocks whose bytes are in files
// of this machine, and what that loses. A script that goes back to the program that it
// came from keeps them.
func (s *Script) withoutLocal() (*Script, []Loss) {
	out := *s
	if s.NativeID != "" {
		return &out, nil
	}
	lost := make(map[string]bool)
	given := *s.Context
	given.Entries = entriesWithoutLocal(given.Entries, lost)
	out.Context, out.Path, out.All = &given, entriesWithoutLocal(s.Path, lost), entriesWithoutLocal(s.All, lost)
	var losses []Loss
	for _, id := range slices.Sorted(maps.Keys(lost)) {
		losses = append(losses, Loss{EntryID: id, What: "attached file", Why: "it is a file of this machine, and its path is not written"})
	}
	return &out, losses
}

func entriesWithoutLocal(entries []session.Entry, lost map[string]bool) []session.Entry {
	out := entries
	for i := range entries {
		if entries[i].Message == nil {
			continue
		}
		kept, found := session.WithoutLocal(entries[i].Message.Content)
		if !found {
			continue
		}
		if &out[0] == &entries[0] {
			out = slices.Clone(entries)
		}
		m := *entries[i].Message
		m.Content, out[i].Message = kept, &m
		lost[entries[i].ID] = true
	}
	return out
}
