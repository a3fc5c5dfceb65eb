package home

import (
	"context"

	"github.com/coppice-dev/coppice/index"
)

// IndexStatus brings the index up to date and returns what it holds.
func (u *Upkeep) IndexStatus(ctx context.Context) (*index.Status, error) {
	return ask(ctx, u.home, "upkeep.index_status", u.indexStatus)
}

func (u *Upkeep) indexStatus(ctx context.Context) (*index.Status, error) {
	ix, err := u.home.index(ctx)
	if err != nil {
		return nil, err
	}
	s, err := ix.Status(ctx)
	return &s, err
}

// RebuildResult says where the index is.
type RebuildResult struct {
	Path string `json:"path"`
}

// RebuildIndex rebuilds the index from the sessions.
func (u *Upkeep) RebuildIndex(ctx context.Context) (*RebuildResult, error) {
	return ask(ctx, u.home, "upkeep.rebuild_index", u.rebuildIndex)
}

func (u *Upkeep) rebuildIndex(ctx context.Context) (*RebuildResult, error) {
	h := u.home
	h.beforeWriting(ctx)
	ix, err := h.indexBy(ctx, (*index.Index).Rebuild)
	if err != nil {
		return nil, err
	}
	return &RebuildResult{ix.Where()}, nil
}
