package upkeep

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/store"
)

// held is a hold on the blobs of the store that is written to, and which of them are known to be
// as they should. Without the hold, that would not last.
type held struct {
	*copier
	end   func()
	known map[store.Ref]bool
}

func (c *copier) hold(ctx context.Context) (*held, error) {
	end, err := c.to.Blobs().Hold(ctx)
	return &held{c, end, make(map[store.Ref]bool)}, err
}

func (h *held) release() { h.end() }

// bring copies the blobs that a text names, if they are not there.
func (h *held) bring(ctx context.Context, text []byte) (err error) {
	store.EachRef(text, func(ref store.Ref) {
		if err != nil || h.known[ref] {
			return
		}
		if err = h.bringOne(ctx, ref); err == nil {
			h.known[ref] = true
		}
	})
	return err
}

func (h *held) bringOne(ctx context.Context, ref store.Ref) error {
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
