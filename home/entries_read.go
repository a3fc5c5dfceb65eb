package home

import (
	"context"
	"iter"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/transcript"
)

// PathRequest says which entries of a conversation to read.
type PathRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	Leaf    string `json:"leaf,omitempty"` // the end of the path, as a person names it; "" means the leaf
	// At is an entry to read together with its neighbours on the branch, as a person
	// names it.
	At   string `json:"at,omitempty"`
	All  bool   `json:"all,omitempty"`  // every entry, in the order of the log
	Last int    `json:"last,omitempty"` // only this many of the last ones; 0 means all
}

// PathResult is the result of Path.
type PathResult struct {
	Streamed
	// Working is the program that works on the conversation now, if there is one.
	Working *lease.Holder `json:"working,omitempty"`
	// Missing is what should have been sent and cannot be read. The error matches ErrIncomplete
	// then.
	Missing []MissingContent `json:"missing,omitempty"`
}

// Path sends the entries from the root to a leaf, or all entries.
func (e *Entries) Path(ctx context.Context, r PathRequest, send func(session.Entry) error) (*PathResult, error) {
	return follow(ctx, e.home, "entries.path", r, send, e.path)
}

func (e *Entries) path(ctx context.Context, r PathRequest, send func(session.Entry) error) (*PathResult, error) {
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session, Link: r.Link})
	if err != nil {
		return nil, err
	}
	defer c.Close() // we only read
	sent := &PathResult{}
	if sent.Working, err = c.working(ctx); err != nil {
		return nil, err
	}
	for entry, err := range c.path(r) {
		if err == nil {
			err = ctx.Err() // entries in memory come without a look at the context
		}
		if err == nil {
			c.unreadable.look(&entry)
			err = pass(&sent.Streamed, send, entry)
		}
		if err != nil {
			return sent, err
		}
	}
	all := r.At == "" && r.Last == 0
	missing, err := c.missing(all)
	if err != nil {
		return sent, err
	}
	sent.Missing = missingIn(missing)
	return sent, c.Intact(all)
}

func (c *Conversation) path(r PathRequest) iter.Seq2[session.Entry, error] {
	fail := func(err error) iter.Seq2[session.Entry, error] {
		return func(yield func(session.Entry, error) bool) { yield(session.Entry{}, err) }
	}
	if err := notNegative("last", r.Last); err != nil {
		return fail(err)
	}
	shape, err := c.Shape()
	if err != nil {
		return fail(err)
	}
	switch {
	case r.All:
		numbers := make([]int32, shape.Len())
		for i := range numbers {
			numbers[i] = int32(i)
		}
		return shape.Entries(lastOf(numbers, r.Last))
	case r.At != "":
		ids, err := c.around(r)
		if err != nil {
			return fail(err)
		}
		return shape.Entries(shape.Numbers(ids))
	}
	leaf := shape.Leaf()
	if r.Leaf != "" {
		id, err := c.Resolve(r.Leaf)
		if err != nil {
			return fail(err)
		}
		leaf = shape.Index(id) // -1 for before the first entry
	}
	return shape.Entries(lastOf(shape.Path(leaf), r.Last))
}

// around returns the entries around one, on the branch that it is on.
func (c *Conversation) around(r PathRequest) ([]string, error) {
	at, err := c.Resolve(r.At)
	if err != nil {
		return nil, err
	}
	leaf, err := c.Resolve(r.Leaf)
	if err != nil {
		return nil, err
	}
	out, err := render.NewOutline(c.drawn(), render.OutlineOptions{Leaf: leaf, At: at})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, n := range out.Around(at) {
		ids = append(ids, n.Entry.ID)
	}
	return ids, nil
}

// lastOf returns the last n elements of a list; 0 means all.
func lastOf[T any](list []T, n int) []T {
	if n == 0 {
		return list
	}
	return list[max(len(list)-n, 0):]
}

// TreeNode is an entry in a tree.
type TreeNode struct {
	ID        string    `json:"id"`
	ParentID  *string   `json:"parent_id"`
	Depth     int       `json:"depth"`
	Children  int       `json:"children"`
	Type      string    `json:"type"`
	Role      string    `json:"role,omitempty"`
	Timestamp time.Time `json:"timestamp,omitzero"`
	Label     string    `json:"label,omitempty"`
	Live      bool      `json:"live"` // it is on the path to the leaf
	Leaf      bool      `json:"leaf"`
	Text      string    `json:"text"` // what it says, on one line
}

// Tree sends every entry of a conversation with its place in the tree, parents before
// children.
func (e *Entries) Tree(ctx context.Context, r OpenRequest, send func(TreeNode) error) (*Streamed, error) {
	return follow(ctx, e.home, "entries.tree", r, send, e.tree)
}

func (e *Entries) tree(ctx context.Context, r OpenRequest, send func(TreeNode) error) (*Streamed, error) {
	c, err := e.home.openFor(ctx, r)
	if err != nil {
		return nil, err
	}
	defer c.Close() // we only read
	drawn := c.drawn()
	out, err := render.NewOutline(drawn, render.OutlineOptions{Leaf: c.LeafID(), All: true})
	if err != nil {
		return nil, err
	}
	sent, depths := &Streamed{}, make(map[*render.Node]int)
	for nodes, err := range drawn.ReadChunks(ctx, out.Order, render.MaxOutput) {
		if err != nil {
			return sent, err
		}
		for _, n := range nodes {
			if n.Parent != nil {
				depths[n] = depths[n.Parent] + 1
			}
			if err := pass(sent, send, newTreeNode(out, n, depths[n])); err != nil {
				return sent, err
			}
		}
	}
	return sent, c.Intact(true)
}

func newTreeNode(out *render.Outline, n *render.Node, depth int) TreeNode {
	node := TreeNode{
		ID: n.Entry.ID, Depth: depth, Type: string(n.Entry.Type), Children: len(n.Children), Timestamp: n.Entry.Timestamp.UTC(),
		Label: n.Label, Live: n.Live, Leaf: n == out.Leaf, Text: render.Gist(&n.Entry, 0),
	}
	if n.Parent != nil {
		node.ParentID = &n.Parent.Entry.ID
	}
	if n.Entry.Message != nil {
		node.Role = n.Entry.Message.Role
	}
	return node
}

// RawRequest says which entry's source to read.
type RawRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Entry   string `json:"entry"`   // as a person names it
}

// RawResult has the source of an entry.
type RawResult struct {
	Data []byte `json:"data"`
}

// Raw returns the bytes from which an entry was imported.
func (e *Entries) Raw(ctx context.Context, r RawRequest) (*RawResult, error) {
	return call(ctx, e.home, "entries.raw", r, e.raw)
}

func (e *Entries) raw(ctx context.Context, r RawRequest) (*RawResult, error) {
	c, err := e.home.openWith(ctx, r.Session, r.Entry)
	if err != nil {
		return nil, err
	}
	defer c.Close() // we only read
	id, err := c.Resolve(r.Entry)
	if err != nil {
		return nil, err
	}
	entry, err := c.Entry(id)
	if err != nil {
		return nil, err
	}
	data, err := transcript.Raw(ctx, e.home.store, c.Session, &entry)
	return &RawResult{data}, err
}

// EntrySuggestion is an entry that a user may mean.
type EntrySuggestion struct {
	Name  string `json:"name"` // what to type
	Label string `json:"label,omitempty"`
	Text  string `json:"text"`
}

// EntrySuggestions are entries that a user may mean.
type EntrySuggestions struct {
	Entries []EntrySuggestion `json:"entries"`
}

// Suggest returns the entries of a conversation that are most likely meant: those with
// labels, and the ends of branches.
func (e *Entries) Suggest(ctx context.Context, r SessionRequest) (*EntrySuggestions, error) {
	return call(ctx, e.home, "entries.suggest", r, e.suggest)
}

func (e *Entries) suggest(ctx context.Context, r SessionRequest) (*EntrySuggestions, error) {
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	defer c.Close() // we only read
	drawn := c.drawn()
	out, err := render.NewOutline(drawn, render.OutlineOptions{Leaf: c.LeafID()})
	if err != nil {
		return nil, err
	}
	var offered []*render.Node
	for _, n := range out.Order {
		if len(n.Children) == 0 || n.Label != "" {
			offered = append(offered, n)
		}
	}
	if err := drawn.Read(ctx, offered, render.MaxOutput); err != nil {
		return nil, err
	}
	list := make([]EntrySuggestion, len(offered))
	for i, n := range offered {
		list[i] = EntrySuggestion{out.Names.Name(n.Entry.ID), n.Label, render.Gist(&n.Entry, maxSuggestion)}
	}
	return &EntrySuggestions{list}, nil
}

const maxSuggestion = 60 // columns
