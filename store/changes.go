package store

import (
	"context"
)

// Describer is an optional interface of a Store that can describe one log without
// listing all of them.
type Describer interface {
	// Stat describes the log of that name, or returns ErrNotExist.
	Stat(ctx context.Context, name string) (Stat, error)
}

// Describe returns what List says of the log of that name, or ErrNotExist.
func Describe(ctx context.Context, st Store, name string) (Stat, error) {
	if d, ok := st.(Describer); ok {
		return d.Stat(ctx, name)
	}
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return stat, err
		}
		if stat.Name == name {
			return stat, err
		}
	}
	return Stat{}, &Error{Op: "describe", Name: name, Kind: ErrNotExist}
}

// Tracker is an optional interface of a Store whose writers leave a mark on every
// log that they are about to change, so that an index need not look at all of them
// to find the few that did.
//
// A mark comes before the change: a writer that dies in between leaves a mark too
// many, never one too few. Marks have one reader, because whoever reads them takes
// them away.
type Tracker interface {
	// Changes returns the marked logs. reader is the file of the index that asks.
	Changes(ctx context.Context, reader string) (Changes, error)
	// Settle removes the mark of a log, provided that the log is still as was says
	// and nobody is changing it; a nil was says that there is no such log. Else
	// the mark stays. An error means that it stays, too.
	Settle(ctx context.Context, name string, was *Stat) error
}

// Changes says which logs may have changed.
type Changes struct {
	// Epoch identifies the time through which no mark got lost. If it is empty, or
	// not what it was the last time, any log may have changed.
	Epoch string
	// Names are the marked logs.
	Names []string
	// Listing differs from what it was the last time if logs have come or gone
	// since, whoever did that.
	Listing string
}
