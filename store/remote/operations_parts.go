package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// The server's operations on the parts of a store, and on batches.

// begin starts an exchange with the client, and asks the first question.
func (c *call) begin(run func(ctx context.Context, ask func([]byte) ([]byte, error)) error) error {
	l := c.newLease()
	l.exchange = startExchange(l.ctx, run)
	l.end = func() { <-l.exchange.done }
	id, err := c.grant(l)
	if err != nil {
		return err
	}
	if err := c.ask(l, id); err != nil {
		c.release(id)
		return err
	}
	return nil
}

// ask sends the next question of an exchange, or that it is over.
func (c *call) ask(l *lease, id string) error {
	question, over, err := l.exchange.next(c.ctx)
	if over {
		if l.exchange.isOver() {
			c.release(id)
		}
		return err
	}
	return errors.Join(c.out.result(result{Lease: id, None: question == nil}), c.out.data(question))
}

// reply answers a question of an exchange, and gets the next.
func (c *call) reply() error {
	data, err := c.data(maxBlob(c.limits))
	if err != nil {
		return err
	}
	l, err := c.renew(c.Lease)
	if err != nil {
		return err
	}
	if l.exchange == nil {
		return errGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.exchange.reply(data); err != nil {
		c.release(c.Lease)
		return err
	}
	return c.ask(l, c.Lease)
}

// public returns a part as clients see it, with its place within the store.
func (c *call) public(p store.Part) *part {
	place := placeOf(p.Kind, p.Name)
	if p.Place != c.store.Parts().Where(p.Kind, p.Name) {
		rel, ok := strings.CutPrefix(p.Place, c.store.Where())
		if !ok {
			sum := sha256.Sum256([]byte(p.Place))
			rel = hex.EncodeToString(sum[:])
		}
		place = string(p.Kind) + ":" + rel
	}
	return &part{Kind: p.Kind, Name: p.Name, Place: place, Size: p.Size, Modified: p.Modified}
}

// private is the reverse of public. What a client sends is never used as a path: a part that
// is not at the usual place of its name is looked up.
func (c *call) private() (store.Part, error) {
	if c.Part == nil {
		return store.Part{}, bad(malformed("which part?"))
	}
	named := store.Part{Kind: c.Part.Kind, Name: c.Part.Name, Place: c.store.Parts().Where(c.Part.Kind, c.Part.Name), Size: c.Part.Size, Modified: c.Part.Modified}
	if c.Part.Place == placeOf(c.Part.Kind, c.Part.Name) && isOwnName(c.Part) {
		return named, nil
	}
	for p, err := range c.store.Parts().All(c.ctx) {
		if err != nil {
			return store.Part{}, err
		}
		if p.Kind == c.Part.Kind && p.Name == c.Part.Name && c.public(p).Place == c.Part.Place {
			return p, nil
		}
	}
	return store.Part{}, &store.Error{Op: "find part", Name: c.Part.Name, Kind: store.ErrNotExist}
}

// isOwnName reports whether the name of a part can only mean something in the store.
func isOwnName(p *part) bool {
	switch p.Kind {
	case store.PartLog:
		return store.CheckName(p.Name) == nil
	case store.PartBlob:
		_, ok := store.Ref(p.Name).Hex()
		return ok
	case store.PartNote:
		for name := range strings.SplitSeq(p.Name, "/") {
			if store.CheckName(name) != nil {
				return false
			}
		}
		return true
	}
	return false
}

func (c *call) parts() error {
	for p, err := range c.store.Parts().All(c.ctx) {
		if err == nil {
			err = c.out.result(result{Part: c.public(p)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) copies() error {
	all, err := c.store.Parts().Copies(c.ctx, c.Name)
	return errors.Join(c.listed(all), err)
}

func (c *call) openPart() error {
	p, err := c.private()
	if err != nil {
		return err
	}
	r, err := c.store.Parts().Open(c.ctx, p)
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, chunk)
	for {
		n, err := r.Read(buf)
		if e := c.out.data(buf[:n]); e != nil {
			return e
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *call) partLines() error {
	p, err := c.private()
	if err != nil {
		return err
	}
	for line, err := range c.store.Parts().Lines(c.ctx, p) {
		if err == nil {
			err = c.line(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) editPart() error {
	p, err := c.private()
	if err != nil {
		return err
	}
	parts := c.store.Parts()
	return c.begin(func(ctx context.Context, ask func([]byte) ([]byte, error)) error {
		return parts.Edit(ctx, p, ask)
	})
}

func (c *call) removePart() error {
	p, err := c.private()
	if err != nil {
		return err
	}
	return c.store.Parts().Remove(c.ctx, p)
}

func (c *call) newBatch() error {
	l := c.newLease()
	l.batch = c.store.Batch()
	l.end = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.batch.Discard()
	}
	return c.told(l)
}

// batchLease returns the lease of the batch that a request is about.
func (c *call) batchLease() (*lease, error) {
	l, err := c.renew(c.Lease)
	if err == nil && l.batch == nil {
		err = errGone
	}
	return l, err
}

func (c *call) addToBatch() error {
	l, err := c.batchLease()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batch.Add(c.ctx, c.Name, c.lines)
}

// commitBatch continues if the client leaves: otherwise only a part of the logs would exist.
func (c *call) commitBatch() error {
	l, err := c.batchLease()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, e := range l.batch.Commit(context.WithoutCancel(c.ctx)) {
		err = errors.Join(err, c.out.result(result{Name: name, Error: describe(e, "create", c.store.Where())}))
	}
	return err
}
