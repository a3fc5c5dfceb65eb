package chatgpt

import (
	"cmp"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// tree is a conversation that is being read.
type tree struct {
	value  loose.Value
	assets *transcript.Archive // nil where there is none
	to     transcript.Sink

	nodes map[string]*node
	order []string // of the nodes in the mapping
	span  transcript.Span
}

// node is a node of the mapping.
type node struct {
	id, parent string
	message    loose.Value // nil for a node that has none
	children   []string
	visited    bool

	entry *session.Entry // the entry that it became, or nil
	calls []call         // the tool calls in it
}

// call is a tool call, until it is answered.
type call struct {
	id, tool string
	answered bool
}

func (t *tree) read() error {
	t.index()
	id := cmp.Or(t.value.Get("conversation_id").Text(), t.value.Get("id").Text())
	if id == "" && len(t.order) > 0 {
		id = transcript.HashID("chatgpt", t.order[0], t.value.Get("create_time").Name()) // old exports have none
	}
	if id == "" {
		t.to.Count("empty conversation", transcript.OnlyKept, 1)
		return nil
	}
	c := transcript.Conversation{
		ID:      id,
		Title:   t.value.Get("title").Text(),
		Created: t.value.Get("create_time").Time(time.UTC),
		Extra:   t.value.Pick("default_model_slug", "gizmo_id", "gizmo_type", "is_archived", "is_starred", "conversation_template_id"),
	}
	if err := t.to.Begin(c); err != nil {
		return err
	}
	span, err := t.to.Keep("conversation "+id, t.value)
	if err != nil {
		return err
	}
	t.span = span
	if err := t.walk(); err != nil {
		return err
	}
	c.Leaf = t.leaf()
	return t.to.Begin(c)
}

func (t *tree) index() {
	t.nodes = make(map[string]*node)
	for id, v := range t.value.Get("mapping").Members() {
		n := &node{id: id, parent: v.Get("parent").Text()}
		if m := v.Get("message"); m.IsObject() {
			n.message = m
		}
		for child := range v.Get("children").Items() {
			n.children = append(n.children, child.Text())
		}
		t.nodes[id] = n
		t.order = append(t.order, id)
	}
}

// walk visits the nodes, each after its parent. It keeps its own stack: chains are as deep as
// conversations are long. Nodes that no root leads to, because a parent is missing or they
// form a circle, are roots too.
func (t *tree) walk() error {
	for _, isRoot := range []func(*node) bool{
		func(n *node) bool { return t.nodes[n.parent] == nil },
		func(*node) bool { return true },
	} {
		for _, id := range t.order {
			n := t.nodes[id]
			if n.visited || !isRoot(n) {
				continue
			}
			if err := t.walkFrom(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tree) walkFrom(root *node) error {
	stack := []*node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.visited {
			continue
		}
		n.visited = true
		if err := t.add(n); err != nil {
			return err
		}
		for i := len(n.children) - 1; i >= 0; i-- {
			child := t.nodes[n.children[i]]
			if child != nil && child.parent == n.id {
				stack = append(stack, child)
			}
		}
	}
	return nil
}

// add passes a node's record to the sink.
func (t *tree) add(n *node) error {
	entry := t.entry(n)
	if entry == nil {
		if n.message.Exists() {
			t.to.Count("hidden or empty message", transcript.OnlyKept, 1)
		}
		return nil
	}
	parent := transcript.Root
	if above := t.above(n); above != nil {
		parent = above.id
	}
	n.entry = entry
	t.to.Count(n.message.Get("author", "role").Text()+" message", "message", 1)
	return t.to.Add(transcript.Record{ID: n.id, Parent: parent, Entry: *entry, From: []transcript.Span{t.span}})
}

// above returns the nearest ancestor that became an entry, or nil.
func (t *tree) above(n *node) *node {
	for range t.nodes { // never more steps than there are nodes
		n = t.nodes[n.parent]
		if n == nil || n.entry != nil {
			return n
		}
	}
	return nil
}

// leaf returns where the conversation ends: its current node, or else its newest leaf.
func (t *tree) leaf() string {
	n := t.nodes[t.value.Get("current_node").Text()]
	if n == nil {
		n = t.newest()
	}
	if n != nil && n.entry == nil {
		n = t.above(n)
	}
	if n == nil {
		return ""
	}
	return n.id
}

func (t *tree) newest() *node {
	var newest *node
	for _, id := range t.order {
		n := t.nodes[id]
		if n.entry != nil && len(n.children) == 0 && (newest == nil || n.entry.Timestamp.After(newest.entry.Timestamp)) {
			newest = n
		}
	}
	return newest
}

// callFor returns the id of the call that a tool's message answers: the nearest
// one above it that waits for this tool, or "".
func (t *tree) callFor(n *node, tool string) string {
	at := n
	for range t.nodes { // never more steps than there are nodes
		if at = t.above(at); at == nil {
			break
		}
		for i := len(at.calls) - 1; i >= 0; i-- {
			c := &at.calls[i]
			if !c.answered && sameTool(c.tool, tool) {
				c.answered = true
				return c.id
			}
		}
		if at.message.Get("author", "role").Text() == "user" {
			return ""
		}
	}
	return ""
}

// sameTool compares the name by which a tool was called with the one by which it
// answers: "browser" and "browser.search" are one.
func sameTool(called, answers string) bool {
	called, _, _ = strings.Cut(called, ".")
	answers, _, _ = strings.Cut(answers, ".")
	return called == answers
}
