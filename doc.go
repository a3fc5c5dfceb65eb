// Package coppice is the root of a session engine for LLM agents. It has no
// code of its own; import github.com/coppice-dev/coppice/session first.
//
// The house, from the top floor down. Imports point downward only, and
// layers_test.go keeps it so:
//
//	cmd/coppice            the command line's main
//	internal               the faces: commands, terminal UI
//	server                 HTTP, sockets, stdio, MCP, and the web page
//	agent                  drives a model and persists as it goes
//	conversation           categories, boundaries, continuations, context files
//	transcript             import from and export to other formats
//	index                  catalogue, search and usage ledger; derived
//	window                 token counting, budgets, trimming
//	provider               wire JSON of model providers
//	keyed                  sessions by key
//	session                entries, tree, context, compaction: the heart
//	redact                 secrets out of text
//	store/file             logs as JSONL files, the default
//	store/memory           logs in memory
//	store/postgres         logs shared by many machines
//	store/storetest        the conformance and crash suite, for any store
//	session/rawjson        JSON read without decoding it
//	store                  the interfaces: Store, Log, Blobs
//	store/vfs              the file-system seam
package coppice
