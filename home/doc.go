// Package home is the floor under every face of the session engine: the command
// line, the terminal UI, and those to come. It opens a home, the place where the
// conversations of humans, models and tools are kept, and offers every operation on it
// once, with a typed request and a typed result:
//
//	h, err := home.Open(ctx, "", nil) // the user's own home
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	list, err := h.Sessions.List(ctx, home.ListRequest{Agent: "claude-code", Limit: 10})
//
// Operations come in groups: Sessions, Entries, Search, Transfer and Upkeep. Whatever a
// person may type for a session (an id or the beginning of one, a key, a title, @1,
// last) is resolved here and nowhere else. Errors have a Kind, which faces turn into
// exit codes or status codes. Anything else that a person should know arrives as a
// Notice.
//
// A Home may be used from many goroutines. It never prints, never asks, and never
// decides by looking at the text of an error.
//
// A program that only keeps its own conversations does not need this package: import
// package session instead.
package home
