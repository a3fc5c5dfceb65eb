package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/rawjson"
	"github.com/coppice-dev/coppice/store/file"
)

// opened is a session with the store it is in and its name there.
type opened struct {
	*session.Session
	store *file.Store
	name  string
}

// withOpened is withSession for commands that also need the store.
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
		return errors.Join(f(opened{s, st, name}), s.Close())
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
	return shortIDs(names)[o.name], nil
}

// entryIDs returns the ids of all entries in the order of the log, those that
// only move the leaf included: a prefix that is shown to the user must mean one
// of them.
func (o opened) entryIDs(ctx context.Context) (ids []string, err error) {
	log, err := o.store.Open(ctx, o.name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		h, ok := rawjson.ScanHead(bytes.TrimPrefix(line.Data, []byte("\xef\xbb\xbf")))
		if ok && string(h.Type) != string(session.TypeSession) {
			ids = append(ids, string(h.ID))
		}
	}
	return ids, nil
}

// twig is an entry in the tree of a session as it is told to a person.
type twig struct {
	entry    session.Entry
	label    string
	parent   *twig
	children []*twig
	newest   int  // the place in the log of the latest entry at or below it
	live     bool // it is on the path to the leaf
}

// shape is the tree of a session. What only says something about the session
// (its name, tags, labels) is left out unless all is asked for; what hangs on
// such an entry then hangs on the entry before it.
type shape struct {
	roots []*twig
	byID  map[string]*twig // entries that are left out stand for the entry before
	order []*twig          // parents before children
	leaf  *twig            // nil before the first entry
	short map[string]string
}

// isAside reports whether an entry is about the session rather than part of the
// conversation.
func isAside(e *session.Entry) bool {
	switch {
	case e.Label != nil, e.SessionInfo != nil, e.Type == session.TypeLeaf:
		return true
	case e.Custom != nil:
		return e.Custom.CustomType == session.CustomTags || e.Custom.CustomType == session.CustomPinned
	}
	return false
}

// shape reads the tree. leaf is the entry at which the path ends that counts as
// live.
func (o opened) shape(ctx context.Context, leaf string, all bool) (*shape, error) {
	forest, err := o.GetTree()
	if err != nil {
		return nil, err
	}
	ids, err := o.entryIDs(ctx)
	if err != nil {
		return nil, err
	}
	sh := &shape{byID: make(map[string]*twig), short: shortIDs(ids)}
	sh.grow(forest, all)
	sh.setNewest(ids)
	sh.leaf = sh.byID[leaf]
	for t := sh.leaf; t != nil; t = t.parent {
		t.live = true
	}
	return sh, nil
}

// grow makes twigs of nodes. A conversation is as deep as it is long, so it does
// not recurse.
func (sh *shape) grow(forest []session.TreeNode, all bool) {
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
		if all || !isAside(&next.node.Entry) {
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

// id is the shortest id of an entry that the user can give back.
func (sh *shape) id(t *twig) string { return sh.shortID(t.entry.ID) }

func (sh *shape) shortID(id string) string { return orElse(sh.short[id], oneLine(id, 0)) }

// onward is the child with which the conversation goes on: the live one, else
// the one that was worked on last.
func (t *twig) onward() *twig {
	var best *twig
	for _, child := range t.children {
		if child.live {
			return child
		}
		if best == nil || child.newest > best.newest {
			best = child
		}
	}
	return best
}

// tip is where the conversation below a twig ends.
func (t *twig) tip() *twig {
	for next := t.onward(); next != nil; next = t.onward() {
		t = next
	}
	return t
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
	next := t.onward()
	var others []*twig
	for _, child := range t.children {
		if child != next {
			others = append(others, child)
		}
	}
	return others
}
