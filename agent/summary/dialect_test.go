package summary_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// Every provider accepts the request, gets the whole task, and its answer becomes a
// summary; one that breaks off does not.
func TestSummaryInEveryDialect(t *testing.T) {
	t.Parallel()
	for _, dialect := range client.Providers() {
		t.Run(dialect, func(t *testing.T) {
			var cut atomic.Int32
			server := providertest.New(t, func(r *providertest.Request) providertest.Answer {
				if task, ok := digest.Read(&provider.Request{Entries: r.Entries}); !ok || task.Kind != digest.Summary || !strings.Contains(task.Turns[0].Text, "Fix the parser") {
					t.Errorf("the server was asked %+v", task)
				}
				return providertest.Answer{Cut: int(cut.Load()), Message: session.MessageEntry{
					Role: session.RoleAssistant, Content: []session.Content{session.Text(goal + "All of it.")}, StopReason: provider.StopEndTurn,
					Usage: &session.Usage{Input: 100, Output: 20},
				}}
			})
			transport := http.DefaultTransport.(*http.Transport).Clone()
			t.Cleanup(transport.CloseIdleConnections)
			model, err := client.New(client.Options{
				Provider: dialect, Model: "m", BaseURL: server.URL, HTTP: &http.Client{Transport: transport}, Retries: -1,
			})
			if err != nil {
				t.Fatal(err)
			}
			s, _ := worked(t)
			plan := s.plan(60)
			sum, err := summary.Compaction(t.Context(), model, plan, summary.Options{})
			if err != nil || !strings.HasPrefix(sum.Text, goal+"All of it.") || bills(sum) != 1 {
				t.Fatalf("%+v, %v", sum, err)
			}
			if _, err := sum.Append(s.Session, plan); err != nil {
				t.Fatal(err)
			}
			cut.Store(2)
			if sum, err := summary.Compaction(t.Context(), model, plan, summary.Options{}); err == nil || sum.Text != "" {
				t.Errorf("an answer that broke off: %+v, %v", sum, err)
			}
		})
	}
}

// TestRetriedSummary: what the client had to ask again is on record, with what it cost.
func TestRetriedSummary(t *testing.T) {
	t.Parallel()
	n := 0
	server := providertest.New(t, func(*providertest.Request) providertest.Answer {
		n++
		answer := providertest.Answer{Message: session.MessageEntry{Content: []session.Content{session.Text(goal)}}}
		if n < 3 {
			answer.Cut = 1 // after the usage
		}
		return answer
	})
	model, err := client.New(client.Options{
		Provider: "anthropic", Model: "m", BaseURL: server.URL, HTTP: server.Client(), Timeouts: client.Timeouts{Retry: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := worked(t)
	var announced []session.Entry
	sum, err := summary.Compaction(t.Context(), model, s.plan(60), summary.Options{Announce: func(e session.Entry) error {
		announced = append(announced, e)
		return s.Append(e)
	}})
	if err != nil || sum.Requests != 3 || bills(sum) != 3 || len(announced) != 1 {
		t.Fatalf("%d requests, %d costs, %+v, %v", sum.Requests, bills(sum), announced, err)
	}
	for i, e := range sum.Log {
		if data := e.Custom.Data; e.Custom.CustomType == session.CustomRequest &&
			(data["asked"] != announced[0].ID || data["for"] != "summary" || (data["error"] != nil) != (i < 4)) {
			t.Errorf("record %d is %v", i, data)
		}
	}
	failed := errors.New("no room")
	if _, err := summary.Compaction(t.Context(), model, s.plan(60), summary.Options{Announce: func(session.Entry) error { return failed }}); !errors.Is(err, failed) || n != 3 {
		t.Errorf("a request was sent that could not be announced: %v", err)
	}
}
