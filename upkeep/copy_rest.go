package upkeep

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/store"
)

// heldBlobs is a hold on the blobs of the store that is written to, and which of them are known
// to be as they should. Without the hold, that would not last.
type heldBlobs struct {
	*copier
	end   func()
	known map[store.Ref]bool
}

func (c *copier) holdBlobs(ctx context.Context) (*heldBlobs, error) {
	end, err := c.to.Blobs().Hold(ctx)
	if err != nil {
		return nil, err
	}
	return &heldBlobs{c, end, make(map[store.Ref]bool)}, nil
}

func (h *heldBlobs) release() { h.end() }

// copyNamed copies the blobs that a text names, if the store lacks them.
func (h *heldBlobs) copyNamed(ctx context.Context, text []byte) (err error) {
	store.EachRef(text, func(ref store.Ref) {
		if err != nil || h.known[ref] {
			return
		}
		if err = h.copyBlob(ctx, ref); err == nil {
			h.known[ref] = true
		}
	})
	return err
}

func (h *heldBlobs) copyBlob(ctx context.Context, ref store.Ref) error {
	_, err := h.to.Blobs().Get(ctx, ref) // which checks the content
	if err == nil || !errors.Is(err, store.ErrNotExist) && !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	data, err := h.from.Blobs().Get(ctx, ref)
	if errors.Is(err, store.ErrNotExist) {
		return nil // it is lost, or only looks like a reference
	}
	if err != nil {
		return err
	}
	has, err := h.guard.Has(data)
	if err != nil {
		return err
	}
	if has {
		return errRedactedThere
	}
	if _, err := h.to.Blobs().Put(ctx, data); err != nil {
		return err
	}
	if _, err := h.to.Blobs().Get(ctx, ref); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Blobs++
	h.result.Size += int64(len(data))
	return nil
}
