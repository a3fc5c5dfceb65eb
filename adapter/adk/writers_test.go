package adk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/coppice-dev/coppice/adapter/adk"
	coppice "github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// childEnv makes the test program a writer: it names a directory and the writer's name.
const childEnv = "ADK_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir, name, ok := strings.Cut(os.Getenv(childEnv), "|"); ok {
		if err := writeEvents(dir, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// childEvents is how many events a writer appends.
const childEvents = 40

// writeEvents appends events and prints the id of each when it is in the log.
func writeEvents(dir, name string) error {
	st, err := file.Open(dir, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	service := adk.New(st, &adk.Options{Merge: true})
	got, err := service.Get(ctx, &session.GetRequest{AppName: "app", UserID: "user", SessionID: "s"})
	if err != nil {
		return err
	}
	for i := range childEvents {
		e := text("user", fmt.Sprintf("%s-%d", name, i))
		e.Actions.StateDelta = map[string]any{"n-" + name: i, "app:n-" + name: i, "user:n-" + name: i}
		if err := service.AppendEvent(ctx, got.Session, e); err != nil {
			return err
		}
		fmt.Println(e.ID)
	}
	return st.Close()
}

// writer starts the test program as a writer.
func writer(t *testing.T, dir, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir+"|"+name)
	cmd.Stderr = os.Stderr
	out := mustGet(cmd.StdoutPipe())(t)
	mustDo(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// Several processes append to one session: no event is lost or doubled, and each process's
// own stay in order.
func TestProcessesLoseNothing(t *testing.T) {
	dir := t.TempDir()
	c := converse(t, fileStore(t, dir), nil)
	c.create("s", nil)
	names := []string{"a", "b", "c"}
	var all sync.WaitGroup
	for _, name := range names {
		cmd, out := writer(t, dir, name)
		all.Go(func() {
			for out.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("writer %s: %v", name, err)
			}
		})
	}
	all.Wait()
	s := c.get("s", 0)
	got := ids(s)
	if len(got) != len(names)*childEvents {
		t.Errorf("%d events, want %d", len(got), len(names)*childEvents)
	}
	for _, name := range names {
		var own, want []string
		for i := range childEvents {
			want = append(want, fmt.Sprintf("event %s-%d", name, i))
		}
		for _, id := range got {
			if strings.HasPrefix(id, "event "+name+"-") {
				own = append(own, id)
			}
		}
		if !slices.Equal(own, want) {
			t.Errorf("writer %s has %q", name, own)
		}
		for _, scope := range []string{"", "app:", "user:"} {
			if v, err := s.State().Get(scope + "n-" + name); v != float64(childEvents-1) || err != nil {
				t.Errorf("state %sn-%s is %v, %v", scope, name, v, err)
			}
		}
	}
	requireSound(t, c.coppice())
}

// A process that is killed loses nothing that it has reported, and the next one goes on.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	c := converse(t, fileStore(t, dir), nil)
	c.create("s", nil)
	var reported []string
	for kill := range 6 {
		cmd, out := writer(t, dir, fmt.Sprint("k", kill))
		for range 1 + 5*kill {
			if out.Scan() {
				reported = append(reported, out.Text())
			}
		}
		mustDo(t, cmd.Process.Kill())
		for out.Scan() { // what it reported before it died
			reported = append(reported, out.Text())
		}
		_ = cmd.Wait() // it was killed

		s := c.get("s", 0)
		got := ids(s)
		if extra := len(got) - len(reported); extra < 0 || extra > 1 || !slices.Equal(got[:len(reported)], reported) {
			t.Fatalf("after kill %d there are %d events, and %d were reported", kill, len(got), len(reported))
		}
		reported = got
		// What an event says has happened: shared state comes first.
		last := s.Events().At(s.Events().Len() - 1)
		for key, want := range last.Actions.StateDelta {
			if v, err := s.State().Get(key); err != nil || v.(float64) < want.(float64) || v.(float64) > want.(float64)+1 {
				t.Errorf("after kill %d, state %q is %v, %v; the last event set it to %v", kill, key, v, err, want)
			}
		}
		after := text("user", fmt.Sprint("after kill ", kill))
		c.append(s, after)
		reported = append(reported, after.ID)
	}
	requireSound(t, c.coppice())
}

// A stale session is refused, and nothing changes: not the log, not the session, not the
// shared state.
func TestStaleSessionIsRefused(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			c := converse(t, open(t), nil)
			first := c.create("s", nil)
			c.append(first, text("user", "one"))
			second := converse(t, c.store, nil).get("s", 0)
			c.append(second, text("user", "two"))

			late := text("user", "late")
			late.Actions.StateDelta = map[string]any{"k": "v", "app:k": "v"}
			err := c.AppendEvent(t.Context(), first, late)
			if !errors.Is(err, adk.ErrStale) || !errors.Is(err, coppice.ErrConflict) {
				t.Fatalf("appending to a stale session: %v", err)
			}
			now := c.get("s", 0)
			if got := ids(now); !slices.Equal(got, []string{"event one", "event two"}) {
				t.Errorf("the log has %q", got)
			}
			if got := ids(first); !slices.Equal(got, []string{"event one"}) {
				t.Errorf("the stale session has %q", got)
			}
			for _, s := range []session.Session{first, now} {
				if state := maps.Collect(s.State().All()); len(state) > 0 {
					t.Errorf("the state is %v", state)
				}
			}
			c.append(second, text("user", "three")) // is not stale
		})
	}
}

// If somebody else appends at the last moment, after the shared state has changed, the
// change is taken back: the event is refused and must leave nothing. What the other
// appended stays, even if it is only a change of state.
func TestSomebodyAppendsAtTheLastMoment(t *testing.T) {
	state := &session.Event{ID: "state", Author: "user"}
	state.Actions.StateDelta = map[string]any{"other": "set"}
	for _, other := range []*session.Event{text("user", "words"), state} {
		for _, merge := range []bool{false, true} {
			t.Run(fmt.Sprint(other.ID, ", merge ", merge), func(t *testing.T) { appendAtTheLastMoment(t, other, merge) })
		}
	}
}

func appendAtTheLastMoment(t *testing.T, other *session.Event, merge bool) {
	st := memory.New(nil)
	plain := converse(t, st, nil)
	plain.create("s", map[string]any{"app:k": "old"})
	name := mustGet(adk.SessionName("app", "user", "s"))(t)
	var once sync.Once
	c := converse(t, spying{st, ignore, func(to string) {
		if to == name {
			once.Do(func() { plain.append(plain.get("s", 0), other) })
		}
	}}, &adk.Options{Merge: merge})
	mine := text("user", "mine")
	mine.Actions.StateDelta = map[string]any{"app:k": "new", "user:k": "new"}
	err := c.AppendEvent(t.Context(), c.get("s", 0), mine)
	if errors.Is(err, adk.ErrStale) == merge || err != nil && merge {
		t.Errorf("it ended with %v", err)
	}
	want, events := map[string]any{"app:k": "old"}, []string{other.ID}
	if merge {
		want, events = map[string]any{"app:k": "new", "user:k": "new"}, []string{other.ID, mine.ID}
	}
	maps.Copy(want, other.Actions.StateDelta)
	got := plain.get("s", 0)
	if state := maps.Collect(got.State().All()); !maps.Equal(state, want) {
		t.Errorf("the state is %v, want %v", state, want)
	}
	if !slices.Equal(ids(got), events) {
		t.Errorf("the events are %q, want %q", ids(got), events)
	}
}

// With Merge, a stale session takes in what the others said before it.
func TestStaleSessionIsMerged(t *testing.T) {
	c := converse(t, memory.New(nil), &adk.Options{Merge: true})
	first := c.create("s", nil)
	c.append(first, text("user", "one"))
	second := c.get("s", 1)
	event := text("user", "two")
	event.Actions.StateDelta = map[string]any{"k": "v"}
	c.append(second, event)
	c.append(first, text("user", "three"))
	c.append(second, text("user", "four"))
	want := []string{"event one", "event two", "event three", "event four"}
	for name, s := range map[string]session.Session{"log": c.get("s", 0), "second": second} {
		if got := ids(s); !slices.Equal(got, want) {
			t.Errorf("the %s has %q", name, got)
		}
	}
	if got := ids(first); !slices.Equal(got, want[:3]) {
		t.Errorf("the first has %q", got)
	}
	if v, _ := first.State().Get("k"); v != "v" {
		t.Errorf("the first has not taken in the state: %v", v)
	}
}

// Tags, names and shared state are no reason to refuse a session.
func TestRemarksDoNotMakeASessionStale(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	s, other := c.create("s", nil), c.create("other", nil)
	c.append(s, text("user", "one"))
	log := c.coppice()
	mustGet(log.AppendEntry(coppice.Tags("roses")))(t)
	mustGet(log.AppendSessionInfo("about roses"))(t)
	shared := text("user", "shared")
	shared.Actions.StateDelta = map[string]any{"app:k": "v", "user:k": "v"}
	c.append(other, shared)
	c.append(s, text("user", "two"))
	if got := ids(c.get("s", 0)); !slices.Equal(got, []string{"event one", "event two"}) {
		t.Errorf("the events are %q", got)
	}
}

// However many writers merge, each sees all that the others appended before it, in the
// order of the log, and no state is lost.
func TestManyWritersMerge(t *testing.T) {
	c := converse(t, memory.New(nil), &adk.Options{Merge: true})
	c.create("s", nil)
	var all sync.WaitGroup
	handles := make([]session.Session, 8)
	for i := range handles {
		handles[i] = c.get("s", 0)
		all.Go(func() {
			for j := range 40 {
				e := text("user", fmt.Sprintf("%d-%d", i, j))
				e.Actions.StateDelta = map[string]any{fmt.Sprint("k", i): float64(j)}
				if err := c.AppendEvent(t.Context(), handles[i], e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := c.get("s", 0)
	for i, h := range handles {
		if seen := ids(h); !slices.Equal(seen, ids(got)[:len(seen)]) {
			t.Errorf("writer %d has not seen what the log has: %d events", i, len(seen))
		}
		if v, err := got.State().Get(fmt.Sprint("k", i)); v != 39.0 || err != nil {
			t.Errorf("the state of writer %d is %v, %v", i, v, err)
		}
	}
}

// One session may be used by many goroutines, as parallel agents do.
func TestOneSessionManyGoroutines(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	s := c.create("s", nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				e := text("user", fmt.Sprintf("%d-%d", i, j))
				e.Actions.StateDelta = map[string]any{fmt.Sprint(i): j, "app:last": j}
				if err := c.AppendEvent(t.Context(), s, e); err != nil {
					t.Error(err)
				}
				_ = s.Events().Len()
				for range s.State().All() {
				}
			}
		})
	}
	all.Wait()
	if got := ids(c.get("s", 0)); len(got) != 160 || !slices.Equal(got, ids(s)) {
		t.Errorf("%d events in the log and %d in the session, want 160", len(got), s.Events().Len())
	}
}
