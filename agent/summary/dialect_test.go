package summary_test

import (
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
			if err != nil || !strings.HasPrefix(sum.Text, goal+"All of it.") || len(sum.Usage) != 1 {
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
