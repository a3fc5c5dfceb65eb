// Package transcript brings conversations home from other programs' files, and
// writes them back into files that those programs accept.
//
// # Reading
//
// A Format knows one program's files: how to recognise and read them, and where they
// are kept on a machine. Its Read turns a File into conversations: trees of records,
// each a session entry with the name that it has in its source. It passes them to a
// Sink one by one and keeps nothing itself, so that a file of any size can be read.
//
// Readers are lenient: a record that they do not know is kept and counted, a
// line that is not JSON is reported, and neither prevents reading the rest.
//
// # Identity
//
// A record has its native id, if its source gives it one, and that is the id of
// the entry too. Records without one are named by a hash of their conversation,
// their place and their content. Either way a record that is read again is the
// same entry again: importing twice is importing once.
//
// # What is kept
//
// Every byte that was read is kept too, compressed, beside the entries made from it, so
// that a better reader can read it again when the source is long gone.
//
// # Importing
//
// An Importer puts what a reader finds into sessions of a store: it reads,
// compresses and writes at the same time, adds only what is new, and remembers
// in a Ledger how far it got. Raw gives back the bytes of an entry.
//
// To import a file: OpenFile it, ask package all for its Format, and pass both to
// Importer.Import. Several importers, even in several processes, may work on one store,
// and on one file: each record is added once. A Format may be used concurrently; a File
// belongs to one goroutine.
//
// # Writing
//
// A Format that has Write can turn a conversation into its program's files. What the
// files cannot hold is listed, never silently dropped. An Exporter reads them back and
// compares before it puts them in their place.
package transcript
