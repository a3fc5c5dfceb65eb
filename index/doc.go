// Package index finds sessions: a catalogue to list them, full-text search in everything they
// say, and a ledger of what they cost.
//
// # What it is
//
// An index is a set of tables that is derived from the logs of a store. It is never the
// truth: it may be deleted at any time, and is rebuilt from the logs when it is missing,
// damaged, or of another version. Several programs may use one index.
//
// The tables are in a room: a file (package index/sqlite), or the database that has the
// logs (package index/postgres). What a room is, package index/room says.
//
// # Where to begin
//
// New, then CatchUp, then ask: List, Find, Search, Stats. CatchUp costs only what has
// changed since the last time, so programs call it before they ask. Answers are as of the
// last CatchUp of any process; only the text of a search hit is read from the log itself.
//
// An Index may be used from many goroutines.
//
// # Limits
//
// A search ranks the newest matches, 1,000 of them by default, and says when there were more:
// see Results.Bounded. Only the first Options.MaxText bytes of a single text are searchable.
package index
