// Package index finds sessions again: a catalogue to list them by, full-text
// search in all they say, and a ledger of what they cost.
//
// # What it is
//
// An index is one SQLite file that is derived from the logs of a store. It is
// never the truth: it may be deleted at any time, and is made again from the
// logs when it is missing, damaged, or of another version. Several processes may
// use one index.
//
// # Where to begin
//
// Open, then CatchUp, then ask: List, Find, Search, Usage. CatchUp costs what has
// changed since the last time, so programs call it before they ask. What is asked
// is answered as of the last CatchUp of any process; only the text of a search
// hit is read from the log itself.
//
// An Index may be used from many goroutines.
//
// # Limits
//
// A search ranks the newest matches, 1,000 of them by default, and says when
// there were more: see Results.Bounded. Of a single piece of text the first
// Options.MaxText bytes are searchable. WAL mode, which SQLite needs for several
// processes at once, does not work on network file systems: put the index on a
// local disk.
package index
