//go:build unix

package postgres_test

import (
	"context"
	"testing"

	"github.com/coppice-dev/coppice/index/indextest"
	index "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store/postgres"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) indextest.Place {
		where := postgrestest.URL(t)
		return func(ctx context.Context) (room.Room, error) {
			s, err := postgres.Open(ctx, where, nil)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { s.Close() })
			return index.Open(ctx, s)
		}
	})
}
