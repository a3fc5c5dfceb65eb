package trajectory

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const tauBench = "tau-bench"

// TauBench returns the format of tau-bench: tasks with the messages of each
// trial.
func TauBench() *transcript.Format {
	return &transcript.Format{
		Name: tauBench, Title: "tau-bench",
		Detect: func(f *transcript.File) bool {
			s := shape.OfFile(f)
			return has(s, "task_id") && has(s, "traj", "reward")
		},
		Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
			return records.Each(ctx, f, to, func(rec records.Record) error {
				if !rec.Get("traj").IsArray() {
					return records.Bad(errors.New("it has no traj"))
				}
				native := "task " + rec.Get("task_id").Name() + " trial " + rec.Get("trial").Name()
				r, err := begin(to, tauBench, f, rec, native, "traj")
				if err != nil {
					return err
				}
				for m := range rec.Get("traj").Items() {
					if err := r.openai(m); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
