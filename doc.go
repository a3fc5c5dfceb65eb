// Package coppice is the root of a session engine for LLM agents. It has no
// code of its own; import github.com/coppice-dev/coppice/session first.
//
// The house, from the top floor down. Imports point downward only, and
// layers_test.go, which also has the floors that are still to come, keeps it so:
//
//	cmd, examples, bench   programs that use the rest
//	internal/cli           the command line
//	index                  catalogue, search and usage ledger; derived
//	session                entries, tree, context, compaction: the heart
//	store/file             logs as JSONL files, the default
//	store/memory           logs in memory
//	store/storetest        the conformance and crash suite, for any store
//	internal/gate           a mutex that can be waited for with a context
//	internal/rawjson        JSON read without decoding it
//	store                  the interfaces: Store, Log, Blobs
//	store/vfs              the file-system seam
package coppice
