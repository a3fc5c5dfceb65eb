package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// longChat has twelve turns over several sessions.
func longChat(t *testing.T, dir string) *conversation.Chat {
	t.Helper()
	c := newSystem(t, newManager(t, dir, 8))
	must(c.Add(systemMessage("be brief")))(t)
	for i := range 12 {
		must(c.Add(user(fmt.Sprint("question ", i, strings.Repeat(" and so on", 50)))))(t)
		must(c.Add(assistant(fmt.Sprint("answer ", i))))(t)
	}
	if n := len(must(c.Conversation())(t).Links); n < 3 {
		t.Fatalf("%d sessions", n)
	}
	return c
}

// sent returns what a model would be sent, in short.
func sent(t *testing.T, c *conversation.Chat) []string {
	t.Helper()
	said := entryTexts(must(c.View())(t).Entries)
	for i := range said {
		said[i] = strings.TrimSpace(strings.SplitN(said[i], " and so on", 2)[0])
	}
	return said
}

// All of a conversation is compacted, not what is in its last session, and the cut
// may be in any of them.
func TestCompactPlansOverAllSessions(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{200, 500, 900} { // in the last session, and before it
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			t.Parallel()
			c := longChat(t, t.TempDir())
			all := sent(t, c)
			plan := must(c.Compact(keep, func(p *session.CompactionPlan) (string, error) {
				return fmt.Sprintf("%d entries", len(p.Summarise)), nil
			}))(t)
			if plan.TokensKept > keep {
				t.Errorf("kept %d tokens of %d", plan.TokensKept, keep)
			}
			gone := len(plan.Summarise)
			want := slices.Concat([]string{"system: be brief", fmt.Sprintf("summary: %d entries", gone)}, all[1+gone:])
			if diff := cmp.Diff(want, sent(t, c)); diff != "" {
				t.Errorf("what is sent (-want +got):\n%s", diff)
			}
			if n := len(must(c.Conversation())(t).Messages); n != 25 {
				t.Errorf("%d messages are left of 25", n)
			}
			must(c.Add(user("one more")))(t)
			if diff := cmp.Diff(append(want, "user: one more"), sent(t, c)); diff != "" {
				t.Errorf("after one more (-want +got):\n%s", diff)
			}
		})
	}
}

// A chat that is going on sees what another program has done to an earlier session.
func TestChatSeesACompactionOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := longChat(t, dir)
	all := sent(t, c)
	other := newSystem(t, newManager(t, dir, 8))
	do(t, other.Load(c.ID()))
	// So much is kept that it begins before everything of which the last session has copies.
	plan := must(other.Compact(1500, func(*session.CompactionPlan) (string, error) { return "in short", nil }))(t)
	links := must(c.Conversation())(t).Links
	last := must(session.Load(dir + "/" + links[len(links)-1].ID + ".jsonl"))(t)
	defer last.Close()
	if _, err := last.Entry(plan.FirstKept); err == nil {
		t.Fatal("the cut is in the last session")
	}
	if diff := cmp.Diff(slices.Concat(all[:1], []string{"summary: in short"}, all[1+len(plan.Summarise):]), sent(t, c)); diff != "" {
		t.Errorf("what is sent (-want +got):\n%s", diff)
	}
}

func TestCompactChangesNothingWithoutASummary(t *testing.T) {
	t.Parallel()
	c := longChat(t, t.TempDir())
	before := sent(t, c)
	broken := errors.New("no model")
	_, err := c.Compact(100, func(*session.CompactionPlan) (string, error) { return "x", broken })
	wantError(t, err, broken)
	_, err = c.Compact(100, func(*session.CompactionPlan) (string, error) { return " \n", nil })
	wantError(t, err, session.ErrInvalid)
	_, err = c.Compact(1_000_000, func(*session.CompactionPlan) (string, error) { return "x", nil })
	wantError(t, err, session.ErrNothingToCompact)
	_, err = newSystem(t, newManager(t, "", 8)).Compact(1, nil)
	wantError(t, err, session.ErrNothingToCompact)
	if diff := cmp.Diff(before, sent(t, c)); diff != "" {
		t.Error(diff)
	}
}

// A model can write the summary. What it cost is written with it, in whichever session that
// is.
func TestModelCompactsAConversation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := longChat(t, dir)
	all := sent(t, c)
	made := must(c.CompactBy(t.Context(), &offline.Model{}, 500, summary.Options{}))(t)
	now := sent(t, c)
	if len(now) >= len(all) || !strings.HasPrefix(now[1], "summary: ## Goal\nquestion 0") || now[len(now)-1] != all[len(all)-1] {
		t.Errorf("what is sent: %q", now)
	}
	if made.Text == "" || len(made.Log) != 2 {
		t.Errorf("the summary is %+v", made)
	}
	conv := must(c.Conversation())(t)
	inLog := func() (tokens int) {
		for _, link := range must(c.Conversation())(t).Links {
			s := must(session.Load(dir + "/" + link.ID + ".jsonl"))(t)
			sum := must(session.SpentIn(s))(t)
			tokens += sum.Reported
			do(t, s.Close())
		}
		return tokens
	}
	spent := inLog()
	if n := len(conv.Messages); n != 25 || spent == 0 {
		t.Errorf("%d messages are left of 25; the log has %d tokens", n, spent)
	}
	must(c.Add(user("one more" + strings.Repeat(" and so on", 50))))(t)
	before := sent(t, c)
	made, err := c.CompactBy(t.Context(), &offline.Model{}, 100, summary.Options{Instructions: "say nothing useful"})
	wantError(t, err, summary.ErrUnusable)
	if errors.Is(err, session.ErrInvalid) {
		t.Errorf("the cost cannot be written: %v", err)
	}
	if diff := cmp.Diff(before, sent(t, c)); diff != "" || len(made.Log) != 2 {
		t.Errorf("%d entries; what is sent after a failure (-want +got):\n%s", len(made.Log), diff)
	}
	if now := inLog(); now <= spent {
		t.Errorf("the log has %d tokens after a failure that cost some, and had %d before", now, spent)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.CompactBy(done, &offline.Model{}, 100, summary.Options{})
	wantError(t, err, context.Canceled)
	_, err = c.CompactBy(t.Context(), &offline.Model{}, 1_000_000, summary.Options{})
	wantError(t, err, session.ErrNothingToCompact)
}

// A request is made from the last sessions that fill the window. Earlier ones are not read, unless
// a summary reaches back to them.
func TestARequestReadsTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 10)
	id := say(t, m, "", systemMessage("be brief"))
	for i := range 100 {
		say(t, m, id, user(fmt.Sprint("question ", i)), assistant("answer"))
	}
	window := conversation.NewWindow(nil)
	do(t, window.SetModel(conversation.Capabilities{Model: "m", ContextWindow: 300}))
	fresh := newManager(t, dir, 10)
	c := conversation.NewChat(fresh, window)
	do(t, c.Load(id))
	got := sent(t, c)
	if n := len(got); n < 5 || got[0] != "system: be brief" || got[n-2] != "user: question 99" {
		t.Errorf("sent %q", got)
	}
	if ids, _ := fresh.SessionsInMemory(); len(ids) > 8 {
		t.Errorf("%d of %d sessions were read", len(ids), len(must(m.Conversation(id))(t).Links))
	}
	other := newSystem(t, newManager(t, dir, 10))
	do(t, other.Load(id))
	must(other.Compact(1000, func(*session.CompactionPlan) (string, error) { return "in short", nil }))(t)
	if got := sent(t, c); !slices.Contains(got, "summary: in short") {
		t.Errorf("after a compaction, sent %q", got)
	}
}
