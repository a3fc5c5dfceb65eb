package adk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/coppice-dev/coppice/adapter/adk"
	coppice "github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// strange are parts of keys that would collide or escape if they were put together
// carelessly.
var strange = []string{"a", "a/b", "b", "../../etc", ".", "..", "a%2Fb", "A", "", " ", "ü", "\xff", "a\x00b", "adk:a", strings.Repeat("x", 500), "con", "a:b", "-"}

func TestKeysDoNotCollide(t *testing.T) {
	c := converse(t, fileStore(t, t.TempDir()), nil)
	type key struct{ app, user, id string }
	var made []key
	for _, app := range strange[:6] {
		for _, user := range strange {
			k := key{app, user, strange[len(made)%len(strange)]}
			if k.app == "" || k.user == "" || k.id == "" {
				continue
			}
			made = append(made, k)
			s := mustGet(c.Create(t.Context(), &session.CreateRequest{AppName: k.app, UserID: k.user, SessionID: k.id}))(t).Session
			c.append(s, text("user", fmt.Sprintf("%q", k)))
		}
	}
	for _, k := range made {
		s := mustGet(c.Get(t.Context(), &session.GetRequest{AppName: k.app, UserID: k.user, SessionID: k.id}))(t).Session
		if got := ids(s); !slices.Equal(got, []string{fmt.Sprintf("event %q", k)}) {
			t.Errorf("session %q has %q", k, got)
		}
	}
	for _, app := range strange[:6] {
		var want, got []key
		for _, k := range made {
			if k.app == app {
				want = append(want, k)
			}
		}
		for _, s := range mustGet(c.List(t.Context(), &session.ListRequest{AppName: app}))(t).Sessions {
			got = append(got, key{s.AppName(), s.UserID(), s.ID()})
		}
		if len(got) != len(want) || slices.ContainsFunc(want, func(k key) bool { return !slices.Contains(got, k) }) {
			t.Errorf("app %q lists %q, want %q", app, got, want)
		}
	}
}

func TestErrorsAreTyped(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	ctx := t.Context()
	s := c.create("s", nil)
	gone := c.create("gone", nil)
	mustDo(t, c.Delete(ctx, &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "gone"}))
	unwritable := text("user", "x")
	unwritable.Actions.StateDelta = map[string]any{"app:k": "v", "k": func() {}}
	for name, test := range map[string]struct {
		do   func() error
		want error
	}{
		"create again": {func() error {
			_, err := c.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "user", SessionID: "s", State: map[string]any{"app:k": "v"}})
			return err
		}, coppice.ErrExist},
		"create without a user": {func() error { _, err := c.Create(ctx, &session.CreateRequest{AppName: "app"}); return err }, coppice.ErrInvalid},
		"create with a function": {func() error {
			_, err := c.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "user", State: map[string]any{"f": func() {}}})
			return err
		}, coppice.ErrInvalid},
		"get nothing": {func() error {
			_, err := c.Get(ctx, &session.GetRequest{AppName: "app", UserID: "user", SessionID: "none"})
			return err
		}, coppice.ErrNotExist},
		"list nothing":      {func() error { _, err := c.List(ctx, &session.ListRequest{}); return err }, coppice.ErrInvalid},
		"delete half":       {func() error { return c.Delete(ctx, &session.DeleteRequest{AppName: "app"}) }, coppice.ErrInvalid},
		"append to nil":     {func() error { return c.AppendEvent(ctx, nil, text("user", "x")) }, coppice.ErrInvalid},
		"append nil":        {func() error { return c.AppendEvent(ctx, s, nil) }, coppice.ErrInvalid},
		"append to gone":    {func() error { return c.AppendEvent(ctx, gone, text("user", "x")) }, coppice.ErrNotExist},
		"append a function": {func() error { return c.AppendEvent(ctx, s, unwritable) }, coppice.ErrInvalid},
		"get with a dead context": {func() error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.Get(done, &session.GetRequest{AppName: "app", UserID: "user", SessionID: "s"})
			return err
		}, context.Canceled},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	now := c.get("s", 0)
	if n, state := now.Events().Len(), maps.Collect(now.State().All()); n != 0 || len(state) != 0 {
		t.Errorf("what was refused left %d events and the state %v", n, state)
	}
	if _, err := now.State().Get("k"); !errors.Is(err, session.ErrStateKeyNotExist) {
		t.Errorf("a missing key: %v", err)
	}
}

// A deleted session takes its events with it, and not the shared state.
func TestDeletedSessionStartsAnew(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			c := converse(t, open(t), nil)
			s := c.create("s", map[string]any{"k": "v", "user:k": "v"})
			c.append(s, text("user", "one"))
			mustDo(t, c.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "s"}))
			c.create("s", nil)
			again := c.get("s", 0)
			if state := maps.Collect(again.State().All()); again.Events().Len() != 0 || len(state) != 1 || state["user:k"] != "v" {
				t.Errorf("%d events, state %v", again.Events().Len(), state)
			}
		})
	}
}

// State is right wherever it is read, however often it was repeated in between, and
// whatever its size.
func TestStateOfALongSession(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "large": 20000} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, memory.New(nil), nil)
			want := map[string]any{"first": "stays", "app:first": "stays", "long": strings.Repeat("x", size)}
			s := c.create("s", maps.Clone(want))
			for i := range 500 {
				e := text("user", fmt.Sprint(i))
				e.Timestamp = time.Unix(int64(1000+i), 0)
				if i%3 == 0 {
					key := fmt.Sprint("k", i%20)
					e.Actions.StateDelta = map[string]any{key: float64(i), "app:" + key: float64(i), "user:" + key: float64(i), "temp:" + key: i}
					for k, v := range e.Actions.StateDelta {
						if !strings.HasPrefix(k, "temp:") {
							want[k] = v
						}
					}
				}
				c.append(s, e)
				if i%50 == 7 {
					s = c.get("s", 3) // goes on with a session that has not seen everything
				}
			}
			for _, recent := range []int{0, 1, 20} {
				got := c.get("s", recent)
				if state := maps.Collect(got.State().All()); !maps.EqualFunc(state, want, func(a, b any) bool { return a == b }) {
					t.Errorf("with %d events the state is %.300v\nwant %.300v", recent, state, want)
				}
				for e := range got.Events().All() {
					for k := range e.Actions.StateDelta {
						if strings.HasPrefix(k, session.KeyPrefixTemp) {
							t.Errorf("event %q has kept %q", e.ID, k)
						}
					}
				}
				if !got.LastUpdateTime().Equal(time.Unix(1499, 0)) {
					t.Errorf("last updated %v", got.LastUpdateTime())
				}
			}
			for after, want := range map[int64]int{0: 500, 1000: 500, 1400: 100, 1499: 1, 1500: 0} {
				r := mustGet(c.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: "s", After: time.Unix(after, 0)}))(t)
				if n := r.Session.Events().Len(); n != want {
					t.Errorf("%d events after %d, want %d", n, after, want)
				}
			}
			again := 0
			for e, err := range c.coppice().Entries() {
				mustDo(t, err)
				if e.Custom != nil && e.Custom.CustomType == "adk.state" {
					again++
				}
			}
			if again < 1 || again > 500/64 {
				t.Errorf("the state is repeated %d times in 500 events", again)
			}
			listed := mustGet(c.List(t.Context(), &session.ListRequest{AppName: "app"}))(t).Sessions
			if state := maps.Collect(listed[0].State().All()); len(state) != len(want) || listed[0].Events().Len() != 0 {
				t.Errorf("the list has %d keys, want %d", len(state), len(want))
			}
		})
	}
}

// Clocks of writers differ. After still finds every event that it should.
func TestAfterFindsEventsOutOfOrder(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	s := c.create("s", nil)
	for i := range 300 {
		e := text("user", fmt.Sprint(i))
		e.Timestamp = time.Unix(1000, 0)
		if i == 10 {
			e.Timestamp = time.Unix(2000, 0)
		}
		c.append(s, e)
	}
	r := mustGet(c.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: "s", After: time.Unix(1500, 0)}))(t)
	if got := ids(r.Session); !slices.Equal(got, []string{"event 10"}) {
		t.Errorf("the events are %q", got)
	}
}

// spying lets a test watch a store: read is called for every line that is read backwards,
// and write before every append.
type spying struct {
	store.Store
	read, write func(name string)
}

type spyingLog struct {
	store.Log
	spying
	name string
}

func (s spying) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := s.Store.Open(ctx, name)
	return spyingLog{log, s, name}, err
}

func (l spyingLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	l.write(l.name)
	return l.Log.Start(ctx, at, lines...)
}

func (l spyingLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range l.Log.Backward(ctx, from) {
			l.read(l.name)
			if !yield(line, err) {
				return
			}
		}
	}
}

func ignore(string) {}

// The last events of a long session cost no more than those of a short one.
func TestRecentEventsReadOnlyTheEnd(t *testing.T) {
	st := memory.New(nil)
	c := converse(t, st, nil)
	s := c.create("s", nil)
	start := time.Now()
	for i := range 2000 {
		e := text("user", fmt.Sprint(i, strings.Repeat("x", 300)))
		e.Timestamp = start.Add(time.Duration(i) * time.Second)
		c.append(s, e)
	}
	var lines int
	counted := converse(t, spying{st, func(string) { lines++ }, ignore}, nil)
	for name, read := range map[string]func() int{
		"recent": func() int { return counted.get("s", 20).Events().Len() },
		"after": func() int {
			r := mustGet(counted.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "user", SessionID: "s", After: start.Add(1980 * time.Second)}))(t)
			return r.Session.Events().Len()
		},
		"append": func() int {
			handle := counted.get("s", 20)
			lines = 0
			counted.append(handle, text("user", "more"))
			return 20
		},
		"list": func() int {
			mustGet(counted.List(t.Context(), &session.ListRequest{AppName: "app"}))(t)
			return 20
		},
	} {
		lines = 0
		if n := read(); n < 20 || n > 21 {
			t.Errorf("%s: %d events, want 20", name, n)
		}
		if lines > 300 {
			t.Errorf("%s: %d of 2000 lines were read", name, lines)
		}
	}
}

// Another program's messages are events, and moving the leaf takes the session back.
func TestOtherProgramsWriteToo(t *testing.T) {
	c := converse(t, memory.New(nil), nil)
	s := c.create("s", map[string]any{"k": "start"})
	for i := range 3 {
		e := text("user", fmt.Sprint(i))
		e.Actions.StateDelta = map[string]any{"k": fmt.Sprint(i)}
		c.append(s, e)
	}
	log := c.coppice()
	path := mustGet(log.Forward(""))(t)
	mustDo(t, log.Branch(path[0].ID))
	mustGet(log.AppendMessage(coppice.RoleAssistant, []coppice.Content{coppice.Text("by hand")}))(t)
	got := c.get("s", 0)
	if got.Events().Len() != 2 || got.Events().At(1).Content.Parts[0].Text != "by hand" || got.Events().At(1).Content.Role != "model" {
		t.Errorf("the events are %q", ids(got))
	}
	if v, _ := got.State().Get("k"); v != "0" {
		t.Errorf("the state is %v, want that of the first event", v)
	}
	if err := c.AppendEvent(t.Context(), s, text("user", "late")); !errors.Is(err, adk.ErrStale) {
		t.Errorf("a session that was taken back: %v", err)
	}
}

// Secrets are taken out of all that is written: content, state, and what only ADK reads.
func TestSecretsAreTakenOut(t *testing.T) {
	secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
	st := memory.New(nil)
	c := converse(t, st, &adk.Options{Session: &coppice.Options{Clean: clean.Append}})
	s := c.create("s", map[string]any{"first": secret, "user:first": secret})
	e := text("user", "use "+secret)
	e.CustomMetadata = map[string]any{"token": secret}
	e.Actions.StateDelta = map[string]any{"k": secret, "app:k": secret}
	c.append(s, e)
	for stat, err := range st.List(t.Context()) {
		mustDo(t, err)
		log := mustGet(st.Open(t.Context(), stat.Name))(t)
		for line, err := range log.Forward(t.Context(), 0) {
			mustDo(t, err)
			if strings.Contains(string(line.Data), secret) {
				t.Errorf("session %s has the secret:\n%s", stat.Name, line.Data)
			}
		}
	}
	if n := c.get("s", 0).Events().Len(); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}
