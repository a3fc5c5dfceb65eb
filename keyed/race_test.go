package keyed_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// pairsAreWhole fails if a result stands in a history without its call before it.
func pairsAreWhole(t testing.TB, history []keyed.Message) {
	t.Helper()
	called := make(map[string]bool)
	for _, m := range history {
		for _, c := range m.ToolCalls {
			called[c.ID] = true
		}
		if m.ToolCallID != "" && !called[m.ToolCallID] {
			t.Errorf("result %s without its call in %v", m.ToolCallID, brief(history))
		}
	}
}

// summarise is what programs do in the background after each answer.
func summarise(m manager, keep int) {
	m.SetSummary(key, fmt.Sprintf("of %d messages", len(m.GetHistory(key))))
	m.TruncateHistory(key, keep)
	m.save(key)
}

// turn returns what an agent says in a turn with tools.
func turn(n int) []string {
	id := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	return []string{id("u"), id("+x"), id("=x"), id("+y"), id("=y"), id("a")}
}

// A background summary that raced with an agent left a tool result without its
// call, and the model refused every request from then on.
func TestRegressionSummaryRacesWithTools(t *testing.T) {
	t.Parallel()
	backgrounds := map[string]func(m manager){
		"keep 4": func(m manager) { summarise(m, 4) },
		"keep 1": func(m manager) { summarise(m, 1) },
		"clear":  func(m manager) { summarise(m, 0) },
		"summarise": func(m manager) {
			if _, err := m.Summarize(key, func(string, []keyed.Message) (string, error) { return "sum", nil }); err != nil {
				m.t.Error(err)
			}
		},
	}
	for name, background := range backgrounds {
		for _, place := range []string{"memory", "files", "two managers"} {
			t.Run(name+", "+place, func(t *testing.T) {
				rounds := 20
				if place != "memory" {
					rounds = 1
				}
				for range rounds {
					raceWithTools(t, place, background)
				}
			})
		}
	}
}

func raceWithTools(t *testing.T, place string, background func(m manager)) {
	dir := ""
	if place != "memory" {
		dir = t.TempDir()
	}
	agent := inDir(t, dir)
	other := agent
	if place == "two managers" {
		other = inDir(t, dir)
	}
	const turns = 15
	var said []string
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for _, work := range []func(){
		func() { background(other) },
		func() { pairsAreWhole(t, other.GetHistory(key)) },
	} {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					work()
				}
			}
		})
	}
	for n := range turns {
		for _, word := range turn(n) {
			agent.talk(word)
			said = append(said, word)
			pairsAreWhole(t, agent.GetHistory(key))
		}
	}
	close(stop)
	wait.Wait()
	for _, m := range []manager{agent, other} {
		pairsAreWhole(t, m.GetHistory(key))
		m.hasAll(said...)
	}
	sameText(t, "the other's history", brief(other.GetHistory(key)), brief(agent.GetHistory(key)))
}

// Summarize lets nothing disappear that it has not summarised, whatever is said
// meanwhile.
func TestSummarizeKeepsWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	m := inDir(t, t.TempDir())
	m.talk(numbered("u", 21)...)
	done, err := m.Summarize(key, func(summary string, old []keyed.Message) (string, error) {
		sameText(t, "what is to be summarised", brief(old), numbered("u", 17))
		m.talk("v1", "v2", "v3", "v4", "v5", "v6")
		return summary + "seventeen", nil
	})
	if done.Dropped == 0 || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
	m.summaryIs("seventeen")
	m.sees("u18", "u19", "u20", "u21", "v1", "v2", "v3", "v4", "v5", "v6")
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		calls := 0
		answer, problem := "sum", error(nil)
		summarize := func() bool {
			done, err := m.Summarize(key, func(string, []keyed.Message) (string, error) { calls++; return answer, problem })
			if (err != nil) != (problem != nil || strings.TrimSpace(answer) == "") {
				t.Errorf("error %v", err)
			}
			return done.Dropped > 0
		}
		m.talk(numbered("u", 20)...)
		if summarize() || calls > 0 {
			t.Error("20 messages were summarised")
		}
		m.talk("u21")
		for _, bad := range []struct {
			answer  string
			problem error
		}{{"an error's text", os.ErrDeadlineExceeded}, {" \n", nil}} {
			answer, problem = bad.answer, bad.problem
			if summarize() {
				t.Errorf("%q was taken for a summary", answer)
			}
			m.summaryIs("")
			m.sees(numbered("u", 21)...)
		}
		answer, problem = "sum", nil
		if !summarize() {
			t.Error("21 messages were not summarised")
		}
		m.summaryIs("sum")
		m.sees("u18", "u19", "u20", "u21")
		// One turn that is longer than all that is kept is cut between its steps.
		m.TruncateHistory(key, 0)
		m.talk("u")
		for i := range 12 {
			m.talk(fmt.Sprintf("+%d", i), fmt.Sprintf("=%d", i))
		}
		if calls = 0; !summarize() || calls != 1 || summarize() || calls != 1 {
			t.Errorf("a single turn was summarised %d times, want once", calls)
		}
		m.sees("u", "+10", "=10", "+11", "=11")
		// Somebody else cut meanwhile.
		m.talk(numbered("v", 30)...)
		done, err := m.Summarize(key, func(string, []keyed.Message) (string, error) {
			m.TruncateHistory(key, 1)
			return "late", nil
		})
		if done.Dropped > 0 || err != nil {
			t.Errorf("%+v, %v", done, err)
		}
		m.sees("v30")
		m.summaryIs("sum")
	})
}

// Two managers on one directory, as two processes would be: every message of
// both is kept, in one order that both see.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := inDir(t, dir), inDir(t, dir)
	const each = 60
	var wait sync.WaitGroup
	wait.Go(func() { a.talk(numbered("a", each)...) })
	wait.Go(func() { b.talk(numbered("u", each)...) })
	wait.Wait()
	history := brief(a.GetHistory(key))
	inOrder(t, history, "a", each)
	inOrder(t, history, "u", each)
	if len(history) != 2*each {
		t.Errorf("%d messages, want %d", len(history), 2*each)
	}
	b.sees(history...)
	inDir(t, dir).sees(history...)
	// What the one truncates and summarises the other sees at once.
	a.SetSummary(key, "sum")
	a.TruncateHistory(key, 2)
	b.sees(history[len(history)-2:]...)
	b.summaryIs("sum")
	b.TruncateHistory(key, 0)
	a.sees()
}

// interrupted is a store in which somebody else gets a word in just before an
// append.
type interrupted struct {
	store.Store
	before *func() // called once, before the next append; may be nil
}

func (i interrupted) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := i.Store.Create(ctx, name, lines)
	return interruptedLog{log, i}, err
}

func (i interrupted) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := i.Store.Open(ctx, name)
	return interruptedLog{log, i}, err
}

type interruptedLog struct {
	store.Log
	interrupted
}

func (l interruptedLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	if before := *l.before; before != nil {
		*l.before = nil
		before()
	}
	return l.Log.Start(ctx, at, lines...)
}

// A truncation counts from the end that its caller saw: what another process
// says at the same moment stays.
func TestTruncationKeepsWhatNobodySaw(t *testing.T) {
	t.Parallel()
	for keep, want := range [][]string{{"new", "newer"}, {"u2", "new", "newer"}, {"a1", "u2", "new", "newer"}} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			st := memory.New(nil)
			var before func()
			a := open(t, keyed.Options{Store: interrupted{st, &before}})
			b := open(t, keyed.Options{Store: st})
			a.talk("u1", "a1", "u2")
			before = func() { b.talk("new", "newer") }
			a.TruncateHistory(key, keep)
			if before != nil {
				t.Fatal("nothing came between")
			}
			a.sees(want...)
			b.sees(want...)
		})
	}
}

func inOrder(t testing.TB, words []string, prefix string, n int) {
	t.Helper()
	words = slices.Clone(words)
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, prefix) })
	sameText(t, "words with "+prefix, words, numbered(prefix, n))
}

const (
	childDir  = "KEYED_TEST_DIR"
	childName = "KEYED_TEST_NAME"
	childSays = 40
)

// TestProcesses starts this test again in other processes, which all talk to one
// key at once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(childDir); dir != "" {
		m := inDir(t, dir)
		fmt.Println("ready")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		m.talk(numbered(os.Getenv(childName), childSays)...)
		m.save(key)
		return
	}
	dir := t.TempDir()
	names := []string{"u-", "v-", "w-"}
	var starts []func()
	var children []*exec.Cmd
	for _, name := range names {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
		cmd.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		starts = append(starts, func() { fmt.Fprintln(in, "go") })
		children = append(children, cmd)
	}
	for _, start := range starts {
		start()
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	history := brief(inDir(t, dir).GetHistory(key))
	if len(history) != len(names)*childSays {
		t.Errorf("%d messages, want %d", len(history), len(names)*childSays)
	}
	for _, name := range names {
		inOrder(t, history, name, childSays)
	}
}

// Many goroutines on many keys, more than are kept open.
func TestManyGoroutinesAndKeys(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		const keys, each = 64, 5
		var wait sync.WaitGroup
		for k := range keys {
			wait.Go(func() {
				key := fmt.Sprint("chat:", k)
				for i := range each {
					m.AddMessage(key, "user", fmt.Sprint(k, "-", i))
					m.GetHistory(fmt.Sprint("chat:", (k+1)%keys))
					m.save(key)
				}
			})
		}
		wait.Wait()
		for k := range keys {
			history := m.GetHistory(fmt.Sprint("chat:", k))
			if len(history) != each || history[each-1].Content != fmt.Sprint(k, "-", each-1) {
				t.Errorf("chat %d: %v", k, brief(history))
			}
		}
	})
}
