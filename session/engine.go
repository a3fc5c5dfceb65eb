package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reserved is what the engine's own begins with: the types of custom entries with which it
// organises a session and records what an agent does, and the members of a message's metadata
// that belong to them. An agent says what is queued, and a conversation continues where an entry
// says, so only Coppice itself writes them. Whatever a person, a program, a tool or a file of
// another program wants to have in a log comes through ParseEntry, CheckEntry or IsReserved,
// which refuse it.
//
// A log that comes from elsewhere may have such entries all the same: a session file that is
// imported, a copy. They are history there. Where something would happen because of one, the
// agent asks for a proof that it wrote the entry itself: see package agent.
const Reserved = "coppice."

// IsReserved reports whether a name belongs to the engine: see Reserved.
func IsReserved(name string) bool { return strings.HasPrefix(name, Reserved) }

// signed is the member of the data of an entry by which an agent proves that it wrote it.
const signed = "signed"

// Unsigned returns the entry without the proof that an agent wrote it. What was signed here once,
// and comes back with an import, does not wait any more.
func (e Entry) Unsigned() Entry {
	if e.Custom == nil || !IsReserved(e.Custom.CustomType) || e.Custom.Data[signed] == nil {
		return e
	}
	custom := *e.Custom
	custom.Data = maps.Clone(custom.Data)
	delete(custom.Data, signed)
	e.Custom = &custom
	return e
}

// checkOwner refuses an entry that only the engine may write.
func (e *Entry) checkOwner() error {
	if e.Custom != nil && IsReserved(e.Custom.CustomType) {
		return fmt.Errorf("custom entries whose type begins with %q are written by Coppice itself, and this one is a %q: "+
			"use the operation for it, such as tag or pin, or give the type another name", Reserved, e.Custom.CustomType)
	}
	if e.Message == nil {
		return nil
	}
	var reserved []string
	for name := range e.Message.Metadata {
		if IsReserved(name) {
			reserved = append(reserved, name)
		}
	}
	if len(reserved) > 0 {
		return fmt.Errorf("members of the metadata whose names begin with %q are written by Coppice itself: leave out %q", Reserved, slices.Min(reserved))
	}
	return nil
}
