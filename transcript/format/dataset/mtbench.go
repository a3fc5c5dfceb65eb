package dataset

import (
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// MTBench returns the format of MT-bench: questions in turns, and the answers of
// models to them. The answers find the questions beside them, in question.jsonl.
func MTBench() *transcript.Format {
	return simple("mt-bench", "MT-bench", func(s *shape.Shape) bool {
		return has(s, "question_id") && (has(s, "turns[]") || has(s, "choices[].turns[]"))
	}, readMTBench)
}

func readMTBench(r *recordReader, rec records.Record) error {
	native, model := rec.Get("question_id").Name(), rec.Get("model_id").Text()
	questions := rec.Get("turns")
	if !questions.IsArray() {
		questions = r.question(native)
		native += " " + model
	}
	b, err := r.begin(rec, native, transcript.Conversation{Created: rec.Get("tstamp").Time(time.UTC)}, "turns", "choices")
	if err != nil {
		return err
	}
	if rec.Get("choices").First() == nil {
		return b.interview(questions, nil, "")
	}
	best := ""
	for choice := range rec.Get("choices").Items() {
		b.last = transcript.Root
		if err := b.interview(questions, choice.Get("turns"), model); err != nil {
			return err
		}
		if best == "" {
			best = b.last
		}
	}
	return b.stand(best)
}

// interview adds questions and the answers to them. Answers whose questions are
// not at hand stand alone.
func (b *builder) interview(questions, answers loose.Value, model string) error {
	asked, said := list(questions), list(answers)
	for i := range max(len(asked), len(said)) {
		if i < len(asked) {
			if err := b.say(session.RoleUser, asked[i].Text()); err != nil {
				return err
			}
		}
		if i < len(said) {
			if err := b.add(&session.MessageEntry{Role: session.RoleAssistant, Content: text(said[i]), Model: model}); err != nil {
				return err
			}
		}
	}
	return nil
}

func list(v loose.Value) []loose.Value {
	var items []loose.Value
	for item := range v.Items() {
		items = append(items, item)
	}
	return items
}

// question returns the turns of a question in the file beside the answers.
func (r *recordReader) question(id string) loose.Value {
	if r.questions == nil {
		r.questions = make(map[string]loose.Value)
		data, _ := r.file.Beside("question.jsonl") // without it, the answers stand alone
		for line := range strings.Lines(string(data)) {
			if v, err := loose.Parse([]byte(line)); err == nil {
				r.questions[v.Get("question_id").Name()] = v.Get("turns")
			}
		}
	}
	return r.questions[id]
}
