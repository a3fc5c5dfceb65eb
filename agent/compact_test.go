package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// compactions returns the ends of compactions among the events of a closed agent.
func compactions(t *testing.T, news *agent.Subscription) (ends []agent.Event) {
	t.Helper()
	for e := range news.Events(t.Context()) {
		if e.Type == agent.CompactionEnd {
			ends = append(ends, e)
		}
	}
	return ends
}

func TestWindowIsKept(t *testing.T) {
	t.Parallel()
	const size = 4000
	a := start(t, agent.Options{Model: &offline.Model{Window: size}, System: "be brief", Tools: []agent.Tool{echo("one")}})
	news := a.Subscribe(1 << 16)
	largest := 0
	for i := range 40 {
		send(t, a, fmt.Sprintf("call one {\"text\":\"%s %d\"}", strings.Repeat("words and words ", 20), i))
		status, err := a.Status()
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, status.Tokens)
		if status.Window != size {
			t.Fatalf("the window is %d", status.Window)
		}
	}
	check(t, a.Session())
	lines := said(t, a.Session())
	if lines[0] != "system: be brief" || !strings.HasPrefix(lines[1], "summary: ") {
		t.Errorf("the conversation begins with %q", lines[:2])
	}
	_ = a.Close()
	ends := compactions(t, news)
	if len(ends) < 2 || largest > size {
		t.Errorf("%d compactions, at most %d tokens of %d", len(ends), largest, size)
	}
	for _, e := range ends {
		if e.Err != nil || e.Compacted.Reason != "window" || e.Compacted.TokensAfter >= e.Compacted.TokensBefore {
			t.Errorf("a compaction: %+v", e)
		}
	}
}

func TestOverflowCompactsOnce(t *testing.T) {
	t.Parallel()
	// The agent does not know the window, so only the provider's error tells.
	model := &offline.Model{Window: 3000}
	blind := provider.Func{About: provider.Info{Provider: offline.Name, Model: offline.ModelName}}
	asked, refused := 0, 0
	blind.Answer = func(ctx context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		asked++
		response, err := provider.Respond(ctx, model, r, nil)
		if errors.Is(err, provider.ErrOverflow) {
			refused++
		}
		if err != nil {
			return nil, err
		}
		return response.Message, nil
	}
	a := start(t, agent.Options{Model: blind, Compaction: agent.Compaction{Model: model, Keep: 300}})
	for i := range 20 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 40)))
	}
	if refused == 0 {
		t.Fatal("the window was never full")
	}
	check(t, a.Session())

	// What cannot be made shorter fails, and does not loop.
	before := asked
	_, err := a.Send(t.Context(), session.Text(strings.Repeat("far too long ", 2000)))
	if !errors.Is(err, provider.ErrOverflow) || asked-before > 2 {
		t.Errorf("a message that never fits: %v after %d requests", err, asked-before)
	}
}

func TestFailedCompactionChangesNothing(t *testing.T) {
	t.Parallel()
	tries := 0
	useless := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		tries++
		return nil, &provider.Error{Kind: provider.ErrUnavailable, Provider: "p"}
	}}
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: 2000}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: []session.Content{session.Text(strings.Repeat("and so on ", 20))}}, nil
	}}
	a := start(t, agent.Options{Model: model, Compaction: agent.Compaction{Model: useless}})
	const turns = 40
	for i := range turns {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 10)))
	}
	if lines := said(t, a.Session()); len(lines) != 2*turns {
		t.Errorf("the conversation has %d messages, want %d", len(lines), 2*turns)
	}
	if tries == 0 || tries > turns/3 {
		t.Errorf("%d attempts in %d turns: it must try, and then wait", tries, turns)
	}
	if _, err := a.Compact(t.Context(), ""); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("a compaction that was asked for must say why it failed: %v", err)
	}
	for e, err := range a.Session().Entries() {
		if err != nil || e.Compaction != nil {
			t.Fatalf("%v %+v", err, e)
		}
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{Compaction: agent.Compaction{Keep: 50}})
	for i := range 6 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	before := said(t, a.Session())
	done, err := a.Compact(t.Context(), "")
	if err != nil || done.Reason != "asked" {
		t.Fatalf("%+v, %v", done, err)
	}
	if len(said(t, a.Session())) >= len(before) {
		t.Errorf("after the compaction the conversation is\n%s", strings.Join(said(t, a.Session()), "\n"))
	}
	if err := a.Undo(); err != nil {
		t.Fatal(err)
	}
	if after := said(t, a.Session()); !slices.Equal(after, before) {
		t.Errorf("after Undo the conversation is\n%s", strings.Join(after, "\n"))
	}
	if err := a.Undo(); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("a second Undo: %v", err)
	}
}

func TestBranchWithSummary(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{})
	send(t, a, "the plan")
	there := a.Session().LeafID()
	send(t, a, "try the left door")
	if err := a.Branch(t.Context(), there, true); err != nil {
		t.Fatal(err)
	}
	lines := said(t, a.Session())
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "summary: ") || !strings.Contains(lines[2], "left door") {
		t.Errorf("the conversation is %q", lines)
	}
	out := send(t, a, "now the right one")
	if out.Steps != 1 {
		t.Errorf("%+v", out)
	}
	check(t, a.Session())
	if err := a.Branch(t.Context(), "nowhere", false); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("a branch at an entry that is not there: %v", err)
	}
}

// TestPrefixStaysStable drives an agent for 200 turns with tools and compactions, and
// compares each request with the one before: what a provider's cache can serve is the
// part that is the same, byte by byte.
func TestPrefixStaysStable(t *testing.T) {
	t.Parallel()
	const turns = 200
	var bodies [][]byte
	var compacted []bool
	fresh := false
	model := &offline.Model{Window: 20_000}
	listening := provider.Func{About: model.Info()}
	listening.Answer = func(ctx context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		encoded, err := model.Encode(r)
		if err != nil {
			return nil, err
		}
		bodies, compacted = append(bodies, encoded.Body), append(compacted, fresh)
		fresh = false
		response, err := provider.Respond(ctx, model, r, nil)
		if err != nil {
			return nil, err
		}
		return response.Message, nil
	}
	a := start(t, agent.Options{Model: listening, System: "be brief", Tools: []agent.Tool{echo("one"), echo("two")}, Compaction: agent.Compaction{Model: model}})
	news := a.Subscribe(1 << 16)
	n := 0
	for i := range turns {
		before := len(bodies)
		send(t, a, fmt.Sprintf("call one {\"text\":\"%d %s\"}\ncall two {\"text\":\"%d\"}", i, strings.Repeat("file content ", 20), i))
		news.Close()
		for e := range news.Events(t.Context()) {
			if e.Type == agent.CompactionEnd && e.Err == nil {
				n++
				for j := before; j < len(bodies); j++ {
					compacted[j] = true // outside of compactions only
				}
			}
		}
		news = a.Subscribe(1 << 16)
	}
	same, all := 0, 0
	for i := 1; i < len(bodies); i++ {
		if compacted[i] {
			continue
		}
		all += len(bodies[i-1])
		same += commonPrefix(bodies[i-1], bodies[i])
	}
	share := 100 * float64(same) / float64(all)
	t.Logf("%d requests, %d compactions: %.2f %% of a request are the beginning of the next", len(bodies), n, share)
	if share < 95 || n < 2 {
		t.Errorf("%.2f %% unchanged over %d requests with %d compactions, want 95 %%", share, len(bodies), n)
	}
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestWhyACacheMisses(t *testing.T) {
	t.Parallel()
	model := &offline.Model{}
	a := start(t, agent.Options{Model: model, Compaction: agent.Compaction{Keep: 50}})
	for i := range 4 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	if _, err := a.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	send(t, a, "after the compaction")
	if err := a.SetTools(echo("one")); err != nil {
		t.Fatal(err)
	}
	send(t, a, "with a tool")
	all, err := agent.Requests(a.Session(), 0, func(*agent.Record) provider.Model { return model })
	if err != nil || len(all) != 7 || all[4].For != "summary" || all[4].Sum == "" {
		t.Fatalf("%d requests, %v", len(all), err)
	}
	all = slices.Delete(all, 4, 5)
	for i, r := range all {
		misses := i == 4 || i == 5
		if (r.Why != "") != misses || r.Rebuilt == nil || !*r.Rebuilt || r.Usage == nil {
			t.Errorf("request %d: %+v", i, r)
		}
		if i > 0 && !misses && (r.Same != r.Before || r.Same != 2*i-1) {
			t.Errorf("request %d has %d of %d entries of the one before", i, r.Same, r.Before)
		}
	}
	if all[4].Changed == "" || !strings.Contains(all[5].Why, "tools") {
		t.Errorf("the misses are explained by %+v and %+v", all[4], all[5])
	}
	two, err := agent.Requests(a.Session(), 2, nil)
	if err != nil || len(two) != 2 || two[0].ID != all[4].ID || two[0].Why != all[4].Why || two[0].Rebuilt != nil {
		t.Errorf("the last two: %+v, %v", two, err)
	}
}

// TestCountHoldsAfterChanges: what a provider reported counts as long as the conversation
// before it is what was sent. Status is held to an agent that knows no report.
func TestCountHoldsAfterChanges(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	const reported = 5000
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		return &session.MessageEntry{Content: []session.Content{session.Text("ok")}, Usage: &session.Usage{Input: reported - 10, Output: 10}}, nil
	}}
	tokens := func(a *agent.Agent) int {
		t.Helper()
		status, err := a.Status()
		if err != nil {
			t.Fatal(err)
		}
		return status.Tokens
	}
	long := echo("long")
	long.Description = strings.Repeat("what it does ", 100)
	a := startIn(t, s, agent.Options{Model: model, System: "one", Tools: []agent.Tool{echo("one")}})
	send(t, a, "hello")
	if n := tokens(a); n != reported {
		t.Errorf("%d tokens were reported, and Status has %d", reported, n)
	}
	if err := a.SetTools(echo("one"), long); err != nil {
		t.Fatal(err)
	}
	if n := tokens(a); n < reported+250 || n > reported+500 {
		t.Errorf("a tool of about 350 tokens was added, and Status goes from %d to %d", reported, n)
	}
	send(t, a, "again") // so that the report is about the tool, too
	if n := tokens(a); n != reported {
		t.Errorf("%d tokens were reported, and Status has %d", reported, n)
	}
	// Other instructions: the report does not hold, even if nobody has looked before.
	send(t, a, "once more")
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEntry(session.ContextEdit(c.Entries[0].ID)); err != nil {
		t.Fatal(err)
	}
	fresh := startIn(t, s, agent.Options{Model: model, Tools: []agent.Tool{echo("one"), long}})
	if n, want := tokens(a), tokens(fresh); n != want {
		t.Errorf("the conversation before the report has changed, and Status has %d instead of %d", n, want)
	}
	// Another model knows nothing of the report.
	send(t, a, "and again")
	if err := a.SetModel(&offline.Model{}); err != nil {
		t.Fatal(err)
	}
	if n := tokens(a); n >= reported {
		t.Errorf("another model's report is in %d", n)
	}
}

// small returns a model that knows its window better than it says, and how often it was asked.
func small(says, has int) (model provider.Func, asked *int) {
	asked = new(int)
	real := &offline.Model{Window: has}
	model = provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: says}}
	model.Answer = func(ctx context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		*asked++
		response, err := provider.Respond(ctx, real, r, nil)
		if err != nil {
			return nil, err
		}
		m := *response.Message
		m.Usage = nil
		return &m, nil
	}
	return model, asked
}

// TestWindowSmallerThanWhatIsKept: the model's window is far smaller than what a compaction
// keeps by default, or by the caller's wish. The conversation must still become shorter.
func TestWindowSmallerThanWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says int
		o    agent.Compaction
	}{
		"nobody knows the window":       {says: 0},
		"the window is not as said":     {says: 200_000},
		"the caller keeps too much":     {says: 3000, o: agent.Compaction{Keep: 50_000}},
		"the caller reserves too much":  {says: 3000, o: agent.Compaction{Reserve: 50_000}},
		"both, and a long summary, too": {says: 3000, o: agent.Compaction{Reserve: 50_000, Keep: 50_000, MaxSummary: 50_000}},
	} {
		t.Run(name, func(t *testing.T) {
			model, asked := small(tt.says, 3000)
			tt.o.Model = &offline.Model{Window: 3000}
			a := start(t, agent.Options{Model: model, System: "be brief", Compaction: tt.o})
			const turns = 30
			for i := range turns {
				send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 30)))
			}
			if *asked > 2*turns {
				t.Errorf("%d requests for %d turns", *asked, turns)
			}
			check(t, a.Session())
		})
	}
}

// TestUndoAndGoOn: compactions are taken back one by one, to the whole conversation, which
// then goes on. What was taken back does not return with the next word.
func TestUndoAndGoOn(t *testing.T) {
	t.Parallel()
	model := &offline.Model{Window: 4000}
	a := start(t, agent.Options{Model: model, System: "be brief"})
	news := a.Subscribe(1 << 16)
	for i := range 30 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	// A larger model has room for all of it.
	if err := a.SetModel(&offline.Model{Window: 400_000}); err != nil {
		t.Fatal(err)
	}
	undone := 0
	for ; undone < 100; undone++ {
		if err := a.Undo(); errors.Is(err, session.ErrNotExist) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		check(t, a.Session())
	}
	if lines := said(t, a.Session()); undone < 2 || len(lines) != 61 {
		t.Errorf("after %d times Undo the conversation has %d messages of 61", undone, len(lines))
	}
	send(t, a, "and on")
	if lines := said(t, a.Session()); len(lines) != 63 {
		t.Errorf("the conversation has %d messages of 63", len(lines))
	}
	_ = a.Close()
	if n := len(compactions(t, news)); n != undone {
		t.Errorf("%d compactions, and %d of them were undone", n, undone)
	}
}

func TestUndoneCompactionDoesNotReturnAtOnce(t *testing.T) {
	t.Parallel()
	model, _ := small(4000, 1<<30)
	a := start(t, agent.Options{Model: model, Compaction: agent.Compaction{Model: &offline.Model{}}})
	compacted := func() bool {
		c, err := a.Session().Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Compaction != ""
	}
	for i := 0; !compacted(); i++ {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	if err := a.Undo(); err != nil {
		t.Fatal(err)
	}
	send(t, a, "I still need that")
	if compacted() {
		t.Error("the compaction is back with the next word")
	}
	for i := 0; i < 50 && !compacted(); i++ {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	if !compacted() {
		t.Error("the conversation is never compacted again")
	}
}

// TestCompactionWithACallThatWaits: a call waits for approval, and the conversation before it
// is compacted. The call stays, and runs when it is allowed.
func TestCompactionWithACallThatWaits(t *testing.T) {
	t.Parallel()
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	risky.Files = func(json.RawMessage) (_, _ []string) { panic("oh") }
	a := start(t, agent.Options{Tools: []agent.Tool{risky}, Compaction: agent.Compaction{Keep: 50}})
	for i := range 6 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 20)))
	}
	out := send(t, a, `call risky {"text":"done"}`)
	if _, err := a.Compact(t.Context(), "what matters"); err != nil {
		t.Fatal(err)
	}
	if err := a.Decide(out.Waiting[0].ID, agent.Allow); err != nil {
		t.Fatal(err)
	}
	if out, err := a.Resume(t.Context()); err != nil || out.Stop != provider.StopEndTurn {
		t.Fatalf("%+v, %v", out, err)
	}
	lines := said(t, a.Session())
	if !strings.HasPrefix(lines[0], "summary: ") || !strings.HasSuffix(lines[len(lines)-2], "done") {
		t.Errorf("the conversation is\n%s", strings.Join(lines, "\n"))
	}
	if _, err := a.Compact(t.Context(), ""); err != nil { // the call is among what is replaced now
		t.Fatal(err)
	}
	check(t, a.Session())
}

// TestAnswerHasItsRoom: an answer may have more tokens than are usually kept free for it.
func TestAnswerHasItsRoom(t *testing.T) {
	t.Parallel()
	const size, answer = 20_000, 9000
	largest := 0
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: size}}
	model.Answer = func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		encoded, err := model.Encode(r)
		if err != nil {
			return nil, err
		}
		input := len(encoded.Body) / 4
		largest = max(largest, input)
		return &session.MessageEntry{Content: []session.Content{session.Text("yes")}, Usage: &session.Usage{Input: input, Output: 1}}, nil
	}
	a := start(t, agent.Options{Model: model, MaxTokens: answer, Compaction: agent.Compaction{Model: &offline.Model{}}})
	for i := range 60 {
		send(t, a, fmt.Sprint(i, strings.Repeat(" words and words", 60)))
	}
	if largest+answer > size || largest < (size-answer)/2 {
		t.Errorf("a request had %d tokens, which leaves %d of %d for an answer of %d", largest, size-largest, size, answer)
	}
}

// TestPicturesThatAreTooManyBytes: pictures are few tokens and many bytes. A provider that
// takes no more bytes finds the conversation too long when its window is nearly empty.
func TestPicturesThatAreTooManyBytes(t *testing.T) {
	t.Parallel()
	const limit = 200_000
	picture := session.Image("image/png", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("pixel"), 4000)))
	shot := echo("shot")
	shot.Run = func(context.Context, agent.Call) (agent.Result, error) {
		return agent.Result{Parts: []session.Content{session.Text("here"), picture}}, nil
	}
	asked := 0
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: 200_000}}
	model.Answer = func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		encoded, err := model.Encode(r)
		if err != nil {
			return nil, err
		}
		if len(encoded.Body) > limit {
			return nil, &provider.Error{Kind: provider.ErrOverflow, Provider: "p", Status: 413}
		}
		if asked++; asked%4 == 0 {
			return &session.MessageEntry{Content: []session.Content{session.Text("I see")}}, nil
		}
		return &session.MessageEntry{Content: []session.Content{session.ToolUse(fmt.Sprint("c", asked), "shot", map[string]any{})}}, nil
	}
	a := start(t, agent.Options{Model: model, Tools: []agent.Tool{shot}, Compaction: agent.Compaction{Model: &offline.Model{}}})
	for i := range 20 {
		send(t, a, fmt.Sprint("look at this, for the time of number ", i))
	}
	check(t, a.Session())
}

// TestEstimateThatIsFarTooLow: the provider reports far more tokens than we count. What we
// count is then no reason to find that everything fits.
func TestEstimateThatIsFarTooLow(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Options{
		Model: provider.Func{About: provider.Info{Provider: "p", Model: "m", Window: 10_000}, Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
			return &session.MessageEntry{Content: []session.Content{session.Text("yes")}, Usage: &session.Usage{Input: 1000 * len(r.Entries), Output: 1}}, nil
		}},
		Compaction: agent.Compaction{Model: &offline.Model{}},
	})
	news := a.Subscribe(1 << 16)
	for i := range 20 {
		send(t, a, fmt.Sprint("this is the prompt that has the number ", i, ", and it has a few more words than that"))
		if status, err := a.Status(); err != nil || status.Tokens > 10_000 {
			t.Errorf("turn %d: %d tokens of 10000, %v", i, status.Tokens, err)
		}
	}
	_ = a.Close()
	for _, e := range compactions(t, news) {
		if e.Err != nil {
			t.Errorf("a compaction: %v", e.Err)
		}
	}
}

// TestTurnCostsItsSummary: what a turn cost is what the log says was spent on it, summaries
// included, whether they came to anything or not.
func TestTurnCostsItsSummary(t *testing.T) {
	t.Parallel()
	for _, instructions := range []string{"", "fail broken"} {
		a := start(t, agent.Options{Model: &offline.Model{Window: 3000}, Compaction: agent.Compaction{Instructions: instructions}})
		news := a.Subscribe(1 << 16)
		cost := 0
		for i := range 15 {
			out, err := a.Send(t.Context(), session.Text(fmt.Sprint(i, strings.Repeat(" words and words", 20))))
			if err != nil && !errors.Is(err, provider.ErrOverflow) {
				t.Fatal(err)
			}
			cost += out.Usage.Context()
		}
		spent, err := session.SpentIn(a.Session())
		if err != nil || spent.Tokens() != cost {
			t.Errorf("%q: the turns cost %d, and %d were spent, %v", instructions, cost, spent.Tokens(), err)
		}
		_ = a.Close()
		if len(compactions(t, news)) == 0 {
			t.Error("nothing was compacted")
		}
	}
}

// TestResultThatFillsTheWindow: a single result is more than a model can take, and there is
// nothing before it to summarise. Only part of it is sent, and the log has all of it.
func TestResultThatFillsTheWindow(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\n", 40_000)
	long := echo("long")
	long.Run = func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{Text: text}, nil }
	for name, says := range map[string]int{"a known window": 3000, "a window that nobody knows": 0} {
		model, asked := small(says, 3000)
		a := start(t, agent.Options{
			Model: model, Tools: []agent.Tool{long}, MaxOutput: len(text),
			Compaction: agent.Compaction{Model: &offline.Model{Window: 3000}},
		})
		news := a.Subscribe(1 << 16)
		_, err := a.Send(t.Context(), session.Text(`call long {"text":"x"}`))
		for i := 0; says == 0 && err != nil && i < 6; i++ { // each turn halves it
			_, err = a.Send(t.Context(), session.Text("hello"))
		}
		if err != nil || says > 0 && *asked > 3 {
			t.Errorf("%s: %v after %d requests", name, err, *asked)
		}
		whole := false
		for e, err := range a.Session().Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Message != nil && len(e.Message.Content) > 0 && e.Message.Content[0].ToolResult != nil {
				whole = whole || e.Message.Content[0].ToolResult.Content == text
			}
		}
		_ = a.Close()
		told := false
		for e := range news.Events(t.Context()) {
			told = told || e.Type == agent.Error
		}
		if !whole || !told {
			t.Errorf("%s: the log has all of it: %v; somebody was told: %v", name, whole, told)
		}
		check(t, a.Session())
	}
}

// TestResultsLeaveRoomInASmallWindow: how long a result may be depends on the model.
func TestResultsLeaveRoomInASmallWindow(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]int{0: 48 << 10, 4000: 2000, 1_000_000: 48 << 10} {
		long := echo("long")
		long.Run = func(context.Context, agent.Call) (agent.Result, error) {
			return agent.Result{Text: strings.Repeat("word ", 20_000)}, nil
		}
		model, _ := small(window, 1_000_000)
		a := start(t, agent.Options{Model: model, Tools: []agent.Tool{long}})
		send(t, a, `call long {"text":"x"}`)
		c, err := a.Session().Context(session.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Entries {
			m := c.Entries[i].Message
			if m == nil || len(m.Content) == 0 || m.Content[0].ToolResult == nil {
				continue
			}
			if n := len(m.Content[0].ToolResult.Content); n < want || n > want+100 {
				t.Errorf("a window of %d: the result has %d bytes, want about %d", window, n, want)
			}
		}
	}
}
