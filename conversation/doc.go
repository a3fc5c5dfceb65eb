// Package conversation keeps conversations that never have to end.
//
// A conversation is a chain of sessions. When a session has as many messages as
// one may have, the next message goes into a continuation: a new session that
// begins with the instructions, the reference material and a marker. Nobody has
// to care: the chain is read, counted, searched and exported as one conversation,
// and a model is sent what fits its window of all of it.
//
// # Where to begin
//
// Open has everything together: ProcessMessage is a whole turn.
// Its parts can be used alone. Sessions makes, loads, continues and lists
// sessions. Chat is one conversation: AddMessage and its like say
// something, Request is what a model is to be sent, Respond asks it.
// Compact lets a summary stand for its beginning.
// Window counts and trims. Loader loads files.
//
// Message and Session are values: what is handed out is yours, methods return new
// ones, and changing them changes nothing that is stored.
//
// # What survives
//
// A message that was added is on the disk when adding it returns. Saving, by hand
// or every minute in the background, makes sure that everything is still there
// and reports what is not; it never rewrites anything. Trimming gives a new value
// and takes nothing from the log.
//
// # Concurrency
//
// Everything may be used from many goroutines, and several managers, also in
// several processes, may work on one conversation: each message lands after all
// those that its writer has seen, and a session is continued once, whole. See
// link and boundary.go for how. WithContext gives operations a context with which
// they end.
//
// # Lists
//
// Lists say the same as coppice ls. They come from the index of the store (package
// index) if it has one, because only that knows all sessions without looking at
// their logs, and from the logs if not.
package conversation
