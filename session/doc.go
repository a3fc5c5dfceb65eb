// Package session keeps conversations of humans, models and tools as append-only trees,
// and builds from them what to send to a model.
//
// # What it is
//
// A session is a log of entries, one JSON object per line. Each entry names its parent,
// so the log is a tree: going back to an earlier entry and appending there starts a
// branch, and nothing is ever overwritten. The leaf is the entry that the next one will
// follow. The path from the root to the leaf is the conversation; the other branches
// stay where they are.
//
// # Where to begin
//
// New creates a session in a directory, Load opens one, ContinueRecent opens the latest.
// AppendMessage records what was said. Context returns what to send to the model next,
// together with the model in force, what was left out and why, and fingerprints that show
// how much of a prompt cache is still warm. If you only read the result, set
// ContextOptions.Shared to avoid a copy. NewManager bundles these for one directory; Create
// and Open work on any store.
//
// AppendEntry takes an entry of any type, AppendAll several at once. Functions make them, one
// for each kind: Message, Label, Compaction, ContextEdit, Revert, Merge, Tags and so on. An
// entry whose payload does not match its type, that refers to something that does not exist,
// or a compaction that would separate a tool call from its result is refused with ErrInvalid
// or ErrNotExist, and nothing is written. A result without a call is written, and so is an
// edit that takes the call of a result away; no model is sent such a result (see
// CheckResults). Bytes of a text that are not UTF-8 are written as U+FFFD, as encoding/json does,
// because the output of a tool may have any; only ids must be UTF-8. Use WithContext to give
// an operation a context. As in the standard library, a nil context panics, and so does a
// Session that is nil or did not come from one of these functions.
//
// Fork copies a session, or the path to one of its entries. A conversation may have
// several sessions, each of which continues the one before (Continue): OpenChain opens
// them as one, and what is appended goes to the last.
//
// Branch goes back to an earlier entry. A Compaction replaces the beginning of a long
// conversation with a summary, in the context only; PlanCompaction finds where it may be cut;
// Undo takes it back. A ContextEdit clears or replaces what a single message contributes to
// the context. A Merge brings the outcome of one branch to another.
//
// # What survives
//
// With the default options, an append that returned nil is on the disk: it survives a
// crash of the process or of the operating system, and a power cut. An append that was
// interrupted leaves at most a torn last line, which the next writer moves out of the
// way. A damaged line hides nothing before or after it. Problems returns what is wrong
// with a session; package store/file explains how files are kept.
//
// # Concurrency
//
// A Session may be used from many goroutines; their appends share syncs to the disk.
// Several processes may have one session open. The first to append wins. The other gets a
// *ConflictError, by which time its Session has read what the first one wrote, and it
// decides: appending again grows a branch; Refresh continues from the other's leaf. With
// Options.OnConflict set to GrowBranch, it grows the branch without asking.
//
// Branch followed by Append is two writes, and someone else may write in between. To append
// after a certain entry whatever others do, or only if nothing follows it yet, use Update: it
// writes several entries as one, and decides again if others were faster.
//
// Entries that a Session returns are copies. Changing them does not change the session.
//
// # Reading
//
// There are five ways to read:
//
//	Entry    one entry
//	Path     from an entry back to its root, until you stop
//	Entries  all of them, in the order of the log
//	Peek     some of them, without the content that is kept in blobs
//	Shape    the tree without the entries: which there are, and what follows what
//
// Where a session is long or has large content, look first and read later: Shape and Peek are
// cheap, Fill fetches the content of an entry that was peeked at, and Shape.Entries reads whole
// entries one at a time.
//
// # Compatibility
//
// Fields, entry types and content blocks that this version does not know are kept byte
// for byte. A log whose header has a newer format version is refused and left as it is.
// docs/format.md describes the format.
//
// # Older names
//
// These names stay for programs that use them, but each is a second way to do something. In a
// new program use what is on the right:
//
//	Append                     AppendEntry, which returns the id
//	AppendModelChange          AppendEntry with ModelChange
//	AppendThinkingLevelChange  AppendEntry with ThinkingLevel
//	AppendSessionInfo          AppendEntry with Name
//	AppendCompaction           AppendEntry with Compaction
//	AppendCustomEntry          AppendEntry with Custom
//	SetLabel                   AppendEntry with Label
//	BranchWithSummary          Update: Tx.Branch, then Tx.Append with a BranchSummary
//	ResetLeaf                  Update: Tx.Branch("")
//	CreateBranchedSession      Fork with ForkOptions.At, which returns the new session open
//	GetContext                 Context, which also says what was left out and why
//	GetTree                    Shape, whose Peek and Entries read the entries
//	Manager, FileManager       Directory
package session
