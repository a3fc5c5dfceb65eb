package render

import (
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

	sketch *Sketch
	nodes  []*Node // by number; nil if left out
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

	number int32 // in the sketch
	unsaid bool  // it is the last piece of an answer that is not complete, or is queued
}

// IsMessage reports whether people see the entry as a message, before it is read: one that is
// complete, still arrives or is queued.
func (n *Node) IsMessage() bool { return n.Entry.Type == session.TypeMessage || n.unsaid }

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
	k, err := NewSketch(c, o.All)
	if err != nil {
		return nil, err
	}
	out := &Outline{Names: ShortEntryIDs(k.shape.IDs()), sketch: k}
	out.build()
	out.Leaf = out.Node(o.Leaf)
	if at := out.Node(o.At); at != nil && !slices.Contains(out.Path(), at) {
		tip, _ := k.Tip(at.number)
		out.Leaf = out.nodes[tip]
	}
	for n := out.Leaf; n != nil; n = n.Parent {
		n.Live = true
	}
	out.setPreferredChildren()
	return out, nil
}

// build makes the nodes. It does not recurse, because a conversation is as deep as it is long.
func (o *Outline) build() {
	k := o.sketch
	o.nodes = make([]*Node, k.shape.Len())
	stack := k.Children(none)
	slices.Reverse(stack)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &Node{Entry: k.unread(i), Label: k.labels[i], number: i, unsaid: k.traits[i].isUnsaid()}
		if p := k.up[i]; p == none {
			o.Roots = append(o.Roots, n)
		} else {
			n.Parent = o.nodes[p]
			n.Parent.Children = append(n.Parent.Children, n)
		}
		o.nodes[i] = n
		o.Order = append(o.Order, n)
		children := k.Children(i)
		slices.Reverse(children)
		stack = append(stack, children...)
	}
}

// setPreferredChildren works out how the conversation continues from each entry: with the live
// child, or else with the one that was worked on last.
func (o *Outline) setPreferredChildren() {
	for _, n := range slices.Backward(o.Order) { // children before parents
		if at := o.sketch.head[n.number]; at != none {
			n.Onward = o.nodes[at]
		}
		for _, child := range n.Children {
			if child.Live {
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
func (o *Outline) Node(id string) *Node {
	at := o.sketch.At(o.sketch.shape.Index(id))
	if at == none {
		return nil
	}
	return o.nodes[at]
}

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
	at := max(slices.Index(path, o.Node(id)), 0)
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

// Others returns the children with which the conversation does not continue: the
// branches that begin here.
func (n *Node) Others() []*Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(child *Node) bool { return child == n.Onward })
}

// Forget releases the content of the entry once it has been shown.
func (n *Node) Forget() {
	n.Entry = session.Entry{ID: n.Entry.ID, ParentID: n.Entry.ParentID, Type: n.Entry.Type}
}
