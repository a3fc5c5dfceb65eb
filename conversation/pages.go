package conversation

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
)

// A page of a conversation is read without the rest of it. From the other messages we only need
// the first bytes of their lines, once.

// maxShelves is how many conversations stay open for more of their pages.
const maxShelves = 4

// shelf is a conversation whose pages are read.
type shelf struct {
	*joined
	leaf string
	ids  []string // of its messages
}

// LoadMessages returns a page of a conversation's messages; the first page is 1
// and has the oldest. Only the messages of the page are read.
func (m *Sessions) LoadMessages(id string, page, pageSize int) ([]Message, error) {
	if page < 1 || pageSize < 1 {
		return nil, &session.Error{Op: "load messages", Name: id, Kind: session.ErrInvalid, Err: errors.New("page and page size must be at least 1")}
	}
	b, err := m.shelf(id)
	if err != nil {
		return nil, err
	}
	messages, err := b.read(m.context(), page, pageSize)
	m.shelves.Release(id, b)
	if !errors.Is(err, session.ErrCorrupt) {
		return messages, err
	}
	all, _, _, err := m.messages(id)
	return clones(pageOf(all, page, pageSize)), err
}

// pageOf returns as much of a page of a list as there is. It multiplies only what is in the list,
// because a page and its size may be as large as an int.
func pageOf[T any](list []T, page, size int) []T {
	if page-1 > len(list)/size {
		return nil
	}
	rest := list[(page-1)*size:]
	return rest[:min(size, len(rest))]
}

// read reads a page of the messages. If one cannot be read, what is a message is not known.
func (b *shelf) read(ctx context.Context, page, size int) (messages []Message, _ error) {
	shape, err := b.WithContext(ctx).Shape()
	if err != nil {
		return nil, err
	}
	for e, err := range shape.Entries(shape.Numbers(pageOf(b.ids, page, size))) {
		if err != nil {
			return nil, err
		}
		if e.Message == nil {
			return nil, session.ErrCorrupt
		}
		messages = append(messages, fromEntry(e))
	}
	return messages, nil
}

// shelf returns the shelf of a conversation, brought up to date. The caller releases it.
func (m *Sessions) shelf(id string) (*shelf, error) {
	open := func() (*shelf, error) { return m.openShelf(id) }
	b, err := m.shelves.Get(m.context(), id, open)
	if err != nil {
		return nil, err
	}
	if _, err := b.Refresh(); err == nil && b.LeafID() == b.leaf && !m.isBack(b.awaited) {
		return b, nil
	}
	m.shelves.Drop(id)
	return m.shelves.Get(m.context(), id, open)
}

// close closes the session, which was only read.
func (b *shelf) close() (gone bool) {
	_ = b.Close()
	return true
}

// openShelf opens a conversation and finds its messages.
func (m *Sessions) openShelf(id string) (*shelf, error) {
	chain, err := session.FindChain(m.context(), m.store, m.resolve(id), nil)
	if err != nil { // it may have a replacement
		chain, err = m.chain(id)
	}
	if err != nil {
		return nil, err
	}
	j, err := m.join(chain, everything)
	if err != nil {
		return nil, err
	}
	b := &shelf{joined: j, leaf: j.LeafID()}
	shape, err := b.Shape()
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	for _, n := range shape.Path(shape.Leaf()) {
		if shape.Type(n) == session.TypeMessage {
			b.ids = append(b.ids, shape.ID(n))
		}
	}
	return b, nil
}
