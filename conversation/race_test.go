package conversation_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// Managers that race over boundaries lose no message, double none, and make one
// chain: of each link there is one continuation, with one marker.
func TestBoundaryRace(t *testing.T) {
	for range soak.N(20) {
		race(t, memory.New(nil), 3, 8, 4)
	}
}

// The same with files, where processes meet.
func TestBoundaryRaceInFiles(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		stores := []store.Store{}
		for range 2 {
			st := must(file.Open(dir, &file.Options{Sync: file.Never}))(t)
			t.Cleanup(func() { st.Close() })
			stores = append(stores, st)
		}
		race(t, stores[0], 3, 10, 4, stores[1])
	}
}

func race(t *testing.T, st store.Store, writers, each, limit int, others ...store.Store) {
	t.Helper()
	stores := append([]store.Store{st}, others...)
	first := newManagerOn(t, st, limit)
	id := must(first.CreateSession(""))(t).ID
	must(first.AddMessage(id, systemMessage("be brief")))(t)
	var wg sync.WaitGroup
	for w := range writers {
		m := newManagerOn(t, stores[w%len(stores)], limit)
		wg.Go(func() {
			for i := range each {
				msg := user(fmt.Sprintf("%d/%d", w, i))
				if i%2 == 1 {
					msg.Role = "assistant"
				}
				if _, err := m.AddMessage(id, msg); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	checkChain(t, st, id, writers, each, limit)
}

func checkChain(t *testing.T, st store.Store, id string, writers, each, limit int) {
	t.Helper()
	m := newManagerOn(t, st, limit) // which has seen nothing yet
	c := must(m.Conversation(id))(t)
	want := []string{"be brief"}
	for w := range writers {
		for i := range each {
			want = append(want, fmt.Sprintf("%d/%d", w, i))
		}
	}
	var got []string
	order := map[string]int{}
	for i, msg := range c.Messages {
		got = append(got, msg.Text())
		order[msg.Text()] = i
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d messages %v\nwant %d %v", len(got), got, len(want), want)
	}
	for w := range writers {
		for i := 1; i < each; i++ {
			if order[fmt.Sprintf("%d/%d", w, i)] < order[fmt.Sprintf("%d/%d", w, i-1)] {
				t.Errorf("writer %d: message %d comes before the one before it", w, i)
			}
		}
	}
	chain := must(session.Chain(t.Context(), st, id))(t)
	logs := 0
	for range st.List(t.Context()) {
		logs++
	}
	if len(chain) != logs || len(c.Links) != logs {
		t.Errorf("%d sessions in the store, %d in the chain, %d links", logs, len(chain), len(c.Links))
	}
	for i, linkID := range chain {
		s := must(m.LoadSession(linkID))(t)
		markers, copies := 0, 0
		for _, msg := range s.Messages {
			if msg.Metadata["type"] == "session_transition" {
				markers++
			}
			if msg.Text() == "be brief" {
				copies++
			}
		}
		if markers != min(i, 1) || copies != 1 {
			t.Errorf("link %d has %d markers and %d copies of the instructions: %v", i, markers, copies, texts(s.Messages))
		}
	}
	totals := must(m.Totals(id))(t)
	if totals.Messages != len(want) || totals.Conversation != id || totals.Sessions != logs {
		t.Errorf("totals %+v, want %d messages in %d sessions", totals, len(want), logs)
	}
}
