package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestSubscriberThatNeverReads: an answer of many megabytes comes in small pieces, and a
// subscriber does not read any of them. The text is not lost, and the agent does not get
// slower with every piece.
func TestSubscriberThatNeverReads(t *testing.T) {
	t.Parallel()
	const pieces = 300_000
	a := start(t, agent.Options{Draft: -1, Model: provider.Func{
		About: provider.Info{Provider: "p", Model: "m"},
		Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
			for range pieces {
				if err := tell("word and "); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
	}})
	news := a.Subscribe(0)
	send(t, a, "hello")
	_ = a.Close()
	length := 0
	for e := range news.Events(t.Context()) {
		if e.Type == agent.MessageUpdate {
			length += len(e.Update.Text)
		}
	}
	if length != pieces*len("word and ") {
		t.Errorf("the subscriber got %d bytes", length)
	}
}

// TestReadersOfOneSubscription share its events, and all of them hear of its end.
func TestReadersOfOneSubscription(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{})
	news := a.Subscribe(1 << 16)
	var mu sync.Mutex
	seen := make(map[int64]bool)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for e := range news.Events(context.Background()) {
				mu.Lock()
				seen[e.Number] = true
				mu.Unlock()
			}
		})
	}
	send(t, a, "hello")
	_ = a.Close()
	readers.Wait()
	if len(seen) == 0 {
		t.Error("nobody heard anything")
	}
	late := a.Subscribe(0)
	late.Close()
	late.Close()
	news.Close()
	if e, ok := late.Next(t.Context()); ok {
		t.Errorf("a subscription after the end got %+v", e)
	}
	other := start(t, agent.Options{}).Subscribe(0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := other.Next(ended); ok {
		t.Error("a reader that no longer waits got an event")
	}
}

// TestNextTurnFromTheEndOfTheLast: whoever hears that a turn has ended may begin the next.
func TestNextTurnFromTheEndOfTheLast(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{})
	news := a.Subscribe(1 << 16)
	var next sync.WaitGroup
	next.Go(func() {
		turns := 0
		for e := range news.Events(context.Background()) {
			if e.Type != agent.TurnEnd {
				continue
			}
			if turns++; turns == 50 {
				return
			}
			if _, err := a.Send(context.Background(), session.Text("go on")); err != nil {
				t.Errorf("turn %d: %v", turns, err)
				return
			}
		}
	})
	send(t, a, "begin")
	next.Wait()
	if lines := said(t, a.Session()); len(lines) != 100 || strings.HasPrefix(lines[99], "user") {
		t.Errorf("the conversation has %d messages", len(lines))
	}
}

// TestMessagesAreToldAsTheLogHasThem: with their ids, parents and times.
func TestMessagesAreToldAsTheLogHasThem(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{System: "be brief", Tools: []agent.Tool{echo("one")}})
	news := a.Subscribe(0)
	send(t, a, `call one {"text":"1"}`)
	_ = a.Close()
	told := 0
	for e := range news.Events(t.Context()) {
		if e.Type != agent.MessageEnd {
			continue
		}
		told++
		want, err := a.Session().Entry(e.Entry.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(e.Entry)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(&want); err != nil || string(text) != string(got) {
			t.Errorf("told: %s\nin the log: %s, %v", got, text, err)
		}
	}
	if told != 5 {
		t.Errorf("%d messages were told, want 5", told)
	}
}

// TestSendReturnsAfterTheLastTextWasSeen: a program that prints what arrives, in a goroutine
// of its own, has printed all of it when Send returns. One that does not read, or no longer,
// holds nobody up.
func TestSendReturnsAfterTheLastTextWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
			for range 100 {
				if err := tell("word "); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}}
		a := start(t, agent.Options{Model: model})
		a.Subscribe(0) // which nobody reads
		left, gone := a.Subscribe(0), a.Subscribe(0)
		news := a.Subscribe(0)
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		readers.Go(func() {
			for range left.Events(ctx) {
				break
			}
		})
		readers.Go(func() {
			for range gone.Events(ctx) {
				cancel()
				time.Sleep(time.Millisecond)
			}
		})
		var seen strings.Builder
		readers.Go(func() {
			for e := range news.Events(t.Context()) {
				if e.Type == agent.MessageUpdate {
					time.Sleep(100 * time.Millisecond) // a slow terminal
					seen.WriteString(e.Update.Text)
				}
			}
		})
		synctest.Wait()
		begun := time.Now()
		send(t, a, "hello")
		if n := strings.Count(seen.String(), "word"); n != 100 {
			t.Errorf("%d of 100 words were seen", n)
		}
		if took := time.Since(begun); took >= 2*time.Second {
			t.Errorf("the turn took %v", took)
		}
		stuck := a.Subscribe(0)
		readers.Go(func() {
			_, _ = stuck.Next(t.Context()) // and never again
		})
		synctest.Wait()
		begun = time.Now()
		send(t, a, "again")
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("a reader that is stuck held the turn up for %v", took)
		}
		_ = a.Close()
		readers.Wait()
	})
}

// What a running tool says so far is news. To a slow subscriber only the last of it goes.
func TestProgressOfATool(t *testing.T) {
	t.Parallel()
	one := echo("one")
	var run context.Context
	one.Run = func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		run = ctx
		agent.Progress(ctx, "half")
		agent.Progress(ctx, "nearly")
		return agent.Result{Text: "done"}, nil
	}
	a := start(t, agent.Options{Tools: []agent.Tool{one}})
	news := a.Subscribe(0)
	send(t, a, `call one {"text":"x"}`)
	agent.Progress(run, "too late")
	agent.Progress(t.Context(), "to nobody")
	_ = a.Close()
	var got []string
	for e := range news.Events(t.Context()) {
		if strings.HasPrefix(string(e.Type), "tool_") {
			got = append(got, string(e.Type)+" "+e.Call.Name+" "+e.Text)
		}
	}
	if want := "tool_start one ,tool_update one nearly,tool_end one "; strings.Join(got, ",") != want {
		t.Errorf("%q, want %q", strings.Join(got, ","), want)
	}
}
