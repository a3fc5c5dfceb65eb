package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/postgres"
)

// The variables with which TestKill tells its child what to do.
const (
	killDir     = "COPPICE_TEST_KILL_DIR"
	killModel   = "COPPICE_TEST_KILL_MODEL"   // the URL of the model
	killEffects = "COPPICE_TEST_KILL_EFFECTS" // the URL of the world that tools change
	killLast    = "COPPICE_TEST_KILL_LAST"    // finish what is open, then end
	killSeed    = "COPPICE_TEST_KILL_SEED"    // what its random numbers come from
)

// TestKill kills an agent at random moments, again and again, and has another one go on
// where it stopped, through many sessions. In every third round another one is there already
// and waits. The world counts what the tools do to it, from outside. While they work, the
// agents are steered, and they hand work to tasks. In the end, nothing that anybody saw or
// said is missing, nothing was done or said twice, each task has one conversation, every
// request is on record, and the model, which refuses calls without results and results
// without calls, has never refused.
func TestKill(t *testing.T) {
	t.Parallel()
	killAgents(t, t.TempDir(), soak.N(40))
}

func killAgents(t *testing.T, dir string, kills int) {
	w := &world{done: make(map[string]int)}
	effects := httptest.NewServer(http.HandlerFunc(w.change))
	defer effects.Close()
	rng := soak.Rand(t)
	model := providertest.New(t, func(r *providertest.Request) providertest.Answer { return answerKill(rng, r) })
	env := append(os.Environ(), killDir+"="+dir, killModel+"="+model.URL, killEffects+"="+effects.URL)

	start := func(more ...string) *killedChild {
		return startKillChild(t, slices.Concat(env, more, []string{fmt.Sprint(killSeed, "=", rng.Uint64())}))
	}
	saw := make(map[string]bool)
	// How long a turn takes decides when to kill, so that all of it is hit.
	turn := 40 * time.Millisecond
	for round := range kills {
		children := []*killedChild{start()}
		if round%3 == 1 {
			children = append(children, start())
		}
		for _, c := range children {
			c.until(t, "ready")
		}
		for _, c := range children {
			time.Sleep(time.Duration(rng.Int64N(int64(2 * turn))))
			_ = c.cmd.Process.Kill() // it may be about to end
		}
		for _, c := range children {
			maps.Copy(saw, c.rest(t))
		}
	}
	c := start(killLast + "=1")
	maps.Copy(saw, c.rest(t))
	if err := c.err; err != nil {
		t.Fatalf("the last agent: %v\n%s", err, c.stderr.String())
	}
	t.Logf("%d kills, %d entries seen, %d effects, %d requests", kills, len(saw), len(w.done), len(model.Requests()))
	w.compare(t, dir, saw, len(model.Requests()))
}

// openKillStore opens the store of the agents, in a directory or in a database.
func openKillStore(ctx context.Context, where string) (store.Store, error) {
	if strings.HasPrefix(where, "postgres:") {
		return postgres.Open(ctx, where, nil)
	}
	return file.Open(where, nil)
}

// world is what tools change.
type world struct {
	mu   sync.Mutex
	done map[string]int // how often each call changed it
}

func (w *world) change(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.done[r.URL.Query().Get("call")]++
	w.mu.Unlock()
	fmt.Fprint(rw, "done")
}

// killLog is what the logs of all conversations have.
type killLog struct {
	sessions, records, interrupted int
	calls                          map[string]bool
	results, steered, tasks        map[string]int // tasks are conversations, by the call that started them
}

// compare holds the logs to what was seen and done.
func (w *world) compare(t *testing.T, dir string, saw map[string]bool, requests int) {
	t.Helper()
	st, err := openKillStore(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := killLog{calls: make(map[string]bool), results: make(map[string]int), steered: make(map[string]int), tasks: make(map[string]int)}
	all, longest := 0, 0
	for meta, err := range st.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all++
		s := open(t, st, meta.Name)
		if meta.Name == killSession || s.Header().Relation == session.RelationSubagent {
			longest = max(longest, log.add(t, s, saw))
		}
	}
	if all != log.sessions || longest < 2 {
		t.Errorf("of %d sessions, %d belong to a conversation; the longest has %d", all, log.sessions, longest)
	}
	// Some may have been announced and not sent.
	if log.records < requests {
		t.Errorf("%d requests were sent, and %d are on record", requests, log.records)
	}
	for id := range saw {
		t.Errorf("%s was seen or said, and is not in the log", id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for call, n := range w.done {
		if n > 1 && strings.HasPrefix(call, "effect") {
			t.Errorf("call %s changed the world %d times", call, n)
		}
		if !log.calls[call] {
			t.Errorf("call %s changed the world and is not in the log", call)
		}
	}
	for call := range log.calls {
		if log.results[call] != 1 {
			t.Errorf("call %s has %d results", call, log.results[call])
		}
		if n := log.tasks[call]; n != 1 && strings.HasPrefix(call, "task") {
			t.Errorf("call %s has %d conversations", call, n)
		}
	}
	for call := range log.tasks {
		if !log.calls[call] {
			t.Errorf("a task was started by call %s, which is not in the log", call)
		}
	}
	t.Logf("%d calls, %d of them interrupted, %d of them tasks, in %d sessions; steered %d times", len(log.calls), log.interrupted, len(log.tasks), all, len(log.steered))
}

// add adds the conversation that begins with a session, and returns how many sessions it has.
func (l *killLog) add(t *testing.T, first *session.Session, saw map[string]bool) int {
	t.Helper()
	s, err := first.Whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, s)
	links, err := session.Chain(t.Context(), s.Store(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	l.sessions += len(links)
	l.records += len(records(t, s))
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		delete(saw, e.ID)
		if e.Message == nil {
			continue
		}
		text := session.TextOf(e.Message.Content)
		if strings.HasPrefix(text, steerPrefix) {
			delete(saw, text)
			if l.steered[text]++; l.steered[text] > 1 {
				t.Errorf("%s was said %d times", text, l.steered[text])
			}
		}
		if call, ok := strings.CutPrefix(text, taskPrefix); ok && e.Message.Role == session.RoleUser {
			l.tasks[call]++
		}
		for _, c := range e.Message.Content {
			switch {
			case c.ToolUse != nil:
				l.calls[c.ToolUse.ID] = true
			case c.ToolResult != nil:
				l.results[c.ToolResult.ToolUseID]++
				if strings.Contains(c.ToolResult.Content, "interrupted") {
					l.interrupted++
				}
			}
		}
	}
	return len(links)
}

// answerKill is the model: it calls tools for a few steps, and then is done. One call in four
// is a task, whose model does the same without tasks.
func answerKill(rng *rand.Rand, r *providertest.Request) providertest.Answer {
	users, steps, isTask := 0, 0, false
	for i := range r.Entries {
		switch m := r.Entries[i].Message; {
		case m == nil:
		case r.Entries[i].BeginsTurn():
			users, steps, isTask = users+1, 0, strings.HasPrefix(session.TextOf(m.Content), taskPrefix)
		case m.Role == session.RoleAssistant:
			steps++
		}
	}
	time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Millisecond))))
	m := session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("step")}, StopReason: provider.StopToolUse}
	if steps >= 4 {
		m.StopReason = provider.StopEndTurn
		return providertest.Answer{Message: m}
	}
	for i := range 1 + steps%3 {
		name := []string{"effect", "look", "effect"}[i]
		if !isTask && rng.IntN(4) == 0 {
			name = "task"
		}
		id := fmt.Sprintf("%s-%d-%d-%d-%s", name, users, steps, i, session.NewID())
		input := map[string]any{"n": i}
		if name == "task" {
			input = map[string]any{"description": "a task", "prompt": taskPrefix + id}
		}
		m.Content = append(m.Content, session.ToolUse(id, name, input))
	}
	return providertest.Answer{Message: m}
}

const killSession = "kill"

// killChild is what TestKill kills.
func killChild() error {
	ctx := context.Background()
	st, err := openKillStore(ctx, os.Getenv(killDir))
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := session.Open(ctx, st, killSession, nil)
	if errors.Is(err, session.ErrNotExist) {
		s, err = session.Create(ctx, st, session.Header{ID: killSession}, nil)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	model, err := client.New(client.Options{Provider: "anthropic", Model: "m", BaseURL: os.Getenv(killModel)})
	if err != nil {
		return err
	}
	touch := func(ctx context.Context, c agent.Call) (agent.Result, error) {
		response, err := http.Get(os.Getenv(killEffects) + "?call=" + c.ID)
		if err != nil {
			return agent.Result{}, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return agent.Result{Text: string(text)}, err
	}
	effect := agent.Tool{Tool: provider.Tool{Name: "effect"}, Run: touch}
	look := agent.Tool{Tool: provider.Tool{Name: "look"}, Run: touch, Repeatable: true}
	task, err := agent.TaskTool(agent.TaskOptions{})
	if err != nil {
		return err
	}
	a, err := agent.New(s, agent.Options{Model: model, System: "go on", Tools: []agent.Tool{effect, look, task}, Wait: true, Boundary: 12})
	if err != nil {
		return err
	}
	news := a.Subscribe(1 << 16)
	var told sync.WaitGroup
	told.Go(func() {
		for e := range news.Events(ctx) {
			if e.Type == agent.MessageEnd {
				fmt.Println("saw", e.Entry.ID)
			}
		}
	})
	fmt.Println("ready")
	if os.Getenv(killLast) == "" {
		go steerKilled(ctx, a)
	}
	for {
		if _, err := a.Resume(ctx); err != nil {
			return err
		}
		if os.Getenv(killLast) != "" {
			break
		}
		if _, err := a.Send(ctx, session.Text("go")); err != nil {
			return err
		}
	}
	err = a.Close()
	told.Wait()
	return err
}

// steerKilled steers the turn that is under way, in this program or in another, and tells of
// what the log has.
func steerKilled(ctx context.Context, a *agent.Agent) {
	seed, err := strconv.ParseUint(os.Getenv(killSeed), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "steer:", err)
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := 0; n < 1; {
		time.Sleep(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
		text := steerPrefix + session.NewID()
		say := []func(context.Context, ...session.Content) (string, error){a.Steer, a.FollowUp}[rng.IntN(2)]
		if _, err := say(ctx, session.Text(text)); err == nil {
			fmt.Println("saw", text)
			n++
		} else if !errors.Is(err, agent.ErrIdle) {
			fmt.Fprintln(os.Stderr, "steer:", err)
			return
		}
	}
}

const steerPrefix, taskPrefix = "steer-", "do "

// killedChild is a running child.
type killedChild struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
	err    error
}

func startKillChild(t *testing.T, env []string) *killedChild {
	t.Helper()
	c := &killedChild{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = env
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	return c
}

func (c *killedChild) until(t *testing.T, line string) {
	t.Helper()
	for c.lines.Scan() {
		if c.lines.Text() == line {
			return
		}
	}
	t.Fatalf("the agent ended early: %s", c.stderr.String())
}

// rest waits for the end of the child and returns the entries that it said it saw.
func (c *killedChild) rest(t *testing.T) map[string]bool {
	t.Helper()
	saw := make(map[string]bool)
	for c.lines.Scan() {
		id, ok := strings.CutPrefix(c.lines.Text(), "saw ")
		if ok && len(strings.TrimPrefix(id, steerPrefix)) == len(session.NewID()) {
			saw[id] = true
		}
	}
	c.err = c.cmd.Wait()
	if text := c.stderr.String(); text != "" {
		t.Fatalf("the agent said: %s", text)
	}
	return saw
}
