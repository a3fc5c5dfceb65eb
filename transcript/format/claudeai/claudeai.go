// Package claudeai reads the data export of Claude.ai: a zip archive, or the
// conversations.json out of one.
package claudeai

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "claude-ai", Title: "Claude.ai export", Detect: detect, Read: read}
}

const conversations = "conversations.json"

func detect(f *transcript.File) bool {
	if !f.IsZip() {
		return shape.OfFile(f).Has("chat_messages", "[].chat_messages")
	}
	archive, err := f.Zip()
	if err != nil {
		return false
	}
	defer archive.Close()
	for _, name := range archive.Names() {
		if path.Base(name) == conversations {
			member, err := archive.File(name)
			return err == nil && detect(member)
		}
	}
	return false
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if !f.IsZip() {
		return readConversations(ctx, f, to)
	}
	archive, err := f.Zip()
	if err != nil {
		return err
	}
	return errors.Join(readArchive(ctx, archive, to), archive.Close())
}

func readArchive(ctx context.Context, archive *transcript.Archive, to transcript.Sink) error {
	for _, name := range archive.Names() {
		if path.Base(name) != conversations {
			to.Count("file "+path.Base(name), "left out", 1)
			continue
		}
		member, err := archive.File(name)
		if err == nil {
			err = readConversations(ctx, member, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readConversations(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	for doc, err := range f.Documents(ctx) {
		if err != nil {
			return err
		}
		v := loose.Value(doc.Data)
		if !v.Get("chat_messages").IsArray() || v.Get("uuid").Text() == "" {
			to.Problem(transcript.Problem{Pos: doc.Pos, Reason: "not a conversation: it has no uuid or no chat_messages"})
			continue
		}
		if err := readConversation(v, to); err != nil {
			return err
		}
	}
	return nil
}

func readConversation(v loose.Value, to transcript.Sink) error {
	c := transcript.Conversation{
		ID:      v.Get("uuid").Text(),
		Title:   v.Get("name").Text(),
		Created: v.Get("created_at").Time(time.UTC),
	}
	if summary := v.Get("summary").Text(); summary != "" {
		c.Extra = map[string]any{"summary": summary}
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
