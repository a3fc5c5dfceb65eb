package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
)

// opened is a session with the store it is in and its name there, or a whole
// conversation under its id.
type opened struct {
	*session.Session
	store *file.Store
	name  string
	chain session.Linked // the conversation that it is part of, if that was asked for
}

// withOpened calls f with the session that a user means by an id, a prefix of one,
// or a key, and with no other of its conversation.
func (a *app) withOpened(ctx context.Context, id string, f func(o opened) error) error {
	return a.withStore(func(st *file.Store) error {
		name, err := resolveSession(ctx, st, id)
		if err != nil {
			return err
		}
		s, err := session.Open(ctx, st, name, a.options())
		if err != nil {
			return err
		}
		return errors.Join(f(opened{Session: s, store: st, name: name}), s.Close())
	})
}

// shortName is the shortest prefix of the session's name that means it.
func (o opened) shortName(ctx context.Context) (string, error) {
	var names []string
	for stat, err := range o.store.List(ctx) {
		if err != nil && stat.Name == "" {
			return "", err
		}
		names = append(names, stat.Name)
	}
	return orElse(shortIDs(names)[o.name], o.name), nil // the first session of a conversation may be missing
}

// entryIDs returns the ids of all entries in the order of the log, those that
// only move the leaf included: a prefix that is shown to the user must mean one
// of them.
func (o opened) entryIDs(context.Context) ([]string, error) { return o.EntryIDs() }

// twig is an entry in the tree of a session as it is told to a person. Of the
// entry only the id, the parent and the type are there until it is read.
type twig struct {
	entry    session.Entry
	label    string
	parent   *twig
	children []*twig
	newest   int   // the place in the log of the latest entry at or below it
	live     bool  // it is on the path to the leaf
	onward   *twig // the child with which the conversation goes on, or nil
	length   int   // how many entries there are from it to where that ends
}

// shape is the tree of a session. What only says something about the session
// (its name, tags, labels, where it came from) is left out unless all is asked for; what hangs on
// such an entry then hangs on the entry before it.
type shape struct {
	roots []*twig
	byID  map[string]*twig // entries that are left out stand for the entry before
	order []*twig          // parents before children
	leaf  *twig            // nil before the first entry
	short map[string]string
}

// asides returns the ids of the entries that are about the session rather than
// part of the conversation.
func (o opened) asides(forest []session.TreeNode) (map[string]bool, error) {
	asides := make(map[string]bool)
	var customs []string
	for n := range walkNodes(forest) {
		switch t := n.Entry.Type; {
		case t == session.TypeCustom:
			customs = append(customs, n.Entry.ID)
		case t.IsRemark() || t == session.TypeLeaf:
			asides[n.Entry.ID] = true
		}
	}
	for ids := range slices.Chunk(customs, readAtOnce) {
		entries, err := o.Peek(ids...)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if c := e.Custom; c != nil {
				asides[e.ID] = isAside(c.CustomType)
			}
		}
	}
	return asides, nil
}

// isAside reports whether custom entries of a type are about the session.
func isAside(customType string) bool {
	switch customType {
	case session.CustomTags, session.CustomPinned, transcript.CustomImport, transcript.CustomFidelity:
		return true
	}
	return false
}

// walkNodes yields all nodes of a forest. A conversation is as deep as it is
// long, so it does not recurse.
func walkNodes(forest []session.TreeNode) iter.Seq[*session.TreeNode] {
	return func(yield func(*session.TreeNode) bool) {
		stack := [][]session.TreeNode{forest}
		for len(stack) > 0 {
			nodes := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for i := range nodes {
				if !yield(&nodes[i]) {
					return
				}
				stack = append(stack, nodes[i].Children)
			}
		}
	}
}

// shape reads the tree, and none of the entries. leaf is the entry at which the
// path ends that counts as live.
func (o opened) shape(leaf string, all bool) (*shape, error) {
	forest, err := o.Outline()
	if err != nil {
		return nil, err
	}
	ids, err := o.EntryIDs()
	if err != nil {
		return nil, err
	}
	asides := map[string]bool{}
	if !all {
		if asides, err = o.asides(forest); err != nil {
			return nil, err
		}
	}
	sh := &shape{byID: make(map[string]*twig), short: shortIDs(ids)}
	sh.grow(forest, asides)
	sh.setNewest(ids)
	sh.leaf = sh.byID[leaf]
	for t := sh.leaf; t != nil; t = t.parent {
		t.live = true
	}
	sh.setOnward()
	return sh, nil
}

const (
	// readAtOnce is how many entries are in memory at a time.
	readAtOnce = 256
	// maxFetched is the size above which the output of a tool is not fetched only
	// to show its beginning.
	maxFetched = 4 << 20
)

// read reads the entries of twigs, as far as a terminal shows them: images are told
// by their size, and so is output of more than limit bytes.
func (o opened) read(ctx context.Context, twigs []*twig, limit int64) error {
	ids := make([]string, len(twigs))
	for i, t := range twigs {
		ids[i] = t.entry.ID
	}
	entries, err := o.Peek(ids...)
	if err != nil {
		return err
	}
	for i := range entries {
		o.fetchOutput(ctx, &entries[i], limit)
		entries[i].ParentID = twigs[i].entry.ParentID // also of what is missing
		twigs[i].entry = entries[i]
	}
	return nil
}

// fetchOutput fills in the output of tools that is kept in blobs.
func (o opened) fetchOutput(ctx context.Context, e *session.Entry, limit int64) {
	if e.Message == nil {
		return
	}
	for i := range e.Message.Content {
		r := e.Message.Content[i].ToolResult
		switch {
		case r == nil || r.Blob == "" || r.Content != "":
		case r.Size > limit:
			r.Content = fmt.Sprintf("[%s of output; coppice show --full shows it]", humanBytes(r.Size))
		default:
			data, err := o.store.Blobs().Get(ctx, r.Blob)
			if r.Content = string(data); err != nil {
				r.Content = fmt.Sprintf("[content is missing: %s]", r.Blob)
			}
		}
	}
}

// grow makes twigs of nodes, except of those that are to be left out. It does not
// recurse either.
func (sh *shape) grow(forest []session.TreeNode, asides map[string]bool) {
	type todo struct {
		node   *session.TreeNode
		parent *twig
	}
	var stack []todo
	push := func(nodes []session.TreeNode, parent *twig) {
		for i := len(nodes) - 1; i >= 0; i-- {
			stack = append(stack, todo{&nodes[i], parent})
		}
	}
	push(forest, nil)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at := next.parent
		if !asides[next.node.Entry.ID] {
			at = sh.add(next.node, next.parent)
		} else {
			sh.byID[next.node.Entry.ID] = at
		}
		push(next.node.Children, at)
	}
}

func (sh *shape) add(n *session.TreeNode, parent *twig) *twig {
	t := &twig{entry: n.Entry, label: n.Label, parent: parent}
	if parent == nil {
		sh.roots = append(sh.roots, t)
	} else {
		parent.children = append(parent.children, t)
	}
	sh.byID[n.Entry.ID] = t
	sh.order = append(sh.order, t)
	return t
}

func (sh *shape) setNewest(ids []string) {
	for i, id := range ids {
		if t := sh.byID[id]; t != nil {
			t.newest = i
		}
	}
	for _, t := range slices.Backward(sh.order) {
		if t.parent != nil {
			t.parent.newest = max(t.parent.newest, t.newest)
		}
	}
}

// id is the shortest id of an entry that the user can give back. It is part of
// commands; shortID is how it is shown.
func (sh *shape) id(t *twig) string { return orElse(sh.short[t.entry.ID], t.entry.ID) }

func (sh *shape) shortID(id string) string { return shortened(sh.short, id) }

// setOnward finds out how the conversation goes on from each entry: with the live
// child, else with the one that was worked on last.
func (sh *shape) setOnward() {
	for _, t := range slices.Backward(sh.order) { // children before parents
		for _, child := range t.children {
			if best := t.onward; best == nil || !best.live && (child.live || child.newest > best.newest) {
				t.onward = child
			}
		}
		t.length = 1
		if t.onward != nil {
			t.length += t.onward.length
		}
	}
}

// tip is where the conversation below a twig ends.
func (t *twig) tip() *twig {
	for t.onward != nil {
		t = t.onward
	}
	return t
}

// path is the live path, from the root to the leaf.
func (sh *shape) path() []*twig {
	var path []*twig
	for t := sh.leaf; t != nil; t = t.parent {
		path = append(path, t)
	}
	slices.Reverse(path)
	return path
}

// otherRoots are the beginnings that are not live.
func (sh *shape) otherRoots() []*twig {
	var others []*twig
	for _, t := range sh.roots {
		if !t.live {
			others = append(others, t)
		}
	}
	return others
}

// others are the children that do not lead on.
func (t *twig) others() []*twig {
	var others []*twig
	for _, child := range t.children {
		if child != t.onward {
			others = append(others, child)
		}
	}
	return others
}
