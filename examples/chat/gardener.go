package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// gardener is a model that knows little but remembers what it was asked. A real one
// comes from package client.
func gardener(storm bool) provider.Model {
	return provider.Func{
		// How much the gardener can keep in mind.
		About: provider.Info{Provider: "garden", Model: "gardener-1", Window: 8000, MaxOutput: 200},
		Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
			if storm {
				return nil, errStorm
			}
			return answerTo(r.Entries), nil
		},
	}
}

var errStorm = errors.New("the gardener is indoors: there is a storm")

// answerTo answers the last message by what there is of the conversation.
func answerTo(entries []session.Entry) *session.MessageEntry {
	var asked []string
	for _, e := range entries {
		if e.Message != nil && e.Message.Role == session.RoleUser {
			asked = append(asked, session.TextOf(e.Message.Content))
		}
	}
	text := advice(asked[len(asked)-1])
	if n := len(asked); n > 1 {
		text += fmt.Sprintf(" (You asked %d questions; the first was: %s)", n, asked[0])
	}
	return &session.MessageEntry{Content: []session.Content{session.Text(text)}}
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
