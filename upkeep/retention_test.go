package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

var day = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin makes a session in which something was said on a day of May.
func begin(t *testing.T, st store.Store, name string, on int) *session.Session {
	t.Helper()
	at := day.AddDate(0, 0, on)
	s, err := session.Create(t.Context(), st, session.Header{ID: name, CreatedAt: at}, &session.Options{Now: func() time.Time { return at }})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	must(t, err)
	return s
}

func namesOf[S any](list []S, name func(S) string) string {
	var names []string
	for _, s := range list {
		names = append(names, name(s))
	}
	return strings.Join(names, " ")
}

func TestSurveyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	must(t, err)
	defer st.Close()
	begin(t, st, "a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := upkeep.Survey(ctx, st, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
}

func surveyed(t *testing.T, st store.Store) string {
	t.Helper()
	all, err := upkeep.Survey(t.Context(), st, nil)
	must(t, err)
	return namesOf(all, func(s upkeep.Session) string { return s.Name })
}

// What is done to put sessions in order does not make them younger.
func TestActivityIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	for i, name := range []string{"b", "c", "a"} {
		begin(t, st, name, i)
	}
	s, err := session.Open(t.Context(), st, "b", nil) // whose clock is that of today
	must(t, err)
	defer s.Close()
	_, err = s.AppendEntry(session.Tags("work"))
	must(t, err)
	_, err = s.AppendSessionInfo("a name")
	must(t, err)
	_, err = s.AppendEntry(session.Pinned(true))
	must(t, err)
	must(t, st.Archive(t.Context(), "c"))
	if got := surveyed(t, st); got != "a c b" {
		t.Errorf("the latest first: %s", got)
	}
	if at, err := session.LastSaid(t.Context(), st, "b"); err != nil || !at.Equal(day) {
		t.Errorf("active at %v, %v", at, err)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	now := day.AddDate(0, 0, 30)
	var all []upkeep.Session
	for i := range 6 { // s0 is the latest, s5 the oldest; s1 and s4 are pinned
		all = append(all, upkeep.Session{Stat: store.Stat{Name: fmt.Sprint("s", i)}, Active: now.AddDate(0, 0, -10*i), Pinned: i == 1 || i == 4})
	}
	for _, test := range []struct {
		rule   upkeep.Rule
		going  string
		pinned int
	}{
		{upkeep.Rule{MaxCount: -1}, "", 0},
		{upkeep.Rule{MaxCount: 10}, "", 0},
		{upkeep.Rule{MaxCount: 2}, "s5 s3", 0},
		{upkeep.Rule{MaxCount: 0}, "s5 s3 s2 s0", 0},
		{upkeep.Rule{MaxCount: -1, OlderThan: 25 * 24 * time.Hour}, "s5 s3", 1},
		{upkeep.Rule{MaxCount: 1, OlderThan: 45 * 24 * time.Hour}, "s5 s3 s2", 0},
	} {
		going, pinned := test.rule.Choose(all, now)
		if got := namesOf(going, func(c upkeep.Choice) string { return c.Name }); got != test.going || pinned != test.pinned {
			t.Errorf("%+v: %q go and %d are pinned, want %q and %d", test.rule, got, pinned, test.going, test.pinned)
		}
	}
}

// A store that is full makes room by what was quiet longest, which can be
// restored, and never by what is pinned.
func TestMakeRoom(t *testing.T) {
	t.Parallel()
	var moved []string
	opts := &file.Options{Sync: file.Never, MaxLogs: 3, MakeRoom: upkeep.MakeRoom(func(s upkeep.Session) { moved = append(moved, s.Name) })}
	st, err := file.Open(t.TempDir(), opts)
	must(t, err)
	defer st.Close()
	_, err = begin(t, st, "oldest", 0).AppendEntry(session.Pinned(true))
	must(t, err)
	begin(t, st, "second", 1)
	begin(t, st, "third", 2)
	begin(t, st, "fourth", 3)
	begin(t, st, "fifth", 4)
	if got := surveyed(t, st); got != "fifth fourth oldest" || fmt.Sprint(moved) != "[second third]" {
		t.Errorf("%s stay, %v went", got, moved)
	}
	items, err := st.Trash().List(t.Context())
	if err != nil || len(items) != 2 {
		t.Errorf("%d are in the trash, %v", len(items), err)
	}
	for _, name := range []string{"fourth", "fifth"} {
		s, err := session.Open(t.Context(), st, name, nil)
		must(t, err)
		_, err = s.AppendEntry(session.Pinned(true))
		must(t, err)
		s.Close()
	}
	_, err = session.Create(t.Context(), st, session.Header{}, nil)
	if limit, ok := errors.AsType[*store.LimitError](err); !ok || limit.Limit != store.MaxSessions {
		t.Errorf("all are pinned: %v", err)
	}
}

// Several processes that make room at once all get theirs.
func TestMakeRoomTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := &file.Options{Sync: file.Never, MaxLogs: 3, MakeRoom: upkeep.MakeRoom(func(upkeep.Session) {})}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			st, err := file.Open(dir, opts) // a store of its own, as another process has
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			for range 10 {
				s, err := session.Create(context.Background(), st, session.Header{}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				s.Close()
			}
		})
	}
	all.Wait()
	st, err := file.Open(dir, nil)
	must(t, err)
	defer st.Close()
	if items, err := st.Trash().List(t.Context()); err != nil || len(items) != 37 {
		t.Errorf("%d are in the trash, %v", len(items), err)
	}
}

// The first session of a conversation that goes on today is not old, and the pin
// of one of its sessions holds all of them.
func TestConversationIsAsYoungAsItsLastSession(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	first := begin(t, st, "first", 0)
	begin(t, st, "between", 5)
	next, err := first.Continue() // it has the clock of the first
	must(t, err)
	defer next.Close()
	must(t, next.Append(session.Entry{
		Type: session.TypeMessage, Timestamp: day.AddDate(0, 0, 9),
		Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("still here")}},
	}))
	all, err := upkeep.Survey(t.Context(), st, nil)
	must(t, err)
	going, _ := upkeep.Rule{MaxCount: -1, OlderThan: 2 * 24 * time.Hour}.Choose(all, day.AddDate(0, 0, 10))
	if got := namesOf(going, func(c upkeep.Choice) string { return c.Name }); got != "between" {
		t.Errorf("%q go, want only the session in between", got)
	}
	_, err = next.AppendEntry(session.Pinned(true))
	must(t, err)
	all, err = upkeep.Survey(t.Context(), st, nil)
	must(t, err)
	going, pinned := upkeep.Rule{MaxCount: 0}.Choose(all, day)
	if got := namesOf(going, func(c upkeep.Choice) string { return c.Name }); got != "between" || pinned != 0 {
		t.Errorf("%q go, %d pinned ones would", got, pinned)
	}
}

// Retention goes by what is latest, not by what stands last; a fork is as young as the day
// on which it was made, and a subagent as the conversation that started it.
func TestWhatCountsAsActive(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	must(t, err)
	defer st.Close()
	late := begin(t, st, "late", 9)
	_, err = late.AppendAll(session.Entry{
		Type: session.TypeMessage, Timestamp: day.AddDate(-6, 0, 0),
		Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("dated wrongly")}},
	})
	must(t, err)
	old := begin(t, st, "old", 1)
	forked, err := old.Fork(t.Context(), st, &session.ForkOptions{Options: &session.Options{Now: func() time.Time { return day.AddDate(0, 0, 10) }}})
	must(t, err)
	must(t, forked.Close())
	for name, parent := range map[string]string{"helper": "late", "helped": "helper"} {
		s, err := session.Create(t.Context(), st, session.Header{ID: name, ParentSession: parent, Relation: session.RelationSubagent, CreatedAt: day}, nil)
		must(t, err)
		must(t, s.Close())
	}
	all, err := upkeep.Survey(t.Context(), st, nil)
	must(t, err)
	going, _ := upkeep.Rule{OlderThan: 48 * time.Hour, MaxCount: -1}.Choose(all, day.AddDate(0, 0, 10))
	if got := namesOf(going, func(c upkeep.Choice) string { return c.Name }); got != "old" {
		t.Errorf("too old: %q, want only the old one", got)
	}
}
