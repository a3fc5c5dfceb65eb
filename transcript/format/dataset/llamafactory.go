package dataset

import (
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const llamaFactory = "llama-factory"

// LlamaFactory returns the format of LLaMA-Factory's newer data: messages whose
// content is a list of types and values, also in pairs of a chosen and a rejected
// conversation.
func LlamaFactory() *transcript.Format {
	return simple(llamaFactory, "LLaMA-Factory", func(s *shape.Shape) bool {
		return has(s, "messages[].content[].value") || has(s, "chosen_messages[].role") && has(s, "rejected_messages")
	}, func(r *recordReader, rec records.Record) error {
		chosen := rec.Get("messages")
		if !chosen.IsArray() {
			chosen = rec.Get("chosen_messages")
		}
		if !chosen.IsArray() {
			return records.Bad(errors.New("it has no messages"))
		}
		b, err := r.begin(rec, rec.Get("id").Name(), transcript.Conversation{}, "messages", "chosen_messages", "rejected_messages")
		if err != nil {
			return err
		}
		return b.either(chosen, rec.Get("rejected_messages"), b.typed)
	})
}

// typed makes a message whose content is a list of types and values.
func (b *builder) typed(v loose.Value) *session.MessageEntry {
	m := &session.MessageEntry{Role: v.Get("role").Text(), Extra: besides(llamaFactory, v, "role", "content")}
	if content := v.Get("content"); content.IsString() {
		m.Content = text(content)
	}
	for part := range v.Get("content").Items() {
		m.Content = append(m.Content, b.typedPart(part, m.Role))
	}
	return m
}

func (b *builder) typedPart(part loose.Value, role string) session.Content {
	value := part.Get("value")
	if !value.Exists() {
		value = part.Get("text")
	}
	switch kind := part.Get("type").Text(); {
	case kind == "text" && role == session.RoleTool:
		return b.result(value.Text())
	case kind == "text":
		return session.Text(value.Text())
	case kind == "reasoning":
		return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: value.Text()}}
	case kind == "image_url":
		return image(value.Text())
	case kind == "tool_call":
		if call, err := loose.Parse([]byte(value.Text())); err == nil && call.Has("name") {
			return b.call(call)
		}
	}
	return session.Content{Type: session.ContentType(part.Get("type").Text()), Raw: records.OneLine(part)}
}

// either adds a conversation and another version of it, which leaves it where the
// two begin to differ.
func (b *builder) either(chosen, rejected loose.Value, decode func(v loose.Value) *session.MessageEntry) error {
	var places []string // the id before each message of the chosen one
	var said []string
	for v := range chosen.Items() {
		places, said = append(places, b.last), append(said, string(records.OneLine(v)))
		if err := b.add(decode(v)); err != nil {
			return err
		}
	}
	if !rejected.IsArray() {
		return nil
	}
	best, n, same := b.last, 0, true
	for v := range rejected.Items() {
		if same = same && n < len(said) && said[n] == string(records.OneLine(v)); same {
			n++
			continue
		}
		if n < len(places) {
			b.last = places[n]
			n = len(places) // left once
		}
		if err := b.add(decode(v)); err != nil {
			return err
		}
	}
	return b.stand(best)
}
