package store

import "context"

// Remover is an optional interface of a Store that can remove a log on the condition
// that nothing was appended to it.
type Remover interface {
	// RemoveAt is Remove if the log ends at a position, and returns ErrConflict
	// if it does not: then nothing is removed.
	RemoveAt(ctx context.Context, name string, end Pos) error
}

// RemoveAt removes a log if it ends at a position. For a store that is not a Remover it
// checks the end and then removes the log: lines that are appended in between are
// removed too.
func RemoveAt(ctx context.Context, st Store, name string, end Pos) error {
	if r, ok := st.(Remover); ok {
		return r.RemoveAt(ctx, name, end)
	}
	log, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close()
	now, err := log.End(ctx)
	if err != nil {
		return err
	}
	if now != end {
		return &Error{Op: "remove", Name: name, Kind: ErrConflict}
	}
	return st.Remove(ctx, name)
}
