// Package keyed is a session manager for chat bots. It keeps conversations under keys
// that the caller chooses, such as "telegram:123456".
//
// # What it is
//
// NewSessionManager returns a SessionManager for a directory. It has the methods that such
// programs use: GetOrCreate, AddMessage, GetHistory, SetHistory, GetSummary, SetSummary,
// TruncateHistory, Save. Underneath, each key has one append-only session (package session).
// So nothing that is truncated or replaced is gone: History(key, All) returns it, and every
// tool that reads sessions shows it.
//
// Some of these methods return no errors and accept any argument, because existing programs
// expect that. Each has a counterpart that returns errors and drops a summary that no longer
// applies. In a new program use what is on the right:
//
//	AddMessage, AddFullMessage  Add
//	SetHistory                  Replace, which also drops the summary if nothing is left
//	TruncateHistory             Truncate, which also drops the summary with keepLast 0, and
//	                            refuses a negative number
//
// # What survives
//
// AddMessage, TruncateHistory and SetHistory have written their change when they return.
// They have no error to return (Add, Truncate and Replace do). Whatever could not be
// written stays in memory and in the history, every later call on the key tries again,
// and Save returns the reason. A summary is written together with the TruncateHistory
// that follows it, as one entry; if none follows, the next message, Save, SaveEvery or
// Close writes it.
//
// SetHistory is all or nothing, even in a crash.
//
// # What stays in the history
//
// The history is the session's context (see session.Context). TruncateHistory keeps at
// least as many messages as you ask for, and goes back from there to the nearest place
// where a conversation may be cut (see session.Cuts), which is never between a tool call
// and its result. System messages stay too. If the cut is between two steps of a long
// turn, so does the message that began the turn. TruncateHistory(key, 0) and SetHistory
// leave nothing of the old history. If they clear calls that still wait for their
// results, the results are recorded when they come but are not part of the history.
//
// # Concurrency
//
// All methods may be called from many goroutines, and several processes may use one
// directory. The messages of all of them are kept, in one order that all of them see.
// WithContext returns a manager whose operations end when a context ends.
//
// # Keys and files
//
// A key is any non-empty text of up to session.MaxKey bytes. Files are named by a hash of the key (see
// SessionID), so that names reveal nothing about chats and no two keys share a file; the key
// itself is in the session's header. Sessions that picoclaw left in the directory are found by
// their keys and imported on first use. Their files stay as they are.
package keyed
