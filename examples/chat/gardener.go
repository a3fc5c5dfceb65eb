package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
)

// gardener is a model that knows little but remembers what it was asked. A real
// one would send Request.Encode to its provider.
type gardener struct{ storm bool }

var errStorm = errors.New("the gardener is indoors: there is a storm")

// Respond answers the last message by what it is sent of the conversation.
func (g gardener) Respond(_ context.Context, r conversation.Request) (conversation.Reply, error) {
	if g.storm {
		return conversation.Reply{}, errStorm
	}
	var asked []string
	for _, m := range r.Messages() {
		if m.Role == session.RoleUser {
			asked = append(asked, m.Text())
		}
	}
	text := advice(asked[len(asked)-1])
	if n := len(asked); n > 1 {
		text += fmt.Sprintf(" (You asked %d questions; the first was: %s)", n, asked[0])
	}
	return conversation.Reply{
		Content: []session.Content{session.Text(text)}, Provider: "garden", Model: "gardener-1", StopReason: "end_turn",
	}, nil
}

// Capabilities says how much the gardener can keep in mind.
func (g gardener) Capabilities() conversation.Capabilities {
	return conversation.Capabilities{Provider: "garden", Model: "gardener-1", ContextWindow: 8000, MaxReply: 200}
}

func advice(question string) string {
	for _, known := range []struct{ about, say string }{
		{"hazel", "Cut hazel to the ground in winter, every seven years."},
		{"willow", "Willow can be cut every year."},
		{"when", "When the leaves are down."},
	} {
		if strings.Contains(strings.ToLower(question), known.about) {
			return known.say
		}
	}
	return "Ask me about hazel or willow."
}
