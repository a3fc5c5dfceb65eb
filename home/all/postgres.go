package all

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/home"
	indexpostgres "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
	storepostgres "github.com/coppice-dev/coppice/store/postgres"
)

var postgres = home.StoreKind{
	Schemes: []string{"postgres", "postgresql"},
	Open: func(ctx context.Context, url string, o home.StoreOptions) (store.Store, error) {
		st, err := storepostgres.Open(ctx, url, &storepostgres.Options{
			MaxLine: o.Limits.Entry, MaxLog: o.Limits.Log, MaxLogs: o.Limits.Logs, MakeRoom: o.MakeRoom,
		})
		if err != nil {
			return nil, err
		}
		return st, nil
	},
	Room:    openRoom,
	Migrate: migrate,
}

func openRoom(ctx context.Context, st store.Store) (room.Room, error) {
	db, ok := store.As[*storepostgres.Store](st)
	if !ok {
		return nil, nil
	}
	r, err := indexpostgres.Open(ctx, db)
	switch {
	case errors.Is(err, indexpostgres.ErrNotMigrated):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r, nil
}

func migrate(ctx context.Context, url, blobs string) (*home.MigrateResult, error) {
	did, err := storepostgres.Migrate(ctx, url, indexpostgres.Migrate)
	r := &home.MigrateResult{Home: did.Where, From: did.From, To: did.To}
	if err == nil && blobs != "" {
		r.Blobs, err = storepostgres.KeepBlobs(ctx, url, blobs)
	}
	return r, err
}
