package store

// Changes says which logs may have changed, so that an index need not look at all of
// them to find the few that did.
//
// Writers leave a mark on every log that they are about to change. A mark comes before
// the change: a writer that dies in between leaves a mark too many, never one too few. A
// reader gives a mark back (see Store.Settle) once it has seen what the log is now.
type Changes struct {
	// Epoch identifies the period in which no mark was lost. If it is empty, or differs
	// from the last time, any log may have changed.
	Epoch string
	// Names are the marked logs.
	Names []string
	// Listing differs from the last time if any process has created or removed logs
	// since. It is empty if every change there can be leaves a mark, so that logs without
	// one need not be looked at.
	Listing string
}
