// Package upkeep looks after stores. It checks and repairs them, removes sessions
// when there are too many or when they are old, and takes secrets out.
//
// Nothing of this happens by itself. What is removed goes to the trash of its
// store, from which it can be restored; pinned sessions and those that cannot be
// read stay. What is repaired is kept as it was. Only a redaction takes away for
// good, and what nobody needs is deleted when that is asked for.
//
// Functions work on every store as far as it goes: how files are kept only a store
// can say that has some, through the optional interfaces of package store.
//
// All functions may be called concurrently, also while others write to the store.
package upkeep
