// Package home does everything that Coppice can do; the faces (the command line, the terminal
// UI and the server) only ask and show. It opens a home, the place where the conversations of
// people, models and tools are kept, and offers every operation on it once, with a typed
// request and a typed result. Begin with Open:
//
//	h, err := home.Open(ctx, "", nil) // the user's own; &home.Options{Create: true} makes a new one
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	list, err := h.Sessions.List(ctx, home.ListRequest{Agent: "claude-code", Limit: 10})
//
// This package does not contain the kinds of stores (directories, memory, PostgreSQL), nor its
// large parts: SQLite for the index, the formats of other agents, exact counters of tokens, pages,
// MCP. One import adds all of them:
//
//	import _ "github.com/coppice-dev/coppice/home/all"
//
// A program that only uses homes on other machines (package client) needs none of it. Package
// home/local adds only directories and memory; see Parts.
//
// Operations come in groups: Sessions, Entries, Search, Transfer, Upkeep and Turns. Each is a
// method of one shape, and each request, result and event is plain data with JSON names:
//
//	Op(ctx, request) (*Result, error)
//	Op(ctx, request, send func(Event) error) (*Result, error)
//
// An operation of the second kind sends events before it is done: the entries of a path, the
// findings of a check, the files of an import, the pieces of an export. It calls send from
// one goroutine at a time, and waits for it. An error from send ends the operation with that
// error; a nil send means that the caller wants no events. Import also takes a reader beside
// its request, for standard input. An operation that needs no request takes only the context.
// With an error, the result may say what was done until then. As in the standard library, a nil
// context panics.
//
// Operations lists all of them as data. The server offers, and the client calls, what is in
// that list, so a new operation is a method and a row there.
//
// Opening something for use in the same process is not an operation: see Home.Conversation
// and Home.Chat.
//
// Whatever a person may type for a session (an id or the beginning of one, a key, a title, @1,
// last) is resolved here and nowhere else. Errors have a Kind, which faces turn into
// exit codes or status codes. Anything else that a person should know arrives as a
// Notice.
//
// A Home may be used from many goroutines. It never prints, never prompts, and never decides
// by the text of an error.
//
// A program that only keeps its own conversations does not need this package: import
// package session instead.
package home
