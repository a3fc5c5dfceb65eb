// Bot is a chat bot that remembers what was said in each chat, also when it is
// killed and started again. It reads messages from standard input, one a line,
//
//	telegram:123456<TAB>add 2 3
//
// and writes its answers to standard output in the same form, each when it is on
// the disk. A model and its tools stand in for real ones, so that it runs without a
// network. "/forget" deletes a chat, "/rename KEY" gives it another key, "/history"
// says how much of it the model sees.
//
//	go run ./examples/bot -dir /tmp/bot
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/keyed"
)

func main() {
	dir := flag.String("dir", "", "the directory of the sessions; empty keeps them in memory")
	flag.Parse()
	if err := run(*dir, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run answers what it reads until there is no more.
func run(dir string, in io.Reader, out io.Writer) (err error) {
	b := &bot{sessions: keyed.NewSessionManager(dir), model: parrot{}}
	stop := b.sessions.SaveEvery(0, func(key string, err error) { log.Printf("save %s: %v", key, err) })
	defer func() {
		stop()
		err = errors.Join(err, b.sessions.Close())
	}()
	for lines := bufio.NewScanner(in); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		key, text, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			log.Printf("not a chat, a tab and a message: %q", lines.Text())
			continue
		}
		answer, err := b.hear(key, text)
		if err != nil {
			answer = "Sorry: " + err.Error()
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\n", key, answer); err != nil {
			return err
		}
	}
}

// bot answers the messages of many chats.
type bot struct {
	sessions *keyed.SessionManager
	model    model
}

// hear answers a message. What it returns is on the disk.
func (b *bot) hear(key, text string) (string, error) {
	command, argument, _ := strings.Cut(text, " ")
	switch command {
	case "/forget":
		return "Forgotten.", b.sessions.Delete(key)
	case "/rename":
		return "This is " + argument + " now.", b.sessions.Rename(key, argument)
	case "/history":
		return fmt.Sprintf("%d messages, summary: %q", len(b.sessions.GetHistory(key)), b.sessions.GetSummary(key)), nil
	}
	answer, err := b.turn(key, text)
	if err != nil {
		return "", err
	}
	return answer, b.tidy(key)
}

// maxSteps ends a turn in which the model calls tools for ever.
const maxSteps = 10

// turn lets the model answer, and call tools before that as often as it likes.
// Every step is recorded before the next begins. So if the bot is killed in
// between, the chat goes on from there: a call without a result is shown to the
// model as interrupted.
func (b *bot) turn(key, text string) (string, error) {
	if err := b.sessions.Add(key, keyed.Message{Role: "user", Content: text}); err != nil {
		return "", err
	}
	for range maxSteps {
		context, err := b.sessions.BuildContext(key, "You are a parrot that can count.", "")
		if err != nil {
			return "", err
		}
		reply := b.model.reply(context[:len(context)-1]) // what the user says is in the history
		if err := b.sessions.Add(key, reply); err != nil {
			return "", err
		}
		if len(reply.ToolCalls) == 0 {
			return reply.Content, nil
		}
		for _, call := range reply.ToolCalls {
			result := keyed.Message{Role: "tool", ToolCallID: call.ID, Content: use(call)}
			if err := b.sessions.Add(key, result); err != nil {
				return "", err
			}
		}
	}
	return "", fmt.Errorf("no answer after %d steps", maxSteps)
}

// tidy keeps the history short, and makes sure that it is on the disk.
func (b *bot) tidy(key string) error {
	cut, err := b.sessions.Summarize(key, b.model.summarize)
	if err != nil {
		return err
	}
	if cut.Dropped > 0 {
		log.Printf("%s: %d messages summarised, %d kept", key, cut.Dropped, cut.Kept)
	}
	return b.sessions.Save(key)
}
