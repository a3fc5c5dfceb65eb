package dataset

import (
	"errors"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Chats returns the format of LMSYS-Chat-1M and WildChat: what people asked
// public chats, with the model and facts about each conversation.
func Chats() *transcript.Format {
	return simple("lmsys", "LMSYS-Chat and WildChat", func(s *shape.Shape) bool {
		return has(s, "conversation[].role") && has(s, "conversation[].content")
	}, func(r *recordReader, rec records.Record) error {
		turns := rec.Get("conversation")
		if !turns.IsArray() {
			return records.Bad(errors.New("it has no conversation"))
		}
		native := rec.Get("conversation_id").Name()
		if native == "" {
			native = rec.Get("conversation_hash").Name()
		}
		c := transcript.Conversation{Created: rec.Get("timestamp").Time(time.UTC)}
		b, err := r.begin(rec, native, c, "conversation")
		if err != nil {
			return err
		}
		model := rec.Get("model").Text()
		for v := range turns.Items() {
			m := b.openai(v)
			if m.Role == session.RoleAssistant {
				m.Model = model
			}
			if err := b.addAt(m, v.Get("timestamp").Time(time.UTC)); err != nil {
				return err
			}
		}
		return nil
	})
}

// openai makes a message that is shaped as OpenAI's are.
func (b *builder) openai(v loose.Value) *session.MessageEntry {
	e, err := b.chat.Message(v)
	if err != nil {
		return &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(string(v))}}
	}
	return e.Message
}

// Preference returns the format of pairs of conversations of which one was
// preferred: those of hh-rlhf, which are text, and those that are messages.
func Preference() *transcript.Format {
	return simple("preference", "preference pairs (hh-rlhf, DPO)", func(s *shape.Shape) bool {
		return has(s, "chosen") && has(s, "rejected") && !has(s, "conversations") && !has(s, "instruction")
	}, readPreference)
}

func readPreference(r *recordReader, rec records.Record) error {
	chosen, rejected := rec.Get("chosen"), rec.Get("rejected")
	b, err := r.begin(rec, rec.Get("prompt_id").Name(), transcript.Conversation{}, "chosen", "rejected", "prompt", "messages")
	if err != nil {
		return err
	}
	for v := range rec.Get("messages").Items() {
		if err := b.add(b.openai(v)); err != nil {
			return err
		}
	}
	switch {
	case chosen.IsArray():
		return b.either(chosen, rejected, b.openai)
	case chosen.IsObject():
		return b.either(listOf(chosen), listOf(rejected), b.openai)
	case strings.HasPrefix(chosen.Text(), humanMark):
		return b.dialogues(chosen.Text(), rejected.Text())
	case chosen.IsString():
		if err := b.sayAll(turn{session.RoleUser, rec.Get("prompt").Text()}); err != nil {
			return err
		}
		return b.answers(chosen.Text(), rejected.Text())
	}
	return records.Bad(errors.New("chosen is neither text nor messages"))
}

func listOf(v loose.Value) loose.Value {
	return loose.Value("[" + string(v) + "]")
}

// The marks before each turn of hh-rlhf.
const (
	humanMark     = "\n\nHuman: "
	assistantMark = "\n\nAssistant: "
)

// dialogues adds two dialogues that are text and begin in the same way.
func (b *builder) dialogues(chosen, rejected string) error {
	good, bad := dialogue(chosen), dialogue(rejected)
	shared := 0
	for shared < len(good) && shared < len(bad) && good[shared] == bad[shared] {
		shared++
	}
	if err := b.sayAll(good[:shared]...); err != nil {
		return err
	}
	fork := b.last
	if err := b.sayAll(good[shared:]...); err != nil {
		return err
	}
	best := b.last
	b.last = fork
	if err := b.sayAll(bad[shared:]...); err != nil {
		return err
	}
	return b.stand(best)
}

// dialogue cuts a dialogue into turns.
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

// UltraChat returns the format of UltraChat: what was said, in turns.
func UltraChat() *transcript.Format {
	return simple("ultrachat", "UltraChat", func(s *shape.Shape) bool {
		return has(s, "data[]") && has(s, "id") && !has(s, "object") && !s.Has("type", "timestamp", "data[].id", "data[].type")
	}, func(r *recordReader, rec records.Record) error {
		if !rec.Get("data").First().IsString() {
			return records.Bad(errors.New("its data is not a list of texts"))
		}
		b, err := r.begin(rec, rec.Get("id").Name(), transcript.Conversation{}, "data")
		if err != nil {
			return err
		}
		role := session.RoleUser
		for said := range rec.Get("data").Items() {
			if err := b.say(role, said.Text()); err != nil {
				return err
			}
			if role = session.RoleAssistant; b.n%2 == 0 {
				role = session.RoleUser
			}
		}
		return nil
	})
}
