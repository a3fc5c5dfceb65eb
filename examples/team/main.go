// Team is a lead with two helpers: a researcher, which may only read, and a writer, which may
// change files. Each works in a session of its own, linked to the lead's. Stop it at any
// moment, even with kill -9: the next start goes on where each of them was.
//
//	ANTHROPIC_API_KEY=… go run ./examples/team -dir ~/project "Write a README for this project."
package main

import (
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
	keep := flag.String("sessions", os.TempDir()+"/team", "where sessions are kept")
	flag.Parse()
	key := client.StaticKey(os.Getenv("ANTHROPIC_API_KEY"))
	model, err := client.New(client.Options{Provider: "anthropic", Model: "claude-sonnet-4-5", Key: key})
	if err == nil {
		err = lead(context.Background(), model, *dir, *keep, strings.Join(flag.Args(), " "), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// helper returns a tool that hands work to an agent with some of the built-in tools.
func helper(name, description, system string, o tools.Options, has ...string) (agent.Tool, error) {
	o.Names = has
	list, err := tools.New(o)
	if err != nil {
		return agent.Tool{}, err
	}
	tool, err := agent.TaskTool(agent.TaskOptions{System: system, Tools: list})
	tool.Name, tool.Description = name, description
	return tool, err
}

// lead continues what was left unfinished, and then does what a person asks for.
func lead(ctx context.Context, model provider.Model, dir, keep, prompt string, out io.Writer) (err error) {
	rules, e0 := tools.NewRules(dir, []string{"write", "edit"}, nil) // so nobody is asked
	o := tools.Options{Dir: dir, Rules: rules}
	research, e1 := helper("research", "Find something out in the files.", "Look, and report what you find.", o, "read", "grep", "glob", "ls")
	write, e2 := helper("write_up", "Write or change files.", "Write what you are asked to.", o, "read", "write", "edit")
	s, err := session.ContinueRecent(keep)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.New(keep, "")
	}
	if err := errors.Join(e0, e1, e2, err); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	a, err := agent.New(s, agent.Options{Model: model, Tools: []agent.Tool{research, write}, System: "Plan, and let your helpers do the work."})
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
