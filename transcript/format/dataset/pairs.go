package dataset

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const llamaFactory = "llama-factory"

// readAlpaca reads an instruction, its input and the output. LLaMA-Factory's variants have
// a system prompt, earlier turns, and pairs of a chosen and a rejected output as well.
func readAlpaca(r *reader, rec records.Record) error {
	if !rec.Get("instruction").IsString() {
		return bad("it has no instruction")
	}
	b := r.begin(rec, rec.Get("id").Name())
	b.addTexts(turn{session.RoleSystem, rec.Get("system").Text()})
	for pair := range rec.Get("history").Items() {
		for i, said := range list(pair) {
			if i < 2 {
				b.addText([]string{session.RoleUser, session.RoleAssistant}[i], said.Text())
			}
		}
	}
	prompt := rec.Get("instruction").Text()
	if input := rec.Get("input").Text(); input != "" {
		prompt += "\n" + input
	}
	b.addText(session.RoleUser, prompt)
	chosen := rec.Get("output").Text()
	if chosen == "" {
		chosen = rec.Get("chosen").Text()
	}
	return b.answers(chosen, rec.Get("rejected").Text())
}

// answers adds a good answer and, as a branch, a bad one.
func (b *builder) answers(chosen, rejected string) error {
	fork := b.last
	b.addText(session.RoleAssistant, chosen)
	if rejected == "" {
		return b.err
	}
	best := b.last
	b.last = fork
	b.addText(session.RoleAssistant, rejected)
	return b.setLeaf(best)
}

// readPreference reads a pair of conversations, one of which was preferred: those of
// hh-rlhf, which are text, and those that are messages.
func readPreference(r *reader, rec records.Record) error {
	chosen, rejected := rec.Get("chosen"), rec.Get("rejected")
	b := r.begin(rec, rec.Get("prompt_id").Name())
	for v := range rec.Get("messages").Items() {
		b.add(b.openai(v))
	}
	switch {
	case chosen.IsArray():
		return b.either(list(chosen), rejected, b.openai)
	case chosen.IsObject():
		return b.either([]loose.Value{chosen}, loose.Value("["+string(rejected)+"]"), b.openai)
	case strings.HasPrefix(chosen.Text(), humanMark):
		return b.dialogues(dialogue(chosen.Text()), dialogue(rejected.Text()))
	case chosen.IsString():
		b.addTexts(turn{session.RoleUser, rec.Get("prompt").Text()})
		return b.answers(chosen.Text(), rejected.Text())
	case b.err != nil:
		return b.err
	}
	return bad("chosen is neither text nor messages")
}

// The marks before each turn of hh-rlhf.
const (
	humanMark     = "\n\nHuman: "
	assistantMark = "\n\nAssistant: "
)

// dialogues adds two dialogues with the same beginning.
func (b *builder) dialogues(good, bad []turn) error {
	shared := 0
	for shared < len(good) && shared < len(bad) && good[shared] == bad[shared] {
		shared++
	}
	b.addTexts(good[:shared]...)
	fork := b.last
	b.addTexts(good[shared:]...)
	best := b.last
	b.last = fork
	b.addTexts(bad[shared:]...)
	return b.setLeaf(best)
}

// dialogue cuts a dialogue that is text into turns.
func dialogue(s string) []turn {
	var turns []turn
	role := session.RoleUser
	for s != "" {
		human, assistant := strings.Index(s, humanMark), strings.Index(s, assistantMark)
		next, length, speaks := human, len(humanMark), session.RoleUser
		if human < 0 || assistant >= 0 && assistant < human {
			next, length, speaks = assistant, len(assistantMark), session.RoleAssistant
		}
		if next < 0 {
			return append(turns, turn{role, s})
		}
		if next > 0 {
			turns = append(turns, turn{role, s[:next]})
		}
		role, s = speaks, s[next+length:]
	}
	return turns
}

// either adds a conversation and another version of it, which branches off where the two
// begin to differ.
func (b *builder) either(chosen []loose.Value, rejected loose.Value, decode func(v loose.Value) *session.MessageEntry) error {
	places := []string{b.last} // before each message of the chosen one, and at its end
	for _, v := range chosen {
		b.add(decode(v))
		places = append(places, b.last)
	}
	if !rejected.IsArray() {
		return b.err
	}
	best, others, same := b.last, list(rejected), 0
	for same < min(len(chosen), len(others)) && string(records.OneLine(chosen[same])) == string(records.OneLine(others[same])) {
		same++
	}
	b.last = places[same]
	for _, v := range others[same:] {
		b.add(decode(v))
	}
	return b.setLeaf(best)
}

// readLlamaFactory reads messages whose content is a list of types and values, also in
// pairs of a chosen and a rejected conversation.
func readLlamaFactory(r *reader, rec records.Record) error {
	chosen := rec.Get("messages")
	if !chosen.IsArray() {
		chosen = rec.Get("chosen_messages")
	}
	if !chosen.IsArray() {
		return bad("it has no messages")
	}
	b := r.begin(rec, rec.Get("id").Name())
	return b.either(list(chosen), rec.Get("rejected_messages"), b.typed)
}

// typed reads a message whose content is a list of types and values.
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
		return session.Thinking(value.Text(), "")
	case kind == "image_url":
		return image(value.Text())
	case kind == "tool_call":
		if call := loose.Try([]byte(value.Text())); call.Has("name") {
			return b.call(call)
		}
	}
	return session.Content{Type: session.ContentType(part.Get("type").Text()), Raw: records.OneLine(part)}
}
