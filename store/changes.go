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

// Describe returns what List says about the log of that name, or ErrNotExist.
func Describe(ctx context.Context, st Store, name string) (Stat, error) {
	if d, ok := st.(Describer); ok {
		return d.Stat(ctx, name)
	}
	all, err := All(ctx, st)
	if err != nil {
		return Stat{}, err
	}
	for _, l := range all {
		if l.Name == name {
			return l.Stat, l.Err
		}
	}
	return Stat{}, &Error{Op: "describe", Name: name, Kind: ErrNotExist}
}

// Tracker is an optional interface of a Store whose writers mark every log that they
// are about to change, so that an index need not look at all logs to find the few that
// changed.
//
// A mark comes before the change: a writer that dies in between leaves a mark too
// many, never one too few. Marks have one reader, because reading removes them.
type Tracker interface {
	// Changes returns the marked logs. reader is the file of the index that asks.
	Changes(ctx context.Context, reader string) (Changes, error)
	// Settle removes the mark of a log if the log is still as was describes it and is
	// not being changed; a nil was means that the log does not exist. Otherwise, or
	// with an error, the mark stays.
	Settle(ctx context.Context, name string, was *Stat) error
}

// Changes says which logs may have changed.
type Changes struct {
	// Epoch identifies the period in which no mark was lost. If it is empty, or differs
	// from the last time, any log may have changed.
	Epoch string
	// Names are the marked logs.
	Names []string
	// Listing differs from the last time if any process has created or removed logs
	// since.
	Listing string
}
