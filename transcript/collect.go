package transcript

import (
	"context"
	"slices"
	"time"
)

// Collected is everything that a reader finds in a file: a dry run shows it, and a
// written file is compared with it.
type Collected struct {
	Conversations []*CollectedConversation // in the order in which they began
	Counts        map[Became]int
	Problems      []Problem
	Kept          int64 // bytes given to Keep
}

// CollectedConversation is a conversation with its records.
type CollectedConversation struct {
	Conversation
	Records []Record
}

// Became counts source records of one kind by what they became.
type Became struct{ What, Became string }

// Collect reads a whole file of a format into memory. A nil format is ErrInvalid.
func Collect(ctx context.Context, format *Format, f *File) (*Collected, error) {
	if f == nil {
		return nil, errMissing("read", "a file")
	}
	if err := format.check("read", f.Path, canRead); err != nil {
		return nil, err
	}
	c := &collector{result: Collected{Counts: make(map[Became]int)}}
	if err := format.Read(ctx, f, c); err != nil {
		return nil, err
	}
	c.flush()
	return &c.result, nil
}

type collector struct {
	result  Collected
	current *CollectedConversation
	order   order
}

func (c *collector) Begin(conv Conversation) error {
	c.flush()
	at := slices.IndexFunc(c.result.Conversations, func(have *CollectedConversation) bool { return have.ID == conv.ID })
	if at < 0 {
		c.current = &CollectedConversation{Conversation: conv}
		c.result.Conversations = append(c.result.Conversations, c.current)
		return nil
	}
	c.current = c.result.Conversations[at]
	c.current.Conversation = c.current.Conversation.with(conv)
	return nil
}

func (c *collector) Add(r Record) error {
	c.current.Records = append(c.current.Records, c.order.next(r)...)
	return nil
}

// flush takes the records that wait for a call that did not come.
func (c *collector) flush() {
	if c.current != nil {
		c.current.Records = append(c.current.Records, c.order.rest()...)
	}
}

func (c *collector) Keep(_ string, raw []byte) (Span, error) {
	span := Span{Pos: c.result.Kept, Len: int64(len(raw))}
	c.result.Kept += span.Len
	return span, nil
}

func (c *collector) Count(what, became string, n int) { c.result.Counts[Became{what, became}] += n }

func (c *collector) Problem(p Problem) { c.result.Problems = append(c.result.Problems, p) }

// with returns the conversation with more facts added.
func (c Conversation) with(more Conversation) Conversation {
	set(&c.Family, more.Family)
	set(&c.Title, more.Title)
	set(&c.CWD, more.CWD)
	set(&c.Parent, more.Parent)
	set(&c.Relation, more.Relation)
	set(&c.ParentCall, more.ParentCall)
	set(&c.Leaf, more.Leaf)
	if c.Created == (time.Time{}) {
		c.Created = more.Created
	}
	c.Continuation = max(c.Continuation, more.Continuation)
	if len(more.Tags) > 0 {
		c.Tags = more.Tags
	}
	if len(more.Extra) > 0 {
		c.Extra = more.Extra
	}
	return c
}

func set(into *string, value string) {
	if value != "" {
		*into = value
	}
}
