package home

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/session"
)

// Shell runs a command of the person in the directory of the chat, with all of their
// environment, and returns what it prints. It ends with ctx. With agent.WithProgress, it
// reports what is printed on the way. Unlike the other methods it may be called by any
// goroutine.
func (c *Chat) Shell(ctx context.Context, command string) (agent.Result, error) {
	const long = 24 * time.Hour
	own, err := tools.New(tools.Options{
		Dir: c.dir, Names: []string{tools.Bash}, Timeout: long, MaxTimeout: long,
		Env: append(os.Environ(), "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat"),
	})
	if err != nil {
		return agent.Result{}, err
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return agent.Result{}, err
	}
	return own[0].Run(ctx, agent.Call{Name: tools.Bash, Input: input})
}

// Told adds a command that the person ran and what it printed to the conversation: the model
// sees it with the next message. The session is created if there is none yet.
func (c *Chat) Told(ctx context.Context, command, output string) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	return retry(c.c.Session, func() error {
		_, err := c.c.AppendEntry(session.Message(session.RoleBashExecution, session.Text("$ "+command), session.Text(output)))
		return err
	})
}
