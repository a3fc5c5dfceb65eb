package home_test

import (
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// ask lets an agent with the model in the settings answer some questions in a session.
func (h *house) ask(s *session.Session, o agent.Options, questions ...string) {
	h.Helper()
	var err error
	if o.Model, err = modelOf(h.Settings(), home.ModelChoice{}); err != nil {
		h.Fatal(err)
	}
	a, err := agent.New(s, o)
	if err != nil {
		h.Fatal(err)
	}
	for _, q := range questions {
		if _, err := a.Send(h.Context(), session.Text(q)); err != nil {
			h.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		h.Fatal(err)
	}
}

func (h *house) why(r home.WhyRequest) []home.SentRequest {
	h.Helper()
	result, err := h.Entries.Why(h.Context(), r)
	if err != nil {
		h.Fatal(err)
	}
	short, err := h.Entries.Short(h.Context(), home.EntryNamesRequest{Sessions: []string{r.Session}, Link: r.Link})
	if err != nil {
		h.Fatal(err)
	}
	for _, sent := range result.Requests {
		if id := sent.ID; short.Names[id] == "" {
			h.Errorf("request %s has no short name", id)
		}
	}
	return result.Requests
}

// What was sent can be built again from the log, whoever was asked.
func TestRequestsAreRebuiltFromTheLog(t *testing.T) {
	t.Parallel()
	server := providertest.New(t, func(*providertest.Request) providertest.Answer {
		return providertest.Answer{Message: session.MessageEntry{
			Content: []session.Content{session.Text("yes")}, Usage: &session.Usage{Input: 5, Output: 1, CacheRead: 7},
		}}
	})
	for _, e := range []env{
		{},
		{"COPPICE_MODEL": "anthropic/claude-sonnet-4-5", "COPPICE_BASE_URL": server.URL},
		{"COPPICE_MODEL": "openai/gpt-5", "COPPICE_BASE_URL": server.URL},
		{"COPPICE_MODEL": "openai-chat/llama", "COPPICE_BASE_URL": server.URL, "COPPICE_WINDOW": "9000"},
		{"COPPICE_MODEL": "google/gemini-2.5-pro", "COPPICE_BASE_URL": server.URL},
	} {
		model := e["COPPICE_MODEL"]
		e["HOME"] = t.TempDir()
		h := newHouse(t)
		h.Home = h.open(&home.Options{Create: true, Settings: settings(t, e)})
		s := h.say(session.Header{})
		h.ask(s, agent.Options{System: "be brief", MaxTokens: 100}, "one", "two")
		sent := h.why(home.WhyRequest{Session: s.ID()})
		if len(sent) != 2 {
			t.Errorf("%s: %d requests, want 2", model, len(sent))
			continue
		}
		for i, r := range sent {
			if r.Rebuilt == nil || !*r.Rebuilt || r.Why != "" || r.Usage == nil || r.Session != s.ID() {
				t.Errorf("%s: request %d is %+v", model, i, r)
			}
		}
		if sent[1].Same == 0 || sent[1].Same != sent[1].Before {
			t.Errorf("%s: %d of %d entries are the same", model, sent[1].Same, sent[1].Before)
		}
	}
}

func TestWhyExplainsTheLastRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	h.ask(s, agent.Options{}, "one", "two", "three")
	ids := h.ids(s)
	if _, err := h.Entries.Branch(t.Context(), home.BranchRequest{Session: s.ID(), Entry: ids[1]}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	h.ask(s, agent.Options{}, "four")
	all := h.why(home.WhyRequest{Session: s.ID(), Last: -1})
	if len(all) != 4 || all[3].Why == "" || all[3].Changed == "" || all[3].Same >= all[3].Before {
		t.Fatalf("after going to another branch: %+v", all)
	}
	last := h.why(home.WhyRequest{Session: s.ID(), Last: 1})
	if len(last) != 1 || last[0].ID != all[3].ID || last[0].Why != all[3].Why {
		t.Errorf("the last request is %+v, want %+v", last, all[3])
	}
	if _, err := h.Entries.Why(t.Context(), home.WhyRequest{Session: s.ID(), Last: -2}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("-2 requests: %v", err)
	}
	if none := h.why(home.WhyRequest{Session: h.say(session.Header{}, "hello").ID()}); none == nil || len(none) > 0 {
		t.Errorf("a session that no agent worked in: %+v", none)
	}
}

func TestWhyReadsAllSessionsOfAConversation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.say(session.Header{})
	h.ask(first, agent.Options{}, "one", "two")
	second, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	h.ask(second, agent.Options{}, "three")
	if all := h.why(home.WhyRequest{Session: first.ID()}); len(all) != 3 || all[2].Session != second.ID() {
		t.Errorf("the requests are %+v", all)
	}
	if last := h.why(home.WhyRequest{Session: first.ID(), Last: 2}); len(last) != 2 || last[0].Session != first.ID() {
		t.Errorf("the last two are %+v", last)
	}
	if own := h.why(home.WhyRequest{Session: first.ID(), Link: true}); len(own) != 2 {
		t.Errorf("the first session alone has %+v", own)
	}
}

// A copy of a session has its requests, too.
func TestWhyOfACopy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	h.ask(s, agent.Options{}, "one", "two")
	for at, want := range map[string]int{"": 2, home.Leaf: 1} { // the last record follows the last answer
		copied, err := h.Sessions.Fork(t.Context(), home.ForkRequest{Session: s.ID(), At: at})
		if err != nil {
			t.Fatal(err)
		}
		if sent := h.why(home.WhyRequest{Session: copied.Session}); len(sent) != want || sent[0].Rebuilt == nil || !*sent[0].Rebuilt {
			t.Errorf("a copy at %q has %+v", at, sent)
		}
	}
}

// One request that can no longer be explained does not hide the others.
func TestWhyWithoutWhatWasSent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	h.ask(s, agent.Options{}, "one")
	lost := map[string]any{"leaf": "gone", "response": "gone too", "provider": "offline", "model": "parrot", "sha256": "gone"}
	if _, err := s.AppendCustomEntry(session.CustomRequest, lost); err != nil {
		t.Fatal(err)
	}
	h.ask(s, agent.Options{}, "two")
	sent := h.why(home.WhyRequest{Session: s.ID()})
	if len(sent) != 3 || !*sent[0].Rebuilt || *sent[1].Rebuilt || sent[1].Why == "" || !*sent[2].Rebuilt {
		t.Errorf("the requests are %+v", sent)
	}
}
