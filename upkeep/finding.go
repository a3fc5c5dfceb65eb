package upkeep

import (
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Severity says whether something is damage.
type Severity string

// The severities.
const (
	// Fault is something that our writers must never leave behind: torn bytes, broken trees,
	// missing content.
	Fault Severity = "fault"
	// Warning needs attention, but no session is damaged: files that others can read, damage in
	// the trash.
	Warning Severity = "warning"
	// Note is worth knowing but not damage: a tool that was interrupted, a result whose call an
	// edit took out, or that a program wrote without one (no model is sent it), files that a
	// crash left behind, and anything that was already wrong in an imported source.
	Note Severity = "note"
)

// Finding is a fault or a note about a store.
type Finding struct {
	Session  string   `json:"session,omitempty"`
	Removal  string   `json:"removal,omitempty"` // its ID, if the session is in the trash
	Kind     string   `json:"kind"`              // a session.ProblemKind, a store.FaultKind, or one of the Kind constants
	Severity Severity `json:"severity"`
	Entry    string   `json:"entry,omitempty"`
	Offset   int64    `json:"offset,omitempty"` // in the session's log
	Path     string   `json:"path,omitempty"`
	Size     int64    `json:"size,omitempty"` // of a file that can be deleted
	Detail   string   `json:"detail"`
}

// The kinds of findings for which neither sessions nor stores have a name.
const (
	KindUnreadable   = "unreadable"        // a session that could not be looked at
	KindCorruptBlob  = "corrupt blob"      // content that does not match its name
	KindUnreferenced = "unreferenced blob" // content that nothing refers to
	KindUsage        = "usage"             // impossible token counts
	KindRole         = "unknown role"      // a message with a role that our writers would not write
	KindIndex        = "index"             // the index is damaged
	KindParted       = "parted"            // a session that damage has parted from the one that it continues
)

// severityOf returns how bad a kind of finding is. imported means that it is about an
// entry from another program's file.
func severityOf(kind string, imported bool) Severity {
	switch kind {
	case string(store.FaultPermissions):
		return Warning
	case string(session.ProblemInterrupted), string(session.ProblemOrphan), string(session.ProblemRoots), KindRole, KindUnreferenced,
		string(store.FaultTemporary), string(store.FaultLock), string(store.FaultLeftover):
		return Note // a healthy store may have it
	case string(session.ProblemDuplicate), string(session.ProblemRepeated), KindUsage:
		if imported { // we keep what a source has, and do not repair it by guessing
			return Note
		}
	}
	return Fault
}
