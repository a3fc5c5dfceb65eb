package window_test

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// letters counts a token a byte: what is expected can then be written down.
type letters struct{}

func (letters) Name() string              { return "letters" }
func (letters) CountText(text string) int { return len(text) }

// R94, R95: the provider's own counter is used where there is one, and a debug
// log says which it is.
func TestChooserLogs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	chooser := window.Chooser{
		Exact:  []func(string, string) window.Counter{tiktoken.For},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, tt := range []struct{ provider, model, want string }{
		{"openai", "gpt-5", "o200k_base"},
		{"openai", "gpt-4-turbo", "cl100k_base"},
		{"openrouter", "openai/gpt-4o-mini", "o200k_base"},
		{"anthropic", "claude-opus-4-1", "estimate/claude+learning"},
		{"google", "gemini-2.5-pro", "estimate/gemini+learning"},
		{"", "", "estimate/unknown+learning"},
	} {
		log.Reset()
		if got := chooser.Counter(tt.provider, tt.model).Name(); got != tt.want {
			t.Errorf("%s %s: counter %s, want %s", tt.provider, tt.model, got, tt.want)
		}
		if line := log.String(); !strings.Contains(line, "level=DEBUG") || !strings.Contains(line, "counter="+tt.want) {
			t.Errorf("%s %s: log says %s", tt.provider, tt.model, line)
		}
	}
}

// R98: another provider in the middle of a conversation is counted its way.
func TestPlannerFollowsTheModel(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p, err := window.NewPlanner(window.Options{
		Exact:  []func(string, string) window.Counter{tiktoken.For},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{}
	b.message(session.RoleUser, session.Text(words(100)))
	c := b.context()
	var tokens []int
	for _, model := range [][2]string{{"openai", "gpt-5"}, {"anthropic", "claude-opus-4-7"}, {"openai", "gpt-5"}} {
		c.Provider, c.Model = model[0], model[1]
		v, err := p.Update(c)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, v.Report.Tokens)
	}
	if tokens[0] != tokens[2] || tokens[1] <= tokens[0] {
		t.Errorf("counted %v", tokens)
	}
	if n := strings.Count(log.String(), "token counter chosen"); n != 4 { // the first time for no model
		t.Errorf("the choice was logged %d times:\n%s", n, &log)
	}
}

func TestLearning(t *testing.T) {
	t.Parallel()
	l := window.NewLearning(letters{})
	if l.Name() != "letters+learning" || l.CountText("roses") != 5 {
		t.Fatalf("%s counts %d", l.Name(), l.CountText("roses"))
	}
	for range 50 {
		l.Observe("", 1300, 1000)
	}
	if got := l.Ratio(); math.Abs(got-1.3) > 0.01 {
		t.Errorf("the ratio is %v, want 1.3", got)
	}
	for _, nonsense := range [][2]int{{10, 1000}, {1000, 10}, {-5, 1000}, {1_000_000, 1000}, {100, 1000}} {
		l.Observe("", nonsense[0], nonsense[1])
	}
	if got := l.Ratio(); math.Abs(got-1.3) > 0.01 {
		t.Errorf("after nonsense the ratio is %v", got)
	}
	for range 100 {
		l.Observe("", 3900, 1000)
	}
	if got := l.Ratio(); got != 2 {
		t.Errorf("the ratio went to %v; it is bounded by 2", got)
	}
	for range 200 {
		l.Observe("", 300, 1000)
	}
	if got := l.Ratio(); got != 0.5 {
		t.Errorf("the ratio went to %v; it is bounded by 0.5", got)
	}
}

// R100: a planner learns from what providers report, by how much requests grow:
// what is in every request, such as the schemas of tools, does not count.
func TestPlannerLearnsFromUsage(t *testing.T) {
	t.Parallel()
	l := window.NewLearning(letters{})
	p, err := window.NewPlanner(window.Options{Counter: l, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{}
	prompt := 5000 // schemas
	for range 60 {
		b.message(session.RoleUser, session.Text(strings.Repeat("x", 200)))
		prompt += 204 * 3 / 2
		answer := b.message(session.RoleAssistant, session.Text(strings.Repeat("y", 300)))
		answer.Model, answer.Usage = "m", &session.Usage{Input: 10, CacheRead: prompt - 10, Output: 456}
		prompt += 304 * 3 / 2
	}
	p.Add(b.entries...)
	if got := l.Ratio(); math.Abs(got-1.5) > 0.05 {
		t.Errorf("the ratio is %v, want 1.5", got)
	}

	// Another model's reports, repeated ones, and those after an image say nothing.
	ratio := l.Ratio()
	b = &builder{}
	for _, m := range []struct{ model, response string }{{"other", "r1"}, {"m", "r2"}, {"m", "r2"}} {
		answer := b.message(session.RoleAssistant, session.Text(strings.Repeat("y", 300)))
		answer.Model, answer.ResponseID, answer.Usage = m.model, m.response, &session.Usage{Input: 90_000}
	}
	b.message(session.RoleUser, picture(100, 100))
	b.message(session.RoleAssistant).Usage = &session.Usage{Input: 90_900}
	p.Add(b.entries...)
	if got := l.Ratio(); got != ratio {
		t.Errorf("the ratio went from %v to %v", ratio, got)
	}
}

// The learned ratio is what the next entries are counted with.
func TestLearnedRatioCounts(t *testing.T) {
	t.Parallel()
	l := window.NewLearning(letters{})
	for range 50 {
		l.Observe("", 2000, 1000)
	}
	if got := l.CountText(strings.Repeat("x", 1000)); got < 1990 || got > 2000 {
		t.Errorf("1000 letters count %d", got)
	}
}

// dialogue is a conversation of some turns whose provider counts ratio times as
// many tokens as there are letters. Nothing but the usage is recorded.
func dialogue(turns int, ratio float64) []session.Entry {
	b := &builder{}
	reported := func(letters int) int { return int(math.Round(float64(letters) * ratio)) }
	prompt := 3000 // what every request has: schemas, hidden instructions
	for i := range turns {
		question, answer := 150+40*(i%5), 90+30*(i%4)
		b.message(session.RoleUser, session.Text(strings.Repeat("x", question)))
		prompt += reported(question) + 4
		m := b.message(session.RoleAssistant, session.Text(strings.Repeat("y", answer)))
		m.Model, m.Usage = "m", &session.Usage{Input: prompt, Output: reported(answer)}
		prompt += reported(answer) + 4
	}
	return b.entries
}

// Reading a conversation again says nothing new: what is learned from it stays
// the true ratio, be it opened once or two hundred times, by one planner after the
// other or by the same one.
func TestLearningConvergesHoweverOftenAConversationIsLoaded(t *testing.T) {
	t.Parallel()
	const truth = 1.3
	for _, turns := range []int{4, 12, 200} {
		entries := dialogue(turns, truth)
		l := window.NewLearning(letters{})
		again := must(window.NewPlanner(window.Options{Counter: l, Model: "m"}))(t)
		for load := range 200 {
			p := must(window.NewPlanner(window.Options{Counter: l, Model: "m"}))(t)
			p.Add(entries...)
			must(again.Update(&session.Context{Entries: entries}))(t)
			if got := l.Ratio(); math.Abs(got-truth) > 0.03*truth {
				t.Fatalf("%d turns: after %d loads the ratio is %v, want %v", turns, load+1, got, truth)
			}
		}
	}
}

// What was recorded has no part in the correction, and must not be taken for what
// the counter counts: with estimates in it, the ratio would grow with every load.
func TestLearningLeavesRecordedCountsAlone(t *testing.T) {
	t.Parallel()
	entries := dialogue(40, 1.3)
	for i := range entries {
		if m := entries[i].Message; i%3 == 0 && m.Role == session.RoleUser {
			n := len(m.Content[0].Text.Content) // as the counter counted before it learned
			m.Tokens = &n
		}
	}
	l := window.NewLearning(letters{})
	for range 200 {
		p := must(window.NewPlanner(window.Options{Counter: l, Model: "m"}))(t)
		p.Add(entries...)
	}
	if got := l.Ratio(); got < 1.25 || got > 1.5 {
		t.Errorf("the ratio is %v after 200 loads; the true one is 1.3", got)
	}
}

// A count says who counted, and the report adds them up.
func TestCountsSayWhoCounted(t *testing.T) {
	t.Parallel()
	seven := 7
	for _, tt := range []struct {
		counter window.Counter
		output  int // as the provider reports it
		text    window.Source
	}{
		{letters{}, len(words(100)), window.Exact},
		{tiktoken.For("openai", "gpt-5"), 115, window.Exact},
		{window.Estimate("", ""), 115, window.Estimated},
		{window.NewLearning(letters{}), len(words(100)), window.Estimated},
	} {
		t.Run(tt.counter.Name(), func(t *testing.T) {
			b := &builder{}
			b.message(session.RoleSystem, session.Text("rules"))
			b.message(session.RoleUser, session.Text("recorded")).Tokens = &seven
			b.message(session.RoleAssistant, session.Text(words(100))).Usage = &session.Usage{Input: 50, Output: tt.output}
			b.message(session.RoleUser, picture(100, 100))
			v := must(window.Trim(b.context(), window.Options{Counter: tt.counter}))(t)
			sums := make(map[window.Source]window.CountReport)
			for i, want := range []window.Source{tt.text, window.Recorded, window.Reported, window.Estimated} {
				c := v.Costs[i]
				if c.By != want {
					t.Errorf("entry %d was counted by %v, want %v", i, c.By, want)
				}
				sums[want] = window.CountReport{Source: want, Entries: sums[want].Entries + 1, Tokens: sums[want].Tokens + c.Tokens}
			}
			for _, got := range v.Report.Counts {
				if got != sums[got.Source] {
					t.Errorf("the report says %+v, want %+v", got, sums[got.Source])
				}
				delete(sums, got.Source)
			}
			if len(sums) > 0 {
				t.Errorf("the report leaves out %v", sums)
			}
		})
	}
}

// What is left out or shortened is not among the counts of a view.
func TestCountsAreOfTheView(t *testing.T) {
	t.Parallel()
	b := &builder{}
	for range 30 {
		b.message(session.RoleUser, session.Text(words(20)))
		b.toolTurn(1, 200, true, false)
	}
	v := must(window.Trim(b.context(), window.Options{Budget: window.Budget{Tokens: 8000}, Counter: letters{}}))(t)
	if len(v.Report.Omissions) == 0 {
		t.Fatal("all of it fits")
	}
	want := []window.CountReport{{Source: window.Exact, Entries: len(v.Entries), Tokens: v.Report.Tokens}}
	if diff := cmp.Diff(want, v.Report.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
