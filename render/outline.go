package render

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Outline is the tree of a conversation as people see it. Entries that are only about
// the session (its name, tags, labels, origin) are left out unless asked for; their
// children become children of the entry before.
//
// An outline knows which entries there are, not what they say. [Conversation.Read]
// reads some of them, so that a conversation of any length can be drawn with few
// entries in memory.
type Outline struct {
	Roots []*Node
	Order []*Node // all of them, parents before children
	Leaf  *Node   // where the live path ends; nil if it is before the first entry
	Names Names   // of all entries, including those that are left out

	byID map[string]*Node
}

// Node is an entry in an outline.
type Node struct {
	// Entry has only the id, the parent's id and the type until it is read.
	Entry    session.Entry
	Label    string
	Parent   *Node // nil for a root
	Children []*Node
	Live     bool  // it is on the path to the leaf
	Onward   *Node // the child with which the conversation continues; nil at its end
	Length   int   // how many entries there are from here to that end

	newest int  // the position in the log of the latest entry at or below it
	unsaid bool // it is the last piece of an answer that is not complete, or is queued
}

// OutlineOptions say what to outline.
type OutlineOptions struct {
	// Leaf is the end of the live path; "" means before the first entry.
	Leaf string
	// At is an entry that the live path must contain. If the path to Leaf does not, the path
	// continues from At to where that branch was last worked on.
	At string
	// All includes the entries that are about the session.
	All bool
}

// NewOutline reads the tree of a conversation, and none of its entries.
func NewOutline(c Conversation, o OutlineOptions) (*Outline, error) {
	forest, err := c.Outline()
	if err != nil {
		return nil, err
	}
	ids, err := c.EntryIDs()
	if err != nil {
		return nil, err
	}
	var asides, unsaid map[string]bool
	if !o.All {
		if asides, unsaid, err = c.asides(forest); err != nil {
			return nil, err
		}
	}
	out := &Outline{byID: make(map[string]*Node), Names: ShortEntryIDs(ids)}
	out.grow(forest, asides)
	for id := range unsaid { // it is read as a message
		n := out.byID[id]
		n.unsaid, n.Entry.Type = true, session.TypeMessage
	}
	out.setNewest(ids)
	out.Leaf = out.byID[o.Leaf]
	if at := out.byID[o.At]; at != nil && !slices.Contains(out.Path(), at) {
		out.Leaf = at.latest()
	}
	for n := out.Leaf; n != nil; n = n.Parent {
		n.Live = true
	}
	out.setOnward()
	return out, nil
}

// asides returns the ids of the entries that are about the session rather than part of
// the conversation. The last draft of an answer that was never completed and what is queued
// are none of them: unsaid has their ids.
func (c Conversation) asides(forest []session.TreeNode) (asides, unsaid map[string]bool, _ error) {
	asides = make(map[string]bool)
	var customs []*session.TreeNode
	for n := range walkNodes(forest) {
		switch t := n.Entry.Type; {
		case t == session.TypeCustom:
			customs = append(customs, n)
		case t.IsRemark() || t == session.TypeLeaf:
			asides[n.Entry.ID] = true
		}
	}
	pieces, queued := make(map[string]*session.TreeNode), make(map[string]*session.TreeNode)
	var unqueued []string
	for some := range slices.Chunk(customs, ReadAtOnce) {
		ids := make([]string, len(some))
		for i, n := range some {
			ids[i] = n.Entry.ID
		}
		entries, err := c.Peek(ids...)
		if err != nil {
			return nil, nil, err
		}
		for i := range entries {
			e := &entries[i]
			if _, isDraft := e.DraftText(); isDraft {
				pieces[e.ID] = some[i]
			} else if e.Custom != nil {
				asides[e.ID] = e.IsAside()
			}
			if _, isQueued := e.Queued(); isQueued {
				queued[e.ID] = some[i]
			}
			unqueued = append(unqueued, e.Unqueued()...)
		}
	}
	unsaid, err := c.unanswered(pieces, asides)
	if err != nil {
		return nil, nil, err
	}
	for id := range pieces {
		asides[id] = true
	}
	for _, id := range unqueued {
		delete(queued, id)
	}
	for id, n := range queued {
		if unsaid[id], err = c.waits(n); err != nil {
			return nil, nil, err
		}
	}
	maps.DeleteFunc(unsaid, func(_ string, is bool) bool { return !is })
	for id := range unsaid {
		asides[id] = false
	}
	return asides, unsaid, nil
}

// waits reports whether no message after an entry ends the wait of what it has queued.
func (c Conversation) waits(n *session.TreeNode) (bool, error) {
	for todo := n.Children; len(todo) > 0; todo = todo[1:] {
		child := &todo[0]
		if child.Entry.Type == session.TypeMessage {
			found, err := c.Peek(child.Entry.ID)
			if err != nil || found[0].EndsWait(n.Entry.ID) {
				return false, err
			}
		}
		todo = slices.Concat(todo, child.Children)
	}
	return true, nil
}

// unanswered returns which drafts are the last of an answer that was never completed:
// those that neither another draft nor a message of the model follows.
func (c Conversation) unanswered(pieces map[string]*session.TreeNode, asides map[string]bool) (map[string]bool, error) {
	last := make(map[string]bool)
	follows := make(map[string]string) // by the id of a message: the draft before it
	for id, n := range pieces {
		last[id] = true
		for todo := n.Children; len(todo) > 0; todo = todo[1:] {
			switch child := &todo[0]; {
			case pieces[child.Entry.ID] != nil:
				last[id] = false
			case asides[child.Entry.ID]:
				todo = slices.Concat(todo, child.Children)
			case child.Entry.Type == session.TypeMessage:
				follows[child.Entry.ID] = id
			}
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(follows)), ReadAtOnce) {
		entries, err := c.Peek(ids...)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if m := entries[i].Message; m != nil && m.Role == session.RoleAssistant {
				last[follows[entries[i].ID]] = false
			}
		}
	}
	return last, nil
}

// walkNodes yields all nodes of a forest. It does not recurse, because a conversation
// is as deep as it is long.
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

// grow makes the nodes, except those that are left out. It does not recurse either.
func (o *Outline) grow(forest []session.TreeNode, asides map[string]bool) {
	type todo struct {
		node   *session.TreeNode
		parent *Node
	}
	var stack []todo
	push := func(nodes []session.TreeNode, parent *Node) {
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
			at = o.add(next.node, next.parent)
		} else {
			o.byID[next.node.Entry.ID] = at
		}
		push(next.node.Children, at)
	}
}

func (o *Outline) add(t *session.TreeNode, parent *Node) *Node {
	n := &Node{Entry: t.Entry, Label: t.Label, Parent: parent}
	if parent == nil {
		o.Roots = append(o.Roots, n)
	} else {
		parent.Children = append(parent.Children, n)
	}
	o.byID[t.Entry.ID] = n
	o.Order = append(o.Order, n)
	return n
}

func (o *Outline) setNewest(ids []string) {
	for i, id := range ids {
		if n := o.byID[id]; n != nil {
			n.newest = i
		}
	}
	for _, n := range slices.Backward(o.Order) {
		if n.Parent != nil {
			n.Parent.newest = max(n.Parent.newest, n.newest)
		}
	}
}

// setOnward works out how the conversation continues from each entry: with the live
// child, or else with the one that was worked on last.
func (o *Outline) setOnward() {
	for _, n := range slices.Backward(o.Order) { // children before parents
		for _, child := range n.Children {
			if best := n.Onward; best == nil || !best.Live && (child.Live || child.newest > best.newest) {
				n.Onward = child
			}
		}
		n.Length = 1
		if n.Onward != nil {
			n.Length += n.Onward.Length
		}
	}
}

// Node returns the node of an entry. If the entry is left out, it returns that of the
// entry before, or nil if there is none.
func (o *Outline) Node(id string) *Node { return o.byID[id] }

// Path returns the live path, from the root to the leaf.
func (o *Outline) Path() []*Node {
	if o.Leaf == nil {
		return nil
	}
	return o.Leaf.Path()
}

// How much to show around an entry: enough before it to know what it is about, and more
// after it, because people often look for the answer.
const (
	aroundBefore = 5
	aroundAfter  = 10
)

// Around returns the part of the live path around an entry. For an entry that is about
// the session, it uses the one before, or the beginning of the conversation.
func (o *Outline) Around(id string) []*Node {
	path := o.Path()
	at := max(slices.Index(path, o.byID[id]), 0)
	return path[max(at-aroundBefore, 0):min(at+aroundAfter+1, len(path))]
}

// OtherRoots returns the beginnings that are not live.
func (o *Outline) OtherRoots() []*Node {
	return slices.DeleteFunc(slices.Clone(o.Roots), func(n *Node) bool { return n.Live })
}

// Siblings returns the nodes with the same parent as n, including n.
func (o *Outline) Siblings(n *Node) []*Node {
	if n.Parent == nil {
		return o.Roots
	}
	return n.Parent.Children
}

// Path returns the entries from the root to the node.
func (n *Node) Path() []*Node {
	var path []*Node
	for at := n; at != nil; at = at.Parent {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// Tip returns the end of the conversation that continues from n.
func (n *Node) Tip() *Node {
	for n.Onward != nil {
		n = n.Onward
	}
	return n
}

// latest returns the end of the branch at or below n that was worked on last.
func (n *Node) latest() *Node {
	for len(n.Children) > 0 {
		n = slices.MaxFunc(n.Children, func(a, b *Node) int { return cmp.Compare(a.newest, b.newest) })
	}
	return n
}

// Others returns the children with which the conversation does not continue: the
// branches that begin here.
func (n *Node) Others() []*Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(child *Node) bool { return child == n.Onward })
}

// Forget releases the content of the entry once it has been shown.
func (n *Node) Forget() {
	n.Entry = session.Entry{ID: n.Entry.ID, ParentID: n.Entry.ParentID, Type: n.Entry.Type}
}
