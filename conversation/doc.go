// Package conversation keeps conversations that never have to end.
//
// A conversation is a chain of sessions. When a session is full, the next message goes
// into a continuation: a new session that begins with the instructions, the reference
// material and a marker. Callers need not care. The chain is read, counted, searched and
// exported as one conversation, and a model is sent whatever part of it fits its window.
//
// # Where to begin
//
// Open returns a Manager, which combines everything: its ProcessMessage is a whole turn. You
// can also use the parts alone. Sessions creates, loads, continues and lists sessions. A Chat
// is one conversation: AddMessage and its relatives add to it, Request returns what to send to
// a model, Respond asks the model, and Compact replaces the beginning with a summary. A Window
// counts and trims. A Loader loads files.
//
// Message and Session are values. You own what you are given, methods return new values,
// and changing one does not change what is stored.
//
// With tools (ManagerOptions.Agent) an agent answers: see package agent. It runs what the
// model calls until the model is done, and Retry continues a turn that was interrupted. If the
// window is nearly full, a summary replaces the beginning. Without tools, models are asked
// here, because a reply may then go into a continuation that another manager has just begun,
// while an agent works in a session that is open for it alone.
//
// # What survives
//
// With the default options, a message is on the disk when the call that adds it returns.
// Saving, by hand or every minute in the background, checks that everything is there and
// reports what is not; it never rewrites anything. Trimming returns a new value and
// removes nothing from the log.
//
// # Concurrency
//
// Everything may be used from many goroutines, and several managers, in one process or in
// many, may work on one conversation. Each message lands after all those that its writer
// has seen, and a session is continued exactly once and as a whole. The comments at link
// and in end.go and append.go explain how. WithContext returns a view whose operations end when a
// context ends.
//
// # Lists
//
// Lists match those of the command line. Give Options an index of the store (package index) if it
// has one, because only that knows all sessions without reading their logs; otherwise lists come
// from the logs.
package conversation
