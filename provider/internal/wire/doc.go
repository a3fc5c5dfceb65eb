// Package wire holds what the codecs of all providers need: objects whose
// members keep their order and their bytes, the residue that the session model has no
// place for, and the rules by which a context becomes messages.
package wire
