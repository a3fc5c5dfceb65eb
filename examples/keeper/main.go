// Keeper is a loop of its own, over a model that this module does not know: see model.go. An
// agent.Keeper keeps what it does. Kill it at any moment and start it without a question:
// it goes on where it was, and notes nothing twice.
//
//	go run ./examples/keeper "Note three trees, then say which one is the tallest."
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/session"
)

func main() {
	if err := work(context.Background(), "sessions", strings.Join(os.Args[1:], " "), ollama, noter("notes.txt")); err != nil {
		log.Fatal(err)
	}
}

// loop answers a question, or goes on with the last one if there is none.
func loop(ctx context.Context, k *agent.Keeper, question string, ask model, run tool) (err error) {
	if ctx, err = k.Begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.End()) }()
	calls, open, err := k.Restore()
	if question != "" && err == nil {
		calls, open, err = nil, true, k.Prompt(session.Text(question))
	}
	for open && err == nil {
		for _, call := range calls {
			if err := k.ToolStart(call.ID); err != nil {
				return err
			}
			if err := k.ToolEnd(call.ID, run(call.Call)); err != nil {
				return err
			}
		}
		c, err := k.Context()
		if err != nil {
			return err
		}
		answer, err := ask(ctx, c)
		if err != nil {
			return errors.Join(err, k.Failed(nil, err, false))
		}
		if calls, open, err = k.Answer(answer); err != nil {
			return err
		}
	}
	return err
}
