// Package window fits conversations into the context windows of models.
//
// Trim takes a session's context and a Budget and returns a View: the entries to
// send, what each costs, and a Report of what was left out and why. A view is a
// value: nothing is written, the session stays as it is. A Planner keeps the
// view of a conversation that grows, at the same cost for every turn; planned at
// once or turn by turn, the view is the same.
//
// # What is left out
//
// Entries have a Category. When the window is full, what tools answered gives way
// first, then the dialogue, then documents and summaries, each the oldest first
// and each down to the share that it is sure of; SYSTEM never. A tool call and
// its results, thinking and what it was about, and the messages of one response
// are never separated. The newest turn is always kept, shortened if it must be.
// Images beyond the newest few become placeholders, which Recall opens again.
//
// When something has to go, so much goes that there is room for a while. So the
// beginning of what is sent stays the same from turn to turn, and the provider's
// prompt cache serves it.
//
// # Counting
//
// What was recorded with an entry, or reported by its provider, is believed.
// Anything else is counted: by an exact Counter if the program links one (see
// package tiktoken), or else by an estimate that knows scripts and providers and
// learns from reported usage.
//
// # Clearing
//
// Clear replaces old large tool results by stubs in the session itself, as
// context edits that Restore takes back.
//
// # Concurrency
//
// Functions, Counters and Views may be used concurrently. A Planner belongs to one
// goroutine.
package window
