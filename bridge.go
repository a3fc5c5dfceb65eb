package coppice

import (
	"context"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// Store is the store that the home keeps its sessions in.
func (h *Home) Store() *file.Store { return h.store }

// SessionOptions are what sessions of this home are opened with.
func (h *Home) SessionOptions() *session.Options { return h.sessionOptions() }

// Index is the home's index, up to date.
func (h *Home) Index(ctx context.Context) (*index.Index, error) { return h.index(ctx) }

// StoreOptions are what the home's store is opened with.
func (h *Home) StoreOptions() *file.Options { return h.storeOptions() }
