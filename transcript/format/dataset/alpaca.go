package dataset

import (
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Alpaca returns the format of Alpaca: an instruction, its input and the output;
// in LLaMA-Factory's variants also with a system prompt, earlier turns, and pairs
// of a chosen and a rejected output.
func Alpaca() *transcript.Format {
	return simple("alpaca", "Alpaca", func(s *shape.Shape) bool {
		return has(s, "instruction") && (has(s, "output") || has(s, "chosen")) && !s.Has("trajectory", "history[].source", "metrics")
	}, readAlpaca)
}

func readAlpaca(r *recordReader, rec records.Record) error {
	if !rec.Get("instruction").IsString() {
		return records.Bad(errors.New("it has no instruction"))
	}
	b, err := r.begin(rec, rec.Get("id").Name(), transcript.Conversation{},
		"instruction", "input", "output", "system", "history", "chosen", "rejected")
	if err != nil {
		return err
	}
	if err := b.sayAll(turn{session.RoleSystem, rec.Get("system").Text()}); err != nil {
		return err
	}
	for pair := range rec.Get("history").Items() {
		for n, said := range []session.MessageRole{session.RoleUser, session.RoleAssistant} {
			at := 0
			for text := range pair.Items() {
				if at == n {
					if err := b.say(said, text.Text()); err != nil {
						return err
					}
				}
				at++
			}
		}
	}
	prompt := rec.Get("instruction").Text()
	if input := rec.Get("input").Text(); input != "" {
		prompt += "\n" + input
	}
	if err := b.say(session.RoleUser, prompt); err != nil {
		return err
	}
	chosen := rec.Get("output").Text()
	if chosen == "" {
		chosen = rec.Get("chosen").Text()
	}
	return b.answers(chosen, rec.Get("rejected").Text())
}

// answers adds a good answer and, as a branch, a bad one.
func (b *builder) answers(chosen, rejected string) error {
	fork := b.last
	if err := b.say(session.RoleAssistant, chosen); err != nil || rejected == "" {
		return err
	}
	best := b.last
	b.last = fork
	if err := b.say(session.RoleAssistant, rejected); err != nil {
		return err
	}
	return b.stand(best)
}
