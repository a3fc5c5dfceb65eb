package dataset

import (
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const (
	oasst = "oasst"
	// maxReplies is how deep replies may be nested. Each level is parsed again for every
	// level above it, so depth needs a limit; real trees are a dozen deep.
	maxReplies = 200
)

// readOASST reads a tree of messages, or a message of one that names its parent. Message
// ids are unique everywhere.
func readOASST(r *reader, rec records.Record) error {
	tree := rec.Get("message_tree_id").Text()
	if tree == "" {
		return bad("it has no message_tree_id")
	}
	b := &builder{reader: r, span: rec.Span, err: r.to.Begin(transcript.Conversation{ID: tree})}
	root := rec.Get("prompt")
	if !root.IsObject() {
		return b.node(rec.Value, rec.Get("parent_id").Text())
	}
	return b.tree(root, "", 0)
}

func (b *builder) tree(v loose.Value, parent string, depth int) error {
	if depth > maxReplies {
		return bad(fmt.Sprintf("replies are nested more than %d deep", maxReplies))
	}
	err := b.node(v, parent)
	for reply := range v.Get("replies").Items() {
		if err == nil {
			err = b.tree(reply, v.Get("message_id").Text(), depth+1)
		}
	}
	return err
}

// node adds a message of a tree, and its replies.
func (b *builder) node(v loose.Value, parent string) error {
	id := v.Get("message_id").Text()
	if id == "" {
		return bad("a message without message_id")
	}
	if parent == "" {
		parent = transcript.Root
	}
	m := &session.MessageEntry{
		Role: session.RoleUser, Content: text(v.Get("text")), Model: v.Get("model_name").Text(),
		Extra: besides(oasst, v, "message_id", "parent_id", "text", "created_date", "model_name", "message_tree_id", "replies"),
	}
	if role := v.Get("role").Text(); role == "assistant" {
		m.Role = role
	}
	b.put(transcript.Record{
		ID: id, Parent: parent,
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: v.Get("created_date").Time(time.UTC), Message: m},
	})
	return b.err
}
