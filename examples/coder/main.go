// Coder works on the files of a directory: it reads, searches, edits and runs commands,
// and asks before it changes anything. Stop it at any moment, even with kill -9: the next
// start goes on where it was.
//
//	ANTHROPIC_API_KEY=… go run ./examples/coder -dir ~/project "Why does the test fail?"
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/session"
)

func main() {
	dir := flag.String("dir", ".", "the directory to work in")
	keep := flag.String("sessions", os.TempDir()+"/coder", "where sessions are kept")
	flag.Parse()
	model, err := client.New(client.Options{
		Provider: "anthropic", Model: "claude-sonnet-4-5", Key: client.StaticKey(os.Getenv("ANTHROPIC_API_KEY")),
	})
	if err == nil {
		err = code(context.Background(), model, *dir, *keep, strings.Join(flag.Args(), " "), os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// code continues what was left unfinished, and then does what a person asks for.
func code(ctx context.Context, model provider.Model, dir, keep, prompt string, in io.Reader, out io.Writer) (err error) {
	list, err := tools.New(tools.Options{Dir: dir})
	if err != nil {
		return err
	}
	s, err := session.ContinueRecent(keep)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.New(keep, "")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	answers := bufio.NewScanner(in)
	a, err := agent.New(s, agent.Options{
		Model: model, Tools: list, System: "You help with the code in the current directory. Be brief.",
		Approve: func(_ context.Context, call agent.Call) (agent.Decision, error) {
			fmt.Fprintf(out, "%s %s\nrun it? [y/n] ", call.Name, call.Input)
			if answers.Scan() && answers.Text() == "y" {
				return agent.Allow, nil
			}
			return agent.Deny, nil
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(a.Close(), err) }()
	done, err := a.Resume(ctx)
	if err == nil && prompt != "" {
		done, err = a.Send(ctx, session.Text(prompt))
	}
	if err == nil && done.Message != nil {
		fmt.Fprintln(out, session.TextOf(done.Message.Content))
	}
	return err
}
