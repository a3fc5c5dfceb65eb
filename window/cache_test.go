package window_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// A replay asks the model wherever a conversation did, and measures how much of
// each request is an unchanged beginning of the one before: what a provider's
// prompt cache serves.
type replay struct{ prompt, cached int }

func (r *replay) add(o replay) {
	r.prompt += o.prompt
	r.cached += o.cached
}

func (r replay) share() float64 { return 100 * float64(r.cached) / float64(max(r.prompt, 1)) }

// request is what is sent, with what each entry costs.
type request struct {
	entries []session.Entry
	costs   []window.Cost
}

func (r *replay) ask(last, next request) {
	same := true
	for i := range next.entries {
		r.prompt += next.costs[i].Tokens
		same = same && i < len(last.entries) && last.entries[i].Message == next.entries[i].Message
		if same {
			r.cached += next.costs[i].Tokens
		}
	}
}

// replayed replays a conversation, with a function that says what to send of
// what there is so far.
func replayed(entries []session.Entry, send func(soFar []session.Entry) request) replay {
	var r replay
	var last request
	for i, e := range entries {
		asked := e.Message.Role == session.RoleAssistant && i > 0 && entries[i-1].Message.Role != session.RoleAssistant
		if !asked {
			continue
		}
		next := send(entries[:i])
		if last.entries != nil {
			r.ask(last, next)
		}
		last = next
	}
	return r
}

// planned sends what a planner says.
func planned(t testing.TB, o window.Options) func([]session.Entry) request {
	p, err := window.NewPlanner(o)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	return func(soFar []session.Entry) request {
		p.Add(soFar[seen:]...)
		seen = len(soFar)
		v, err := p.View()
		if err != nil {
			t.Fatal(err)
		}
		return request{v.Entries, v.Costs}
	}
}

// sliding is the trimmer that most programs have: it leaves out as many of the
// oldest messages as it must, anew each time. It does not begin with a result.
func sliding(tokens int) func([]session.Entry) request {
	counter := window.Estimate("", "")
	var costs []window.Cost
	return func(soFar []session.Entry) request {
		for i := len(costs); i < len(soFar); i++ {
			costs = append(costs, window.CountEntry(counter, "", &soFar[i]))
		}
		total, first := 0, 0
		for _, c := range costs {
			total += c.Tokens
		}
		var r request
		for first < len(soFar) && window.CategoryOf(&soFar[first]) == window.System {
			first++
		}
		r.entries, r.costs = slices.Clone(soFar[:first]), slices.Clone(costs[:first])
		for first < len(soFar)-1 && (total > tokens || window.CategoryOf(&soFar[first]) == window.SystemOutput) {
			total -= costs[first].Tokens
			first++
		}
		r.entries, r.costs = append(r.entries, soFar[first:]...), append(r.costs, costs[first:]...)
		return r
	}
}

// chat is a conversation without tools, agent one that mostly calls them, and
// library one that begins with documents.
func generated() map[string][]session.Entry {
	chat, agent, library := &builder{}, &builder{}, &builder{}
	for _, b := range []*builder{chat, agent, library} {
		b.message(session.RoleSystem, session.Text(words(300)))
	}
	for n := range 6 {
		library.message(session.RoleUser, session.Text(words(2000+100*n))).Category = "CONTEXT"
	}
	for n := range 400 {
		for _, b := range []*builder{chat, library} {
			b.message(session.RoleUser, session.Text(words(10+n*7%90)))
			b.message(session.RoleAssistant, session.Text(words(40+n*13%200)))
		}
		if n%8 == 0 {
			agent.message(session.RoleUser, session.Text(words(30)))
		}
		agent.toolTurn(1+n%2, 20+n*31%500, true, false)
		if n%8 == 7 {
			agent.message(session.RoleAssistant, session.Text(words(60)))
		}
	}
	return map[string][]session.Entry{"chat": chat.entries, "agent": agent.entries, "library": library.entries}
}

// The boundary moves in blocks, not with each message: under a window of a third
// of the session, at least 90 % of what is sent is what was sent before. (Pain J:
// a boundary that is computed anew each turn makes every cache miss.)
func TestRequestsBeginAsTheOnesBefore(t *testing.T) {
	t.Parallel()
	for name, entries := range generated() {
		t.Run(name, func(t *testing.T) {
			third := tokensIn(entries) / 3
			ours := replayed(entries, planned(t, window.Options{Budget: window.Budget{Tokens: third}}))
			naive := replayed(entries, sliding(third))
			all := replayed(entries, planned(t, window.Options{}))
			t.Logf("unchanged prefix: %.1f %%; sliding by one %.1f %%; untrimmed %.1f %%", ours.share(), naive.share(), all.share())
			if ours.share() < 90 {
				t.Errorf("only %.1f %% of the prompt tokens are an unchanged prefix", ours.share())
			}
			if naive.share() > ours.share() {
				t.Errorf("sliding by one is better: %.1f %%", naive.share())
			}
		})
	}
}

// The same with conversations that people and models had: joined to long ones,
// because one of ten messages grows by a tenth with each; and one by one.
func TestCorpusCache(t *testing.T) {
	t.Parallel()
	for name, conversations := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []struct {
				name string
				list [][]session.Entry
			}{{"joined", joined(conversations, 600)}, {"single", conversations}} {
				var ours, naive, all replay
				for _, entries := range kind.list {
					third := tokensIn(entries) / 3
					if _, err := window.Trim(&session.Context{Entries: entries}, window.Options{Budget: window.Budget{Tokens: third}}); err != nil {
						continue // a few messages, and the prompt more than a third
					}
					o, ok := tryReplay(t, entries, third)
					if !ok {
						continue
					}
					ours.add(o)
					naive.add(replayed(entries, sliding(third)))
					all.add(replayed(entries, planned(t, window.Options{})))
				}
				t.Logf("%s, %d conversations: unchanged prefix %.1f %%; sliding by one %.1f %%; untrimmed %.1f %%",
					kind.name, len(kind.list), ours.share(), naive.share(), all.share())
				if kind.name == "joined" && ours.share() < 90 {
					t.Errorf("only %.1f %% of the prompt tokens are an unchanged prefix", ours.share())
				}
			}
		})
	}
}

// tryReplay replays unless a view on the way does not fit.
func tryReplay(t *testing.T, entries []session.Entry, tokens int) (replay, bool) {
	o := window.Options{Budget: window.Budget{Tokens: tokens}}
	p, err := window.NewPlanner(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p.Add(e)
		if _, err := p.View(); err != nil {
			return replay{}, false
		}
	}
	return replayed(entries, planned(t, o)), true
}
