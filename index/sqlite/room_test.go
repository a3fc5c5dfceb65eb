package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/index/indextest"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/index/sqlite"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	indextest.Run(t, func(t *testing.T) indextest.Place {
		path := filepath.Join(t.TempDir(), "index.db")
		return func(ctx context.Context) (room.Room, error) { return sqlite.Open(ctx, path, nil) }
	})
}
