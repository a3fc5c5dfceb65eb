package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// counted is a model whose provider counts tokens in its own way.
type counted struct {
	provider.Model
	asked *int
	count func() (int, error)
}

func (m counted) CountTokens(context.Context, *provider.Request) (int, error) {
	*m.asked++
	return m.count()
}

// TestProviderCounts: where a provider counts tokens, its count decides whether a conversation is
// compacted, and it is asked only if it matters and is not known.
func TestProviderCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, tokens int // of the conversation, in characters, and as the provider counts
		err          error
		compacted    bool
		asked        int
	}{
		"it is smaller than it looks":     {40_000, 3_000, nil, false, 1},
		"it is larger than it looks":      {28_000, 9_900, nil, true, 2},
		"it is small":                     {2_000, 9_900, nil, false, 0},
		"the provider does not say":       {28_000, 0, errors.New("no"), false, 1},
		"it does not say, and it is full": {60_000, 0, errors.New("no"), true, 1},
	} {
		s := newSession(t)
		for i := range 10 {
			for _, role := range []string{session.RoleUser, session.RoleAssistant} {
				m := &session.MessageEntry{Role: role, Content: []session.Content{session.Text(fmt.Sprint(i, " ", strings.Repeat("word ", c.size/100)))}}
				if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
					t.Fatal(err)
				}
			}
		}
		asked := 0
		m := counted{Model: &offline.Model{Window: 12_000}, asked: &asked, count: func() (int, error) { return c.tokens, c.err }}
		a := startIn(t, s, agent.Options{Model: m})
		send(t, a, "go on")
		now, err := a.Session().Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if (now.Compaction != "") != c.compacted || asked > c.asked || c.asked > 0 && asked == 0 {
			t.Errorf("%s: compacted %q after it was asked %d times", name, now.Compaction, asked)
		}
	}
}
