package summary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// numbered is a model that tells its answers apart.
func numbered(window int) *model {
	n := 0
	m := newModel(func(task *digest.Task) (*session.MessageEntry, error) {
		n++
		return &session.MessageEntry{
			ResponseID: fmt.Sprint("r", n), Usage: &session.Usage{Input: 10, Output: 5},
			Content: []session.Content{session.Text(fmt.Sprintf("%sSummary %d.", goal, n))},
		}, nil
	})
	m.Window = window
	return m
}

// size is how many tokens the text of a request has.
func size(c window.Counter, r *provider.Request) int {
	return c.CountText(session.TextOf(r.Entries[0].Message.Content)) + c.CountText(session.TextOf(r.Entries[1].Message.Content))
}

// Of a conversation that is larger than the model's window, everything is in some piece:
// each entry, in order; a call and its result in the same one; no piece is larger than the
// window; and each piece updates what was written before it.
func TestPiecesCoverEverything(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		c := window.Estimate("test", "m")
		m := numbered(rapid.IntRange(5000, 12_000).Draw(t, "window"))
		if rapid.Bool().Draw(t, "limited in bytes") {
			m.MaxBytes = rapid.IntRange(16_000, 30_000).Draw(t, "bytes")
		}
		var entries []session.Entry
		var marks []string
		mark := func() string {
			marks = append(marks, fmt.Sprintf("«%d»", len(marks)))
			return marks[len(marks)-1]
		}
		say := func(role session.MessageRole, content ...session.Content) {
			entries = append(entries, session.Entry{Type: session.TypeMessage, ID: fmt.Sprint("e", len(entries)), Message: &session.MessageEntry{Role: role, Content: content}})
		}
		words := func() string {
			return strings.Repeat(rapid.SampledFrom([]string{"word ", "日本", "\"\\", "line\n", "  "}).Draw(t, "word"), rapid.IntRange(0, 150).Draw(t, "words"))
		}
		var pairs [][2]string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "kind") < 2 {
				say(rapid.SampledFrom([]session.MessageRole{session.RoleUser, session.RoleAssistant}).Draw(t, "role"), session.Text(mark()+words()))
				continue
			}
			var calls, results []session.Content
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				id := fmt.Sprint("c", len(marks))
				call, result := mark(), mark()
				calls = append(calls, session.ToolUse(id, "tool", map[string]any{"x": call}))
				results = append(results, session.ToolResult(id, result+words(), false))
				pairs = append(pairs, [2]string{call, result})
			}
			say(session.RoleAssistant, calls...)
			say(session.RoleTool, results...)
		}
		sum, err := summary.Branch(t.Context(), m.Model(), entries, summary.Options{})
		if err != nil {
			t.Fatal(err)
		}
		where := make(map[string]int)
		last := -1
		for _, mk := range marks {
			found := -1
			for n, task := range m.tasks {
				if strings.Contains(digest.Text(task.Turns), mk) {
					if found >= 0 {
						t.Fatalf("%s is in the pieces %d and %d", mk, found, n)
					}
					found = n
				}
			}
			if found < 0 {
				t.Fatalf("%s is in none of the %d pieces", mk, len(m.tasks))
			}
			where[mk] = found
			if found < last {
				t.Fatalf("%s is in piece %d, after piece %d", mk, found, last)
			}
			last = found
		}
		for _, pair := range pairs {
			if where[pair[0]] != where[pair[1]] {
				t.Fatalf("the call %s is in piece %d, its result in piece %d", pair[0], where[pair[0]], where[pair[1]])
			}
		}
		for n, task := range m.tasks {
			if got := size(c, m.sent[n]) + m.sent[n].MaxTokens; got > m.Window {
				t.Fatalf("piece %d needs %d tokens of %d", n, got, m.Window)
			}
			if encoded, _ := (&offline.Model{}).Encode(m.sent[n]); m.MaxBytes > 0 && len(encoded.Body) > m.MaxBytes {
				t.Fatalf("piece %d has %d bytes of %d", n, len(encoded.Body), m.MaxBytes)
			}
			if want := fmt.Sprintf("%sSummary %d.", goal, n); n > 0 && task.Previous != want || n == 0 && task.Previous != "" {
				t.Fatalf("piece %d updates %q", n, task.Previous)
			}
			if task.More != (n < len(m.tasks)-1) {
				t.Fatalf("piece %d of %d says more: %v", n, len(m.tasks), task.More)
			}
		}
		if want := fmt.Sprintf("%sSummary %d.", goal, len(m.tasks)); sum.Text != want || sum.Requests != len(m.tasks) || bills(sum) != len(m.tasks) {
			t.Fatalf("%q after %d requests with %d costs", sum.Text, sum.Requests, bills(sum))
		}
	})
}

// An entry that does not fit even alone is shortened in the middle, and says so. A unit that
// does not fit is split between its entries.
func TestWhatDoesNotFitAloneIsShortened(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.user("BEGIN " + strings.Repeat("a long story ", 20_000) + " END")
	var calls, results []session.Content
	for i := range 40 {
		id := fmt.Sprint("c", i)
		calls = append(calls, session.ToolUse(id, "tool", map[string]any{"n": fmt.Sprintf("CALL-%d.", i)}))
		results = append(results, session.ToolResult(id, fmt.Sprintf("RESULT-%d.", i)+strings.Repeat("data ", 300), false))
	}
	s.add(session.RoleAssistant, calls...)
	s.add(session.RoleTool, results...)
	s.user("Now what?")
	m := numbered(5000)
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(30), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	text := m.everything()
	for i := range 40 {
		for _, want := range []string{fmt.Sprintf("CALL-%d.", i), fmt.Sprintf("RESULT-%d.", i)} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%s is there %d times", want, strings.Count(text, want))
			}
		}
	}
	for _, want := range []string{"BEGIN", " END", "left out"} {
		if !strings.Contains(text, want) {
			t.Errorf("no request has %q", want)
		}
	}
	c := window.Estimate("test", "m")
	for n, r := range m.sent {
		if got := size(c, r) + r.MaxTokens; got > m.Window {
			t.Errorf("piece %d needs %d tokens of %d", n, got, m.Window)
		}
	}
}

// A provider may limit a request in bytes long before its window is full.
func TestPiecesKeepTheLimitInBytes(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for i := range 30 {
		s.user(fmt.Sprintf("MARK-%d. ", i) + strings.Repeat("\"", 500))
	}
	s.user("BEGIN" + strings.Repeat("\"", 30_000) + "END")
	s.user("And now?")
	m := numbered(200_000)
	m.MaxBytes = 12_000
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(30), summary.Options{}); err != nil {
		t.Fatal(err)
	}
	for n, r := range m.sent {
		if encoded, err := (&offline.Model{}).Encode(r); err != nil || len(encoded.Body) > m.MaxBytes {
			t.Errorf("piece %d has %d bytes: %v", n, len(encoded.Body), err)
		}
	}
	for _, want := range []string{"MARK-0.", "MARK-29.", "BEGIN", "END"} {
		if !strings.Contains(m.everything(), want) {
			t.Errorf("no request has %s", want)
		}
	}
}

// A model may have a smaller window than anybody knows.
func TestPiecesBecomeSmallerWhenTheProviderFindsThemTooLarge(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	c := window.Estimate("test", "m")
	m := numbered(0)
	write := m.answers[0]
	m.answers[0] = func(task *digest.Task) (*session.MessageEntry, error) {
		if c.CountText(digest.Text(task.Turns)) > 800 {
			return nil, provider.ErrOverflow
		}
		return write(task)
	}
	for i := range 60 {
		s.user(fmt.Sprintf("MARK-%d. ", i) + strings.Repeat("words ", 300))
	}
	sum, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{})
	if err != nil || !strings.HasPrefix(sum.Text, goal) {
		t.Fatalf("%q, %v", sum.Text, err)
	}
	for i := range 59 {
		if !strings.Contains(m.everything(), fmt.Sprintf("MARK-%d.", i)) {
			t.Errorf("entry %d is in no piece", i)
		}
	}
	m.answers = []answer{fails(provider.ErrOverflow)}
	m.tasks, m.sent = nil, nil
	if _, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{}); !errors.Is(err, provider.ErrOverflow) || len(m.sent) > 12 {
		t.Errorf("%v after %d requests", err, len(m.sent))
	}
}

// If a later piece fails, there is no summary, but the earlier ones were paid for.
func TestCostsOfAllPiecesAreReportedWhenOneFails(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for range 40 {
		s.user(strings.Repeat("words ", 200))
	}
	m := newModel(says(goal), says(goal), fails(provider.ErrUnavailable))
	m.Window = 6000
	sum, err := summary.Compaction(t.Context(), m.Model(), s.plan(60), summary.Options{})
	if !errors.Is(err, provider.ErrUnavailable) || sum.Text != "" || sum.Requests != 3 || bills(sum) != 2 {
		t.Fatalf("%q, %v after %d requests with %d costs", sum.Text, err, sum.Requests, bills(sum))
	}
	bill, ok := session.BillOf(&sum.Log[1])
	if !ok || bill.Provider != "test" || bill.Model != "m" || bill.Usage.Input != 10 {
		t.Errorf("bill %+v", bill)
	}
}
