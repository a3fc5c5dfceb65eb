package dataset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const (
	oasst = "oasst"
	// maxReplies is how deep replies may be nested. Every level is walked over
	// once more, so there must be an end; real trees are a dozen deep.
	maxReplies = 200
)

// OASST returns the format of OpenAssistant: trees of messages, as a tree in each
// record or as messages that name their parents.
func OASST() *transcript.Format {
	return &transcript.Format{
		Name: oasst, Title: "OpenAssistant",
		Detect: func(f *transcript.File) bool {
			return has(shape.OfFile(f), "message_tree_id")
		},
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			r := &recordReader{format: oasst, file: f, to: to}
			return records.Each(ctx, f, to, r.oasst)
		},
	}
}

// oasst reads a tree, or a message of one. Message ids are unique everywhere.
func (r *recordReader) oasst(rec records.Record) error {
	tree := rec.Get("message_tree_id").Text()
	if tree == "" {
		return records.Bad(errors.New("it has no message_tree_id"))
	}
	if err := r.to.Begin(transcript.Conversation{ID: tree}); err != nil {
		return err
	}
	root := rec.Get("prompt")
	if !root.IsObject() {
		return r.node(rec.Value, rec.Get("parent_id").Text(), rec.Span)
	}
	// A list of what is to do, not recursion.
	type todo struct {
		node   loose.Value
		parent string
		depth  int
	}
	for stack := []todo{{root, "", 0}}; len(stack) > 0; {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if next.depth > maxReplies {
			return records.Bad(fmt.Errorf("replies are nested more than %d deep", maxReplies))
		}
		if err := r.node(next.node, next.parent, rec.Span); err != nil {
			return err
		}
		var replies []todo
		for reply := range next.node.Get("replies").Items() {
			replies = append(replies, todo{reply, next.node.Get("message_id").Text(), next.depth + 1})
		}
		for i := len(replies) - 1; i >= 0; i-- { // the first is next
			stack = append(stack, replies[i])
		}
	}
	return nil
}

// node adds a message of a tree.
func (r *recordReader) node(v loose.Value, parent string, span transcript.Span) error {
	id := v.Get("message_id").Text()
	if id == "" {
		return records.Bad(errors.New("a message without message_id"))
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
	r.to.Count(m.Role+" message", "message", 1)
	return r.to.Add(transcript.Record{
		ID: id, Parent: parent, From: []transcript.Span{span},
		Entry: session.Entry{Type: session.TypeMessage, Timestamp: v.Get("created_date").Time(time.UTC), Message: m},
	})
}
