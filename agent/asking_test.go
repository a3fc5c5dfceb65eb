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
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// TestRequestInFlight: a log says at every moment which requests were sent and have no
// answer in it, so that what they cost is not forgotten when the program is killed.
func TestRequestInFlight(t *testing.T) {
	t.Parallel()
	s, st := shared(t)
	n, seen := 0, make(map[string]int)
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: 2000}, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		n++
		// This is what another program would find if this one were killed now.
		other := open(t, st, s.ID())
		all := records(t, other)
		if last := all[len(all)-1]; !strings.Contains(last.Error, "not known") || last.Sum != "" {
			t.Errorf("request %d is not in the log: %+v", n, last)
		} else {
			seen[last.For]++
		}
		if open := all[max(0, len(all)-2)]; len(all) > 1 && strings.Contains(open.Error, "not known") && all[len(all)-1].For == "" {
			t.Errorf("request %d: another one is open as well: %+v", n, open)
		}
		if len(r.Entries) > 0 && strings.Contains(session.TextOf(r.Entries[len(r.Entries)-1].Message.Content), "## Goal") {
			return &session.MessageEntry{Content: []session.Content{session.Text("## Goal\nShort.")}}, nil
		}
		switch n {
		case 1:
			return &session.MessageEntry{Content: []session.Content{session.ToolUseJSON("a", "one", []byte("{}")), session.ToolUseJSON("b", "one", []byte("{}"))}}, nil
		case 2:
			return nil, &provider.Error{Kind: provider.ErrUnavailable, Provider: "p"}
		case 3:
			return &session.MessageEntry{Content: []session.Content{session.Text("half")}}, &provider.Error{Kind: provider.ErrBroken, Provider: "p"}
		}
		return &session.MessageEntry{Content: []session.Content{session.Text(strings.Repeat("words ", 100))}}, nil
	}}
	a := startIn(t, s, agent.Options{Model: model, Tools: []agent.Tool{echo("one")}, RetryWait: 1, Compaction: agent.Compaction{Keep: 100}})
	for i := range 12 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" and words", 50)))
	}
	if _, err := a.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := records(t, s)
	if len(all) != n || seen[""] < 15 || seen["summary"] == 0 {
		t.Errorf("%d requests, %d records, in flight were %v", n, len(all), seen)
	}
	asked := make(map[string]bool)
	for _, r := range all {
		if asked[r.Asked] && r.For == "" || r.Asked == "" || strings.Contains(r.Error, "not known") {
			t.Errorf("the record %+v", r)
		}
		asked[r.Asked] = true
	}
	check(t, s)
}

// TestRequestThatIsNotSent: what was announced and did not happen is written down too.
func TestRequestThatIsNotSent(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Model: refusing{&offline.Model{}}})
	if _, err := a.Send(t.Context(), session.Text("hello")); !errors.Is(err, session.ErrInvalid) {
		t.Fatal(err)
	}
	if all := records(t, a.Session()); len(all) != 1 || !strings.Contains(all[0].Error, "it was not sent: ") || all[0].Model != offline.ModelName {
		t.Errorf("the records are %+v", all)
	}
	why, err := agent.Requests(a.Session(), 0, nil)
	if err != nil || len(why) != 1 || why[0].Error == "" || why[0].ID == "" {
		t.Errorf("%+v, %v", why, err)
	}
}

// refusing is a model that cannot encode a request.
type refusing struct{ provider.Model }

func (refusing) Encode(*provider.Request) (*provider.Encoded, error) {
	return nil, session.Invalidf("it cannot be written")
}

// TestStepSyncsTwice: that a request is announced costs no sync of its own: a step has one
// for the answer and one for the results.
func TestStepSyncsTwice(t *testing.T) {
	t.Parallel()
	syncs := func(steps int) int64 {
		disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
		st, err := file.Open("/store", &file.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		s, err := session.Create(t.Context(), st, session.Header{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := startIn(t, s, agent.Options{Draft: -1, Tools: []agent.Tool{echo("one")}, Model: answers(func(r *provider.Request) (*session.MessageEntry, error) {
			m := &session.MessageEntry{Content: []session.Content{session.Text("done")}}
			if n := len(r.Entries) / 2; n < steps-1 {
				m.Content = []session.Content{session.ToolUseJSON(fmt.Sprint("call", n), "one", []byte(`{"text":"x"}`))}
			}
			return m, nil
		})})
		if out := send(t, a, "go"); out.Steps != steps {
			t.Fatalf("%d steps", out.Steps)
		}
		n := disk.Count(vfstest.OpSync)
		_ = a.Close()
		_ = s.Close()
		return n
	}
	if few, many := syncs(5), syncs(25); many-few < 2*20 || many-few > 2*20+10 { // a lease may be renewed
		t.Errorf("20 more steps have %d more syncs, want two each", many-few)
	}
}
