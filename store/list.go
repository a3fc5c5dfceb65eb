package store

import (
	"context"
	"iter"
)

// Listed is a log of a listing: its Stat or, if the store cannot describe it, its name and
// why.
type Listed struct {
	Stat
	Err error
}

// Lister is the part of a Store that lists its logs.
type Lister interface {
	List(ctx context.Context) iter.Seq2[Stat, error]
}

// All returns every log of a store, in no particular order. A log that cannot be described
// is among them, with its Err; an error means that the listing itself failed. This is the
// one place that knows how List tells the two apart.
func All(ctx context.Context, st Lister) ([]Listed, error) {
	var all []Listed
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return nil, err
		}
		all = append(all, Listed{stat, err})
	}
	return all, nil
}

// Names returns the names of all logs of a store, including those that cannot be described, in
// no particular order.
func Names(ctx context.Context, st Store) ([]string, error) {
	all, err := All(ctx, st)
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names, err
}
