package render

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

const (
	// ReadAtOnce is how many entries a renderer has in memory at a time.
	ReadAtOnce = 256
	// MaxOutput is the size above which a tool's output is not worth fetching only to
	// show its beginning.
	MaxOutput = 4 << 20
)

// PeekNodes returns the entries of some nodes, without what they have in blobs.
func (c Conversation) PeekNodes(nodes []*Node) ([]session.Entry, error) {
	entries, err := c.Peek(idsOf(nodes)...)
	for i := range entries {
		if err == nil {
			err = c.readUnsaid(nodes[i].unsaid, &entries[i])
		}
		entries[i].ParentID = nodes[i].Entry.ParentID // the outline knows it even if the entry is missing
	}
	return entries, err
}

// Read returns entries by their numbers, with what [Conversation.Read] fills in.
func (k *Sketch) Read(ctx context.Context, c Conversation, numbers []int32, maxOutput int64) ([]session.Entry, error) {
	entries, err := k.shape.Peek(numbers, nil)
	for i := 0; i < len(entries) && err == nil; i++ {
		err = c.Complete(ctx, &entries[i], k.IsUnsaid(numbers[i]), maxOutput)
	}
	return entries, err
}

// Complete fills in what [Conversation.Read] fills in, for an entry that was peeked at.
func (c Conversation) Complete(ctx context.Context, e *session.Entry, isUnsaid bool, maxOutput int64) error {
	if err := c.readUnsaid(isUnsaid, e); err != nil {
		return err
	}
	return c.FetchOutput(ctx, e, maxOutput)
}

// Read fills in the entries of some nodes, with the parts that a terminal shows. Images
// and files, and tool output of more than maxOutput bytes, have their size but not
// their content.
func (c Conversation) Read(ctx context.Context, nodes []*Node, maxOutput int64) error {
	entries, err := c.PeekNodes(nodes)
	if err != nil {
		return err
	}
	for i := range entries {
		if err := c.FetchOutput(ctx, &entries[i], maxOutput); err != nil {
			return err
		}
		nodes[i].Entry = entries[i]
	}
	return nil
}

// ReadChunks yields nodes in chunks that have been read, and releases their content
// when the next chunk is asked for.
func (c Conversation) ReadChunks(ctx context.Context, nodes []*Node, maxOutput int64) iter.Seq2[[]*Node, error] {
	return func(yield func([]*Node, error) bool) {
		for chunk := range slices.Chunk(nodes, ReadAtOnce) {
			done := budget.Part(ctx)
			err := c.Read(ctx, chunk, maxOutput)
			if !yield(chunk, err) || err != nil {
				return
			}
			for _, n := range chunk {
				n.Forget()
			}
			done()
		}
	}
}

// EachNode yields nodes with their whole entries, including images and all output, one
// at a time.
func (c Conversation) EachNode(nodes []*Node) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		i := 0
		shape, err := c.Shape()
		if err != nil {
			yield(nil, err)
			return
		}
		for e, err := range shape.Entries(shape.Numbers(idsOf(nodes))) {
			if err == nil {
				err = c.readUnsaid(nodes[i].unsaid, &e)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			n := nodes[i]
			e.ParentID = n.Entry.ParentID
			n.Entry = e
			if !yield(n, nil) {
				return
			}
			n.Forget()
			i++
		}
	}
}

// readUnsaid makes an entry the incomplete message that it is the last draft of, or the
// message that it has queued.
func (c Conversation) readUnsaid(isUnsaid bool, e *session.Entry) error {
	if !isUnsaid {
		return nil
	}
	if waiting, ok := e.Waiting(); ok {
		*e = waiting
		return nil
	}
	text, _, err := session.DraftAt(c.Session, e.ID)
	*e = e.Drafted(text)
	return err
}

func idsOf(nodes []*Node) []string {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.Entry.ID
	}
	return ids
}

// FetchOutput fills in tool output from blobs, unless it has more than limit bytes;
// then it puts a note there. If output is gone, it says so there. If it is out of reach, or there
// is no memory for it, it returns an error.
func (c Conversation) FetchOutput(ctx context.Context, e *session.Entry, limit int64) error {
	if e.Type == session.TypeGap {
		c.reportLost(e.ID, "", nil)
	}
	if e.Message == nil {
		return nil
	}
	for i := range e.Message.Content {
		r := e.Message.Content[i].ToolResult
		switch {
		case r == nil || r.Blob == "" || r.Content != "":
		case r.Size > limit:
			r.Content = fmt.Sprintf("[%s of output: too long to show here]", Bytes(r.Size))
		default:
			if err := budget.Hold(ctx, r.Size); err != nil {
				return err
			}
			data, err := c.Blobs.Get(ctx, r.Blob)
			if err != nil && !session.IsGone(err) {
				return fmt.Errorf("entry %s: the blob %s cannot be read: %w", e.ID, r.Blob, err)
			}
			if r.Content = string(data); err != nil {
				r.Content = fmt.Sprintf("[content is missing: %s]", r.Blob)
				c.reportLost(e.ID, r.Blob, err)
			}
		}
	}
	return nil
}

func (c Conversation) reportLost(entry string, blob store.Ref, err error) {
	if c.Lost != nil {
		c.Lost(entry, blob, err)
	}
}
