// Package local lets homes be in directories and in memory. A program that keeps its homes there,
// and needs no index, imports it instead of home/all:
//
//	import _ "github.com/coppice-dev/coppice/home/local"
package local

import (
	"context"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs"
)

func init() {
	home.Register(home.Parts{Stores: []home.StoreKind{
		{Schemes: []string{"file"}, Open: openFiles, Waits: true},
		{Schemes: []string{"mem"}, Open: openMemory},
	}})
}

func openFiles(_ context.Context, dir string, o home.StoreOptions) (store.Store, error) {
	st, err := file.Open(dir, &file.Options{
		FS:      vfs.OS{KeepOwner: true, Notices: o.Notices},
		MaxLine: o.Limits.Entry, MaxLog: o.Limits.Log, MaxLogs: o.Limits.Logs, MakeRoom: o.MakeRoom,
		Sync: file.Sync(max(o.Sync, -1)), OnLoss: o.OnLoss,
	})
	if err != nil {
		return nil, err // not a store that is nil inside
	}
	return st, nil
}

func openMemory(_ context.Context, _ string, o home.StoreOptions) (store.Store, error) {
	return memory.New(&memory.Options{
		MaxLine: o.Limits.Entry, MaxLog: o.Limits.Log, MaxLogs: o.Limits.Logs, MakeRoom: o.MakeRoom,
	}), nil
}
