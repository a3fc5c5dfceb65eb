package keyed_test

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// A refusal is an error that Save has to report.
var refusable = keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c", Arguments: map[string]any{"f": func() {}}}}}

func TestSaveEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil)
		m := manager{keyed.New(&keyed.Options{Store: st}), t}
		other := manager{keyed.New(&keyed.Options{Store: st}), t}
		var told []string
		stop := m.SaveEvery(0, func(key string, err error) { told = append(told, key+": "+err.Error()) })
		m.talk("u1")
		m.SetSummary(key, "sum")
		m.AddFullMessage("bad", refusable)
		time.Sleep(keyed.SaveInterval - time.Nanosecond)
		synctest.Wait()
		other.summaryIs("")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		other.summaryIs("sum")
		if len(told) != 1 || !strings.HasPrefix(told[0], "bad: ") {
			t.Errorf("told %q", told)
		}
		m.SetSummary(key, "two")
		stop()
		stop()
		time.Sleep(2 * keyed.SaveInterval)
		other.summaryIs("sum")
		m.SaveEvery(time.Second, nil)
		m.AddFullMessage("bad", refusable) // told to the logger
		time.Sleep(time.Second)
		synctest.Wait()
		other.summaryIs("two")
		other.close()
		m.close() // ends it
	})
}

func TestSaveAsync(t *testing.T) {
	t.Parallel()
	m := inDir(t, t.TempDir())
	m.talk("u1")
	m.AddFullMessage(key, refusable)
	results := make(chan error)
	report := func(err error) { results <- err }
	m.SaveAsync(key, report)
	wantRefused(t, <-results)
	m.SaveAsync(key, report)
	if err := <-results; err != nil {
		t.Error(err)
	}
	m.SaveAsync("", report)
	if err := <-results; !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v, want os.ErrInvalid", err)
	}
	m.SaveAsync(key, nil)
	m.SaveAsync("", nil)
	m.SaveAsync(key, func(error) { results <- m.Close() }) // which waits for all
	if err := <-results; err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u1")
	m.SetSummary(key, "sum")
	m.AddFullMessage("bad", refusable)
	wantRefused(t, m.Close())
	if err := m.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	m.talk("u2")
	m.sees()
	if err := m.Save(key); !errors.Is(err, session.ErrClosed) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("save: %v", err)
	}
	if s := m.GetOrCreate(key); s == nil || len(s.Messages) > 0 {
		t.Errorf("%+v", s)
	}
	if _, err := m.BuildContext(key, "p", "u"); !errors.Is(err, session.ErrClosed) {
		t.Errorf("context: %v", err)
	}
	inDir(t, dir).sees("u1")
	inDir(t, dir).summaryIs("sum")
}

// Close waits for calls that are under way, and what they said is written.
func TestCloseWhileTalking(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir := t.TempDir()
		m := inDir(t, dir)
		var wait sync.WaitGroup
		m.talk("u1")
		wait.Go(func() { m.talk("u2", "u3") })
		m.close()
		wait.Wait()
		history := strings.Join(brief(inDir(t, dir).GetHistory(key)), " ")
		if !strings.HasPrefix("u1 u2 u3", history) || history == "" {
			t.Errorf("history %s", history)
		}
	}
}

// A conversation that is in use is neither closed with the others nor under its
// user's feet.
func TestClosingWaitsForUsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		st := memory.New(nil)
		m := manager{keyed.New(&keyed.Options{Store: st, MaxOpen: 1, Now: c.now}), t}
		m.talk(numbered("u", 21)...)
		goOn, summarised, closed := make(chan struct{}), make(chan error), make(chan error)
		go func() {
			_, err := m.Summarize(key, func(string, []keyed.Message) (string, error) { <-goOn; return "sum", nil })
			summarised <- err
		}()
		synctest.Wait()
		fill(m, c, 0, 3, 2*time.Second)
		same(t, "active", m.Active(), []string{"chat:2", key})
		go func() { closed <- m.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while a conversation is in use")
		default:
		}
		close(goOn)
		if err := errors.Join(<-summarised, <-closed); err != nil {
			t.Error(err)
		}
		after := manager{keyed.New(&keyed.Options{Store: st}), t}
		after.summaryIs("sum")
		after.close()
	})
}

func TestBuildContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	expect := func(want ...string) {
		t.Helper()
		got, err := m.BuildContext(key, "prompt", "now")
		if err != nil {
			t.Error(err)
		}
		var lines []string
		for _, msg := range got {
			lines = append(lines, strings.TrimSpace(msg.Role+": "+brief([]keyed.Message{msg})[0]))
		}
		same(t, "context", lines, want)
	}
	expect("system: prompt", "user: now")
	m.SetSummary(key, "sum")
	expect("system: prompt", "system: Previous conversation summary: sum", "user: now")
	// A result that came late stands with its call, one that never came is made
	// up, and one without a call is left out; the history stays as it was.
	m.talk("u1", "+x", "u2", "=x", "=orphan", "+y")
	expect("system: prompt", "system: Previous conversation summary: sum",
		"user: u1", "assistant: +x", "tool: =x", "user: u2", "assistant: +y", "tool: =y", "user: now")
	got, err := m.BuildContext("another", "", "") // no empty messages, which providers refuse
	if err != nil || len(got) != 0 {
		t.Errorf("without a prompt and a message: %v, %v", got, err)
	}
	m.sees("u1", "+x", "u2", "=x", "=orphan", "+y")
}
