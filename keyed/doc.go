// Package keyed keeps conversations by a key of the caller's, such as
// "telegram:123456": a chat bot's session manager.
//
// # What it is
//
// A SessionManager has the methods that such programs use: GetOrCreate,
// AddMessage, GetHistory, SetHistory, GetSummary, SetSummary, TruncateHistory,
// Save. Below them each key has one append-only session (package session), so
// nothing that is truncated or replaced is gone: History(key, All) has it, and
// so have all tools that read sessions.
//
// # What survives
//
// AddMessage, TruncateHistory and SetHistory have written what they were told
// when they return. They have no error to return (Add, Truncate and Replace do):
// what could not be written stays in memory, is shown, is tried again by every
// later call on the key, and Save says why. A summary is written with the TruncateHistory that follows it,
// as one entry; or else by the next message, Save, SaveEvery or Close.
//
// SetHistory is all or nothing, also in a crash.
//
// # What is kept
//
// The history is the session's context (see session.Context). TruncateHistory keeps
// at least as many messages as it was told to, and goes back from there to the
// nearest place where a conversation may be cut (see session.Cuts): never between a
// tool call and its result. Besides those, system messages stay; and if the cut is
// between two steps of a long turn, so does the message that began the turn.
// TruncateHistory(key, 0) and SetHistory leave nothing of what was there. If calls
// are cleared that still wait for their results, the results are recorded when
// they come, but are not part of the history.
//
// # Concurrency
//
// All methods may be called from many goroutines, and several processes may use
// one directory: the messages of all of them are kept, in one order that all of
// them see. WithContext gives operations a context with which they end.
//
// # Keys and files
//
// A key is any text that is not empty, up to MaxKey bytes. Files are named by a
// hash of the key (see SessionID), so that names tell nothing about chats and no
// two keys share a file; the key itself is in the session's header. Sessions
// that picoclaw left in the directory are found by their keys and taken over on
// first use; their files are not touched.
package keyed
