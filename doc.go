// Package coppice is the floor under every face of the session engine: the command
// line today, a server and a terminal UI later. It opens a home, the place where the
// conversations of humans, models and tools are kept, and offers every operation on it
// once, with a typed request and a typed result:
//
//	home, err := coppice.Open(ctx, "", nil) // the user's own home
//	if err != nil {
//		return err
//	}
//	defer home.Close()
//	list, err := home.Sessions.List(ctx, coppice.ListRequest{Agent: "claude-code", Limit: 10})
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
//
// # Layers
//
// From top to bottom. Imports point downward only; layers_test.go enforces that.
//
//	cmd, examples, bench    programs
//	internal/cli            the command line: it parses, calls and prints
//	coppice                 this package
//	conversation            chats with categories, boundaries and context files
//	transcript              reads and writes the files of other programs
//	render                  a conversation as terminal text, Markdown or HTML
//	upkeep                  check, repair, retention, trash, redaction sweep
//	index                   catalogue, search and usage ledger; derived
//	window, provider        token budgets; the wire formats of model providers
//	keyed                   sessions under a key that the caller chooses
//	session                 entries, tree, context, compaction: the core
//	redact                  finds secrets in text
//	store/file, /memory     logs as JSONL files, or in memory
//	store                   the interfaces: Store, Log, Blobs
//	store/vfs               the file system behind an interface
package coppice
