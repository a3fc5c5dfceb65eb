package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/session"
)

// What the loop has of its own: a model that reads and writes plain text, and a tool.
type (
	model func(context.Context, *session.Context) (session.MessageEntry, error)
	tool  func(agent.Call) agent.Result
)

const system = "Answer in one line. To note something, answer NOTE and the text, and nothing else: you are told when it is noted."

// work runs the loop in the last session of a directory, or a new one.
func work(ctx context.Context, dir, question string, ask model, run tool) error {
	s, err := session.ContinueRecent(dir)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.New(dir, "")
	}
	if err != nil {
		return err
	}
	k, err := agent.NewKeeper(s, agent.KeeperOptions{System: system})
	if err == nil {
		err = loop(ctx, k, question, ask, run)
	}
	return errors.Join(err, s.Close())
}

// ollama asks a model of Ollama on this machine.
func ollama(ctx context.Context, c *session.Context) (session.MessageEntry, error) {
	body, err := json.Marshal(map[string]any{"model": "llama3.2", "prompt": prompt(c), "stream": false})
	if err != nil {
		return session.MessageEntry{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost:11434/api/generate", bytes.NewReader(body))
	if err != nil {
		return session.MessageEntry{}, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return session.MessageEntry{}, err
	}
	defer response.Body.Close()
	var answer struct{ Response string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return session.MessageEntry{}, err
	}
	fmt.Println(answer.Response)
	return answerOf(answer.Response), nil
}

// prompt writes a conversation as text.
func prompt(c *session.Context) string {
	var b strings.Builder
	for i := range c.Entries {
		if m := c.Entries[i].Message; m != nil {
			fmt.Fprintf(&b, "%s: %s\n", m.Role, textOf(m.Content))
		}
	}
	return b.String() + "assistant: "
}

func textOf(blocks []session.Content) string {
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.ToolUse != nil:
			return fmt.Sprint("NOTE ", b.ToolUse.Input["text"])
		case b.ToolResult != nil:
			return b.ToolResult.Content
		}
	}
	return session.TextOf(blocks)
}

// answerOf reads an answer: a text, or a call.
func answerOf(text string) session.MessageEntry {
	content := session.Text(text)
	if noted, ok := strings.CutPrefix(strings.TrimSpace(text), "NOTE "); ok {
		content = session.ToolUse(session.NewID(), "note", map[string]any{"text": noted})
	}
	return session.MessageEntry{Content: []session.Content{content}}
}

// noter returns a tool that adds a line to a file.
func noter(name string) tool {
	return func(call agent.Call) agent.Result {
		if err := appendLine(name, textIn(call)); err != nil {
			return agent.Result{Text: err.Error(), IsError: true}
		}
		return agent.Result{Text: "noted"}
	}
}

func textIn(call agent.Call) string {
	var in struct{ Text string }
	_ = json.Unmarshal(call.Input, &in) // answerOf wrote it
	return in.Text
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}
