// Reviewer reads a change and proposes what to post about it. Nothing is posted before a
// person agrees, perhaps tomorrow in another process: proposals wait in the session.
//
//	go run ./examples/reviewer "$(git diff)"
//	go run ./examples/reviewer CALL yes
//	go run ./examples/reviewer CALL "no, this is on purpose"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/session"
)

type comment struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text" jsonschema:"what the author should know"`
}

func main() {
	key := client.StaticKey(os.Getenv("ANTHROPIC_API_KEY"))
	model, err := client.New(client.Options{Provider: "anthropic", Model: "claude-sonnet-4-5", Key: key})
	if err == nil {
		err = review(context.Background(), model, os.TempDir()+"/reviewer", os.Args[1:], os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func review(ctx context.Context, model provider.Model, keep string, args []string, out io.Writer) (err error) {
	post, err := agent.NewTool("post", "Post a comment about a line of the change.",
		func(_ context.Context, _ agent.Call, c comment) (agent.Result, error) {
			_, err := fmt.Fprintf(out, "posted %s:%d: %s\n", c.File, c.Line, c.Text)
			return agent.Result{Text: "posted"}, err
		})
	if err != nil {
		return err
	}
	post.Ask = agent.AskAlways
	s, err := session.ContinueRecent(keep)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.New(keep, "")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	a, err := agent.New(s, agent.Options{Model: model, Tools: []agent.Tool{post}, System: "Review the change. Post what matters."})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(a.Close(), err) }()
	if len(args) == 2 {
		answer := agent.Deny.Because(args[1])
		if args[1] == "yes" {
			answer = agent.Allow
		}
		if err = a.Decide(args[0], answer); err == nil {
			_, err = a.Resume(ctx) // the model goes on when all its calls are decided
		}
	} else {
		_, err = a.Send(ctx, session.Text(strings.Join(args, "\n")))
	}
	waiting, failed := a.Pending()
	for _, call := range waiting {
		fmt.Fprintln(out, call.ID, string(call.Input))
	}
	return errors.Join(err, failed)
}
