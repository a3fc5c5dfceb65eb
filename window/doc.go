// Package window fits conversations into the context windows of models.
//
// Trim takes a session's context and a Budget and returns a View: the entries to send,
// what each costs, and a Report of what was left out and why. A View is a value; nothing
// is written and the session does not change. A Planner keeps the view of a growing
// conversation at a constant cost per turn. Whether you plan at once or turn by turn, the
// view is the same.
//
// # What is left out
//
// Every entry has a Category. When the window is full, tool results go first, then the
// dialogue, then documents and summaries. Within each category the oldest go first, and
// only down to the category's guaranteed share. SYSTEM is never left out. A tool call and
// its results, thinking and the call it led to, and the messages of one response are
// never separated. The newest turn always stays, shortened if need be. Images beyond the
// newest few become placeholders, which Recall resolves.
//
// When something has to go, enough goes to make room for several turns. So requests begin
// the same way from turn to turn, and the provider's prompt cache serves that beginning.
//
// # Counting
//
// Counts that were recorded with an entry, or reported by its provider, are trusted.
// Everything else is counted: by an exact Counter if the program links one (see package
// tiktoken), or else by an estimate that knows scripts and providers and learns from
// reported usage.
//
// # Shortening
//
// ShortenResults returns context edits that shorten the longest tool results in the session
// itself. Appending a session.Revert of an edit takes it back.
//
// # Concurrency
//
// Functions, Counters and Views may be used concurrently. A Planner belongs to one
// goroutine.
package window
