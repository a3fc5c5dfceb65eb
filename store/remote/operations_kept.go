package remote

import (
	"errors"

	"github.com/coppice-dev/coppice/store"
)

// The server's operations on blobs and notes.

func (c *call) blob() error {
	data, err := c.store.Blobs().Get(c.ctx, store.Ref(c.Name))
	if err != nil {
		return err
	}
	return c.all(data)
}

func (c *call) blobs() error {
	for ref, err := range c.store.Blobs().All(c.ctx) {
		if err == nil {
			err = c.out.result(result{Ref: ref})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) unreferenced() error {
	all, err := c.store.Blobs().Unreferenced(c.ctx)
	return errors.Join(c.listed(all), err)
}

func (c *call) listed(all []store.Part) error {
	for i := range all {
		if err := c.out.result(result{Part: c.public(all[i])}); err != nil {
			return err
		}
	}
	return nil
}

// put keeps a blob. Its name determines its content.
func (c *call) put() error {
	data, err := c.data(maxBlob(c.limits))
	if err != nil {
		return err
	}
	if store.RefOf(data) != store.Ref(c.Name) {
		return &store.Error{Op: "put blob", Kind: store.ErrInvalid, Err: errors.New("the content changed in transit")}
	}
	_, err = c.store.Blobs().Put(c.ctx, data)
	return err
}

func (c *call) hold() error {
	release, err := c.store.Blobs().Hold(c.ctx)
	if err != nil {
		return err
	}
	return c.granted(release, c.pace.life)
}

func (c *call) collect() error {
	var refs []store.Ref
	for ref, err := range c.lines {
		if err != nil {
			return err
		}
		if err := c.take(int64(len(ref))); err != nil {
			return err
		}
		refs = append(refs, store.Ref(ref))
	}
	done, err := c.store.Blobs().Collect(c.ctx, refs...)
	for _, ref := range done.Deleted {
		err = errors.Join(err, c.out.result(result{Ref: ref}))
	}
	for ref, named := range done.Named {
		for _, p := range named {
			err = errors.Join(err, c.out.result(result{Ref: ref, Part: c.public(p)}))
		}
	}
	return err
}

func (c *call) note() error {
	data, err := c.store.Notes(c.Room).Read(c.ctx, c.Name)
	if err != nil {
		return err
	}
	return c.all(data)
}

func (c *call) notes() error {
	all, err := c.store.Notes(c.Room).List(c.ctx)
	for i := range all {
		err = errors.Join(err, c.out.result(result{Note: &all[i]}))
	}
	return err
}

func (c *call) writeNote() error {
	data, err := c.data(maxBlob(c.limits))
	if err != nil {
		return err
	}
	if c.Hint {
		return c.store.Notes(c.Room).WriteHint(c.ctx, c.Name, data)
	}
	return c.store.Notes(c.Room).Write(c.ctx, c.Name, data)
}

func (c *call) removeNote() error { return c.store.Notes(c.Room).Remove(c.ctx, c.Name) }

// changeNote replaces a note if it is still what the client has read. The lock of the notes
// is never held while waiting for a client, which could keep all others out.
func (c *call) changeNote() error {
	data, err := c.data(maxBlob(c.limits))
	if err != nil {
		return err
	}
	return c.store.Notes(c.Room).Change(c.ctx, c.Name, func(old []byte) ([]byte, error) {
		if contentOf(old) != c.Was {
			return nil, &store.Error{Op: "change note", Name: c.Name, Kind: store.ErrConflict}
		}
		return data, nil
	})
}
