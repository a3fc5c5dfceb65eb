package remote

import (
	"errors"

	"github.com/coppice-dev/coppice/store"
)

// The server's operations on blobs, notes and leases.

func (c *call) blob() error {
	data, err := c.store.Blobs().Get(c.ctx, store.Ref(c.Name))
	if err != nil {
		return err
	}
	return c.all(data)
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

func (c *call) note() error {
	if c.OnlyReads {
		return &store.Error{Op: "read note", Name: c.Name, Kind: store.ErrNotExist}
	}
	data, err := c.store.Notes(c.Room).Read(c.ctx, c.Name)
	if err != nil {
		return err
	}
	return c.all(data)
}

func (c *call) notes() error {
	if c.OnlyReads {
		return nil
	}
	all, err := c.store.Notes(c.Room).List(c.ctx)
	for i := range all {
		err = errors.Join(err, c.out.result(result{Note: &all[i]}))
	}
	return err
}

// changeNote writes or removes a note, or replaces it if it is still what the client has read. The
// lock of the notes is never held while waiting for a client, which could keep all others out.
func (c *call) changeNote() error {
	notes := c.store.Notes(c.Room)
	if c.Gone {
		return notes.Remove(c.ctx, c.Name)
	}
	data, err := c.data(maxBlob(c.limits))
	if err != nil {
		return err
	}
	if c.Was == nil {
		return notes.Write(c.ctx, c.Name, data)
	}
	return notes.Change(c.ctx, c.Name, func(old []byte) ([]byte, error) {
		if contentOf(old) != *c.Was {
			return nil, &store.Error{Op: "change note", Name: c.Name, Kind: store.ErrConflict}
		}
		return data, nil
	})
}

// hold renews the lease that has a name, or grants one: a pin if there is a handle, or else a hold
// on the blobs. What it grants ends at once if the client has gone meanwhile. What it renews does
// not: only the answer may be lost, and a client that has gone falls silent.
func (c *call) hold() error {
	if c.Lease != "" {
		if !c.renew(c.Lease) {
			return errGone
		}
		return nil
	}
	take, life := c.store.Blobs().Hold, c.pace.life
	if c.Handle != "" {
		log, done, err := c.log(c.Handle)
		if err != nil {
			return err
		}
		defer done()
		take, life = log.Pin, c.pace.pin
	}
	release, err := take(c.ctx)
	if err != nil {
		return err
	}
	id, err := c.grant(release, life)
	if err != nil {
		return err
	}
	if err := errors.Join(c.out.result(result{Lease: id}), c.out.flush(), c.ctx.Err()); err != nil {
		c.release(id)
		return err
	}
	return nil
}

func (c *call) releaseLease() error {
	c.release(c.Lease)
	return nil
}
