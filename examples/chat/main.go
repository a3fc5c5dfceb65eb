// Chat is a conversation with a gardener that can be left and taken up again: all
// of it is stored, and it does not matter when the program ends.
//
//	go run ./examples/chat -dir /tmp/garden
//
// Each line is a message. A line that begins with a slash is a command:
//
//	/list        the conversations, the most recent first
//	/new         begin another one
//	/load ID     go on with another one
//	/retry       ask again after the gardener failed to answer
//	/quit        stop; so does the end of the input
//
// The gardener lives in this program and needs no network. With -storm it never
// answers, which shows what /retry is for: run the program again without it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

func main() {
	dir := flag.String("dir", "", "the directory of the conversations; none keeps them in memory")
	storm := flag.Bool("storm", false, "let the gardener fail")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := chat(ctx, os.Stdin, os.Stdout, *dir, gardener(*storm)); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// chat talks until the input ends.
func chat(ctx context.Context, in io.Reader, out io.Writer, dir string, model provider.Model) (err error) {
	m, err := conversation.Open(dir, &conversation.ManagerOptions{
		Model: model, SystemPrompt: "You are a gardener. Answer in one sentence.",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err := resume(m, out); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for ctx.Err() == nil && lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "/quit" {
			break
		}
		if err := answer(ctx, m, out, line); err != nil {
			fmt.Fprintln(out, "!", err)
		}
	}
	return lines.Err()
}

// resume goes on with the latest conversation, if there is one.
func resume(m *conversation.Manager, out io.Writer) error {
	latest, err := m.ListConversations(1, 0)
	if err != nil || len(latest) == 0 {
		return err
	}
	return load(m, out, latest[0].ID)
}

func load(m *conversation.Manager, out io.Writer, id string) error {
	if err := m.LoadConversation(id); err != nil {
		return err
	}
	info, err := m.Sessions.Info(id)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Restored session with %d messages\n", info.MessageCount)
	last, err := m.Sessions.LoadMessages(id, max(1, info.MessageCount), 1)
	if err == nil && len(last) == 1 && last[0].Role == session.RoleUser {
		fmt.Fprintf(out, "Not answered yet: %s (/retry)\n", last[0].Text())
	}
	return err
}

// answer does what a line asks for.
func answer(ctx context.Context, m *conversation.Manager, out io.Writer, line string) error {
	command, argument, _ := strings.Cut(line, " ")
	switch command {
	case "":
		return nil
	case "/new":
		m.Reset()
		return nil
	case "/load":
		return load(m, out, argument)
	case "/list":
		list, err := m.ListConversations(0, 0)
		for _, c := range list {
			fmt.Fprintf(out, "%s  %s  %d messages\n", c.ID, c.LastActive.Local().Format("2006-01-02 15:04"), c.MessageCount)
		}
		return err
	case "/retry":
		text, err := m.Retry(ctx, "", nil)
		return say(out, text, err)
	}
	text, err := m.ProcessMessage(ctx, line, "")
	return say(out, text, err)
}

func say(out io.Writer, text string, err error) error {
	if err == nil {
		_, err = fmt.Fprintln(out, "gardener:", text)
	}
	return err
}
