// Package claudeai reads the data export of Claude.ai: a zip archive, or the
// conversations.json out of one.
package claudeai

import (
	"context"
	"path"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "claude-ai", Title: "Claude.ai export", Detect: detect, Read: read}
}

func isConversations(name string) bool { return path.Base(name) == "conversations.json" }

func detect(f *transcript.File) bool {
	return records.Holds(f, isConversations, func(f *transcript.File) bool {
		return shape.OfFile(f).Has("chat_messages", "[].chat_messages")
	})
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return records.EachMember(f, func(m records.Member) error {
		if m.Archive != nil && !isConversations(m.Name) {
			to.Count("file "+path.Base(m.Name), "left out", 1)
			return nil
		}
		return walk.Each(m.Documents(ctx), func(doc transcript.Document) error {
			v := loose.Value(doc.Data)
			if !v.Get("chat_messages").IsArray() || v.Get("uuid").Text() == "" {
				to.Problem(transcript.Problem{Pos: doc.Pos, Reason: "not a conversation: it has no uuid or no chat_messages"})
				return nil
			}
			return readConversation(v, to)
		})
	})
}

func readConversation(v loose.Value, to transcript.Sink) error {
	c := transcript.Conversation{
		ID:      v.Get("uuid").Text(),
		Title:   v.Get("name").Text(),
		Created: v.Get("created_at").Time(time.UTC),
	}
	if v.Get("summary").Text() != "" {
		c.Extra = v.Pick("summary")
	}
	if project := v.Get("project", "uuid").Text(); project != "" {
		c.Tags = append(c.Tags, "project:"+project)
	}
	if err := to.Begin(c); err != nil {
		return err
	}
	span, err := to.Keep("conversation "+c.ID, v)
	if err != nil {
		return err
	}
	r := reader{to: to, span: span, last: make(map[string]string)}
	for m := range v.Get("chat_messages").Items() {
		if err := r.message(m); err != nil {
			return err
		}
	}
	return nil
}
