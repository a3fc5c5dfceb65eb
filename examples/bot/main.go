// Bot answers in many chats and remembers each of them, also when it is killed and started
// again. It reads messages from standard input, one a line,
//
//	telegram-123456<TAB>call add {"A":2,"B":3}
//
// and writes its answers to standard output in the same form, each when it is on the disk.
// A built-in model stands in for a real one: see provider/client for those.
//
//	go run ./examples/bot
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

func main() {
	if err := run(context.Background(), os.TempDir()+"/bot", os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run answers what it reads until there is no more.
func run(ctx context.Context, dir string, in io.Reader, out io.Writer) (err error) {
	st, err := file.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		chat, text, _ := strings.Cut(lines.Text(), "\t")
		answer, err := hear(ctx, st, chat, text)
		if err != nil {
			answer = "Sorry: " + err.Error()
		}
		fmt.Fprintf(out, "%s\t%s\n", chat, answer)
	}
	return lines.Err()
}

// hear answers a message. A call that a kill interrupted is never made twice.
func hear(ctx context.Context, st store.Store, chat, text string) (_ string, err error) {
	s, err := session.Open(ctx, st, chat, nil)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.Create(ctx, st, session.Header{ID: chat}, nil)
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	add, err := agent.NewTool("add", "Add two numbers.", func(_ context.Context, _ agent.Call, n struct{ A, B int }) (agent.Result, error) {
		return agent.Result{Text: fmt.Sprint(n.A + n.B)}, nil
	})
	if err != nil {
		return "", err
	}
	a, err := agent.New(s, agent.Options{Model: &offline.Model{}, System: "You are a parrot that can count.", Tools: []agent.Tool{add}})
	if err != nil {
		return "", err
	}
	defer a.Close()
	done, err := a.Send(ctx, session.Text(text))
	if err != nil || done.Message == nil {
		return "", err
	}
	return session.TextOf(done.Message.Content), nil
}
