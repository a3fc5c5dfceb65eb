package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// records returns what a session says about its requests.
func records(t *testing.T, s *session.Session) (all []agent.Record) {
	t.Helper()
	for r, err := range agent.Records(s) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// spent returns how many tokens a session says were billed.
func spent(t *testing.T, s *session.Session) int {
	t.Helper()
	all, err := session.SpentIn(s)
	if err != nil {
		t.Fatal(err)
	}
	return all.Reported
}

// TestRequestsAreCountedOnce: the client and the agent do not both retry, and each request
// is on record with what it cost.
func TestRequestsAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ retries, want int }{"default": {0, 5}, "one": {1, 2}, "never": {-1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := providertest.New(t, func(*providertest.Request) providertest.Answer {
				n++ // the usage comes first, and then the connection ends
				return providertest.Answer{Cut: 1, Message: session.MessageEntry{ResponseID: fmt.Sprint("r", n), Usage: &session.Usage{Input: 1000}}}
			})
			model, err := client.New(client.Options{Provider: "anthropic", Model: "m", BaseURL: s.URL, Retries: tt.retries, HTTP: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			a := start(t, agent.Options{Model: model, RetryWait: 1})
			news := a.Subscribe(0)
			out, err := a.Send(t.Context(), session.Text("go"))
			if !errors.Is(err, provider.ErrBroken) || n != tt.want || out.Steps != 1 {
				t.Fatalf("%d requests, want %d; %+v, %v", n, tt.want, out, err)
			}
			_ = a.Close()
			retries := 0
			for e := range news.Events(t.Context()) {
				if e.Type == agent.Retry {
					if retries++; e.Retry.Attempt != retries+1 || e.Retry.Usage == nil {
						t.Errorf("retry %d is %+v", retries, e.Retry)
					}
				}
			}
			all := records(t, a.Session())
			for _, r := range all {
				if r.Error == "" || r.Response != "" || r.Sum == "" {
					t.Errorf("the record of a failure is %+v", r)
				}
			}
			if tokens := spent(t, a.Session()); len(all) != n || tokens != n*1000 || out.Usage.Input != tokens || retries != n-1 {
				t.Errorf("%d records, %d tokens in the log, %+v in the outcome, %d retries; there were %d requests of 1000 tokens", len(all), tokens, out.Usage, retries, n)
			}
			check(t, a.Session())
		})
	}
}

// TestOverloadedInTheMiddle: a provider that gives up after it has begun to answer is
// asked again, as one that refuses at once.
func TestOverloadedInTheMiddle(t *testing.T) {
	t.Parallel()
	for dialect, failure := range map[string]string{
		"anthropic":   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		"openai":      "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}\n\n",
		"openai-chat": "data: {\"error\":{\"message\":\"sorry\",\"type\":\"server_error\"}}\n\n",
		"google":      "data: {\"error\":{\"code\":503,\"message\":\"sorry\",\"status\":\"UNAVAILABLE\"}}\n\n",
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := providertest.New(t, func(*providertest.Request) providertest.Answer {
				n++
				answer := providertest.Answer{Message: session.MessageEntry{ResponseID: fmt.Sprint("r", n), Content: []session.Content{session.Text("A whole answer.")}}}
				if n < 3 {
					answer.Events = func(events []string) []string { return append(events[:len(events)/2:len(events)/2], failure) }
				}
				return answer
			})
			a := start(t, agent.Options{Model: clientOf(t, dialect, s)})
			out := send(t, a, "go")
			if n != 3 || session.TextOf(out.Message.Content) != "A whole answer." || out.Stop != provider.StopEndTurn {
				t.Errorf("after %d requests: %+v", n, out)
			}
			if lines := said(t, a.Session()); !slices.Equal(lines, []string{"user: go", "assistant: A whole answer."}) {
				t.Errorf("the conversation is %q", lines)
			}
			leaves, err := a.Session().Leaves()
			if all := records(t, a.Session()); err != nil || len(all) != 3 || len(leaves) != 3 {
				t.Errorf("%d records and %d branches (%v), want three of each", len(all), len(leaves), err)
			}
			check(t, a.Session())
		})
	}
}

// TestLongWait: a provider that asks for more patience than there is ends the turn, and
// the log says how long it asked for.
func TestLongWait(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Status: 429, Header: http.Header{"Retry-After": {"1e300"}}, Body: `{"error":{"message":"come back later"}}`}
	})
	a := start(t, agent.Options{Model: clientOf(t, "anthropic", s)})
	_, err := a.Send(t.Context(), session.Text("go"))
	if !errors.Is(err, provider.ErrLimited) || len(s.Requests()) != 1 {
		t.Errorf("%d requests, %v", len(s.Requests()), err)
	}
	if all := records(t, a.Session()); len(all) != 1 || !strings.Contains(all[0].Error, "asks to wait") {
		t.Errorf("the records are %+v", all)
	}
}

// TestCancelledBeforeTheFirstWord: what the provider has counted by then was paid for.
func TestCancelledBeforeTheFirstWord(t *testing.T) {
	t.Parallel()
	s := providertest.New(t, func(r *providertest.Request) providertest.Answer {
		return providertest.Answer{Message: session.MessageEntry{Usage: &session.Usage{Input: 1000}}, Before: func(event int) {
			if event == 1 {
				<-r.Context.Done()
			}
		}}
	})
	a := start(t, agent.Options{Model: clientOf(t, "anthropic", s)})
	news := a.Subscribe(0)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for e := range news.Events(ctx) {
			if e.Update != nil && e.Update.Usage != nil {
				cancel()
			}
		}
	}()
	out, err := a.Send(ctx, session.Text("go"))
	if !errors.Is(err, context.Canceled) || out.Usage.Input != 1000 || spent(t, a.Session()) != 1000 || len(records(t, a.Session())) != 1 {
		t.Errorf("%+v, %v, %d tokens in the log", out, err, spent(t, a.Session()))
	}
}
