// Package upkeep looks after stores. It checks and repairs them, removes sessions that are
// old or too many, and takes secrets out.
//
// Nothing here runs by itself. Sessions that are removed go to the trash of their store,
// from which they can be restored; pinned sessions and those that cannot be read stay. A
// repair keeps the original. Only redaction destroys anything for good, apart from the
// garbage that a caller explicitly asks to delete.
//
// The functions work on every store that supports them. Anything that depends on files
// goes through the optional interfaces of package store.
//
// All functions may be called concurrently, even while others write to the store.
package upkeep
