// Package coppice is the floor that every face of the session engine stands on:
// the command line, a server, a terminal UI. It opens a home, a place where the
// conversations of humans, models and tools are kept, and offers every operation
// on it once, with a typed request and a typed result:
//
//	home, err := coppice.Open(ctx, "", nil) // the user's own home
//	if err != nil {
//		return err
//	}
//	defer home.Close()
//	list, err := home.Sessions.List(ctx, coppice.ListRequest{Agent: "claude-code", Limit: 10})
//
// The operations come in groups: Sessions, Entries, Search, Transfer and Upkeep.
// What a person may type for a session (an id or the beginning of one, a key, a
// title, @1, last) is resolved here, and nowhere else. Errors have a Kind, which
// faces turn into exit codes and statuses. What else a person should know arrives
// as a Notice.
//
// A program that only wants to keep its own conversations needs none of this: it
// imports package session.
//
// The floors of the house, from the top down. Imports point downward only;
// layers_test.go keeps it so.
//
//	cmd, examples, bench    programs
//	internal/cli            the command line: it parses, calls and prints
//	coppice                 this package
//	conversation            chats with categories, boundaries and context files
//	transcript              the files of other programs, read and written
//	render                  a conversation as terminal text, Markdown or HTML
//	upkeep                  check, repair, retention, trash, redaction sweep
//	index                   catalogue, search and usage ledger; derived
//	window, provider        token budgets; the wire formats of model providers
//	keyed                   sessions by a caller's own key
//	session                 entries, tree, context, compaction: the heart
//	redact                  secrets found in text
//	store/file, /memory     logs as JSONL files, or in memory
//	store                   the interfaces: Store, Log, Blobs
//	store/vfs               the file-system seam
package coppice
