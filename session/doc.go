// Package session keeps conversations of humans, models and tools as append-only
// trees, and builds from them what a model is to be sent.
//
// # What it is
//
// A session is a log of entries, one JSON object a line. Each entry names its
// parent, so the log is a tree: going back to an earlier entry and appending
// there begins a branch, and nothing is ever overwritten. The leaf is the entry
// that the next one will follow. The path from the leaf back to the root is the
// conversation; the other branches stay where they are.
//
// # Where to begin
//
// New makes a session in a directory, Load opens one, ContinueRecent opens the
// latest. AppendMessage records what was said. GetContext returns what to send
// to the model next; Context returns the same with the model in force, what was
// left out and why, and fingerprints that tell how much of a prompt cache is
// still warm. Who only reads it asks for it shared and saves the copy. NewManager
// collects these for one directory; Create and Open work on any store.
//
// Append and AppendAll take entries of any type; AppendEntry returns the id. All
// ways of writing make the same checks: an entry that is not what its type says,
// that refers to nothing, or that would separate a tool call from its result is
// refused with ErrInvalid or ErrNotExist, and nothing is written. WithContext
// gives an operation a context.
//
// Branch goes back. AppendCompaction replaces, in the context, the beginning of
// a long conversation by a summary; PlanCompaction finds where it may be cut;
// Undo takes it back. EditContext clears or replaces what a single message gives
// the model. Merge brings one branch's outcome to another.
//
// # What survives
//
// With the default options an append that returned nil is on the disk: it
// survives the end of the process, of the operating system, and a power cut. An
// append that was cut short leaves at most a torn last line, which the next
// writer moves out of the way. A line that is damaged hides neither what stands
// before it nor after it. See Problems for what is wrong with a session, and
// package store/file for how the files are kept.
//
// # Concurrency
//
// A Session may be used from many goroutines; their appends share syncs to the
// disk. Several processes may have one session open. The first to append wins;
// the other gets a *ConflictError, has then seen what the first one wrote, and
// decides: appending again grows a branch, Refresh goes on from the other's leaf.
// With Options.OnConflict set to GrowBranch it does the former by itself.
//
// Entries that a Session hands out are copies. Changing them changes nothing.
//
// # Compatibility
//
// Fields, entry types and content blocks that this version does not know are
// kept as they are, byte for byte. A log whose header has a newer format version
// is refused and not touched. The format is described in docs/format.md.
package session
