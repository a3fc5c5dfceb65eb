package upkeep

import (
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Severity says whether something is damage.
type Severity string

// The severities.
const (
	// Fault is what none of our writers may ever leave: torn bytes, broken pairs
	// of calls and results, missing content.
	Fault Severity = "fault"
	// Warning is no damage, and somebody should do something about it: files that
	// others can read.
	Warning Severity = "warning"
	// Note is worth knowing and no damage: a tool that was interrupted, files that
	// a crash left, and whatever an imported source had wrong already.
	Note Severity = "note"
)

// Finding is a fault or a note about a store.
type Finding struct {
	Session  string   `json:"session,omitempty"`
	Kind     string   `json:"kind"` // a session.ProblemKind, a store.FaultKind, or one of the Kind constants
	Severity Severity `json:"severity"`
	Entry    string   `json:"entry,omitempty"`
	Offset   int64    `json:"offset,omitempty"` // in the session's log
	Path     string   `json:"path,omitempty"`
	Size     int64    `json:"size,omitempty"` // of a file that can be deleted
	Detail   string   `json:"detail"`
}

// The kinds of findings that neither a session nor a store has a name for.
const (
	KindUnreadable   = "unreadable"        // a session that could not be looked at
	KindCorruptBlob  = "corrupt blob"      // content that does not match its name
	KindUnreferenced = "unreferenced blob" // content that nothing refers to
	KindUsage        = "usage"             // counts of tokens that cannot be
	KindRole         = "unknown role"      // a message of a role that none of our writers would write
	KindIndex        = "index"             // the index is damaged
)

// severityOf says how bad a kind of finding is. imported: it is about an entry
// that came from another program's file.
func severityOf(kind string, imported bool) Severity {
	switch kind {
	case string(store.FaultPermissions):
		return Warning
	case string(session.ProblemInterrupted), string(session.ProblemRoots), KindRole, KindUnreferenced,
		string(store.FaultTemporary), string(store.FaultLock), string(store.FaultLeftover):
		return Note // a store in good health may have it
	case string(session.ProblemOrphan), string(session.ProblemDuplicate), string(session.ProblemRepeated), KindUsage:
		if imported { // we keep what a source has, and do not repair it by guessing
			return Note
		}
	}
	return Fault
}
