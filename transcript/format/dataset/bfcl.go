package dataset

import (
	"errors"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// BFCL returns the format of the Berkeley Function-Calling Leaderboard: questions
// that are lists of turns, each a list of messages.
func BFCL() *transcript.Format {
	return simple("bfcl", "Berkeley Function-Calling Leaderboard", func(s *shape.Shape) bool {
		return has(s, "question[][].role")
	}, func(r *recordReader, rec records.Record) error {
		if !rec.Get("question").First().IsArray() {
			return records.Bad(errors.New("its question is not a list of turns"))
		}
		b, err := r.begin(rec, rec.Get("id").Name(), transcript.Conversation{}, "question")
		if err != nil {
			return err
		}
		for turn := range rec.Get("question").Items() {
			for m := range turn.Items() {
				if err := b.add(b.openai(m)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
