package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/keyed"
)

// model is what the bot asks. A real one sends the messages to a provider.
type model interface {
	// reply returns what the model says next: an answer, or calls of tools.
	reply(context []keyed.Message) keyed.Message
	// summarize returns a summary of messages that will no longer be sent, and of
	// the summary before them.
	summarize(summary string, old []keyed.Message) (string, error)
}

// parrot is a model that repeats what it hears, and adds numbers with a tool.
type parrot struct{}

func (parrot) reply(context []keyed.Message) keyed.Message {
	last := context[len(context)-1]
	if last.Role == "tool" {
		return keyed.Message{Role: "assistant", Content: "The sum is " + last.Content + "."}
	}
	numbers, ok := strings.CutPrefix(last.Content, "add ")
	if !ok {
		return keyed.Message{Role: "assistant", Content: "You said: " + last.Content}
	}
	return keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{
		ID: fmt.Sprintf("call_%d", len(context)), Name: "add", Arguments: map[string]any{"numbers": numbers},
	}}}
}

func (parrot) summarize(summary string, old []keyed.Message) (string, error) {
	said := 0
	if _, err := fmt.Sscanf(summary, "The user said %d things.", &said); err != nil {
		said = 0 // there was none before
	}
	for _, m := range old {
		if m.Role == "user" {
			said++
		}
	}
	return fmt.Sprintf("The user said %d things.", said), nil
}

// use runs a tool and returns its result.
func use(call keyed.ToolCall) string {
	text, _ := call.Arguments["numbers"].(string)
	sum := 0
	for _, word := range strings.Fields(text) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Sprintf("not a number: %q", word)
		}
		sum += n
	}
	return strconv.Itoa(sum)
}
