package home_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// onShelf is a session for a shelf: how long before shelfNow something was said in it, where, and
// what else is special about it.
type onShelf struct {
	name   string
	before time.Duration
	cwd    string
	pinned bool
}

var shelved = []onShelf{
	{"today", time.Hour, "/src/oak", false},
	{"late", 10 * time.Hour, "/other/oak", false}, // the day before in UTC, but not for the reader
	{"yesterday", 24 * time.Hour, "/src/ash", true},
	{"before", 25 * time.Hour, "/src/oak", false},
	{"week", 3 * 24 * time.Hour, "", false},
	{"month", 40 * 24 * time.Hour, "/src/ash", true},
}

// shelfNow is 10:30 on a Saturday, two hours east of UTC.
var shelfNow = time.Date(2026, 3, 14, 10, 30, 0, 0, time.FixedZone("", 2*60*60))

func shelfHome(t *testing.T, shelved []onShelf) *home.Home {
	t.Helper()
	dir := t.TempDir()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(h session.Header, at time.Time, says string) {
		t.Helper()
		h.CreatedAt = at
		s, err := session.Create(t.Context(), st, h, &session.Options{Now: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if says == "" {
			return
		}
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(says)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range shelved {
		add(session.Header{ID: one.name, CWD: one.cwd}, shelfNow.Add(-one.before), one.name)
	}
	add(session.Header{ID: "empty", CWD: "/src/elm"}, shelfNow, "")
	add(session.Header{ID: "sub", CWD: "/src/sub", ParentSession: "today", Relation: session.RelationSubagent}, shelfNow, "sub")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	h := (&house{T: t, dir: dir}).open(&home.Options{})
	for _, one := range shelved {
		if _, err := h.Sessions.Pin(t.Context(), home.PinRequest{Session: one.name, Pinned: one.pinned}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestShelf checks the rows of each request, their groups, and how many there are.
func TestShelf(t *testing.T) {
	t.Parallel()
	h := shelfHome(t, shelved)
	all := "pinned: yesterday month, today: today late, yesterday: before, Wednesday, 11 March: week"
	for _, test := range []struct {
		what string
		r    home.ShelfRequest
		want string
	}{
		{"all", home.ShelfRequest{}, all + " (6)"},
		{"with the empty ones", home.ShelfRequest{Empty: true}, strings.Replace(all, "today: today", "today: empty today", 1) + " (7)"},
		{"within the pinned", home.ShelfRequest{Limit: 1}, "pinned: yesterday (2+)"},
		{"as many as are pinned", home.ShelfRequest{Limit: 2}, "pinned: yesterday month (3+)"},
		{"past the pinned", home.ShelfRequest{From: 1, Limit: 3}, "pinned: month, today: today late (5+)"},
		{"after the pinned", home.ShelfRequest{From: 3, Limit: 2}, "today: late, yesterday: before (6+)"},
		{"at the end", home.ShelfRequest{From: 4, Limit: 2}, "yesterday: before, Wednesday, 11 March: week (6)"},
		{"beyond the end", home.ShelfRequest{From: 40}, " (6)"},
		{"counted", home.ShelfRequest{Limit: 1, Total: true}, "pinned: yesterday (6)"},
		{"another zone", home.ShelfRequest{Now: shelfNow.UTC(), From: 2, Limit: 2}, "today: today, yesterday: late (5+)"},
		{"by title", home.ShelfRequest{Sort: "title", From: 1}, "pinned: yesterday, : before late today week (6)"},
		{"reversed", home.ShelfRequest{Reverse: true, From: 1, Limit: 2}, "pinned: yesterday, Wednesday, 11 March: week (4+)"},
		{"by project", home.ShelfRequest{ByProject: true}, "pinned: yesterday month, src/oak: today before, other/oak: late, no project: week (6)"},
		{"the end by project", home.ShelfRequest{ByProject: true, From: 4, Limit: 9}, "other/oak: late, no project: week (6)"},
		{"beyond the end by project", home.ShelfRequest{ByProject: true, From: 9}, " (6)"},
		{"a filter", home.ShelfRequest{Filter: "project:ash"}, "pinned: yesterday month (2)"},
		{"only subagents", home.ShelfRequest{Filter: "project:sub"}, "today: sub (1)"},
		{"only subagents by project", home.ShelfRequest{Filter: "project:sub", ByProject: true}, "sub: sub (1)"},
		{"beyond the subagents", home.ShelfRequest{Filter: "project:sub", From: 5}, " (1)"},
		{"nothing", home.ShelfRequest{Filter: "project:okk"}, " (0) no session has project:okk; did you mean: project:oak"},
	} {
		if test.r.Now.IsZero() {
			test.r.Now = shelfNow
		}
		got, err := h.Sessions.Shelf(t.Context(), test.r)
		if err != nil {
			t.Errorf("%s: %v", test.what, err)
		} else if text := shelfText(got); text != test.want {
			t.Errorf("%s:\n%s, want\n%s", test.what, text, test.want)
		}
	}
	for _, r := range []home.ShelfRequest{{From: -1}, {Limit: -1}, {Sort: "colour"}, {Filter: "words"}} {
		if _, err := h.Sessions.Shelf(t.Context(), r); home.KindOf(err) != home.KindInvalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func shelfText(r *home.ShelfResult) string {
	var groups []string
	last := "none"
	for _, row := range r.Rows {
		if row.Group != last {
			groups = append(groups, row.Group+":")
			last = row.Group
		}
		groups[len(groups)-1] += " " + row.ID
	}
	text := fmt.Sprint(strings.Join(groups, ", "), " (", r.Count)
	if !r.Counted {
		text += "+"
	}
	text += ")"
	for _, u := range r.Unknown {
		text += " " + u.Text(nil)
	}
	return text
}

// TestShelfTellsProjectsFromOtherGroups with the same name.
func TestShelfTellsProjectsFromOtherGroups(t *testing.T) {
	t.Parallel()
	h := shelfHome(t, []onShelf{
		{"today", 1 * time.Hour, "/src/no project", false},
		{"a", 2 * time.Hour, "/src/oak", false},
		{"b", 3 * time.Hour, "/src/pinned", false},
		{"c", 4 * time.Hour, "", false},
		{"d", 5 * time.Hour, "/src/pinned", true},
		{"e", 6 * time.Hour, "/src/no project", false},
	})
	got, err := h.Sessions.Shelf(t.Context(), home.ShelfRequest{ByProject: true, Now: shelfNow})
	if err != nil {
		t.Fatal(err)
	}
	if text, want := shelfText(got), "pinned: d, src/no project: today e, oak: a, src/pinned: b, no project: c (6)"; text != want {
		t.Errorf("%s, want\n%s", text, want)
	}
}

// TestShelfSaysWhatSessionsCost only if it is asked, because the cost may have to be added up.
func TestShelfSaysWhatSessionsCost(t *testing.T) {
	t.Parallel()
	h, id := cardHome(t)
	for _, cost := range []bool{false, true} {
		got, err := h.Sessions.Shelf(t.Context(), home.ShelfRequest{Cost: cost})
		if err != nil {
			t.Fatal(err)
		}
		if at := slices.IndexFunc(got.Rows, func(row home.ShelfRow) bool { return row.ID == id }); at < 0 {
			t.Errorf("%s is missing", id)
		} else if u := got.Rows[at].Cost; (u != nil) != cost || cost && u.Output != 30 {
			t.Errorf("it cost %+v", u)
		}
	}
}

// TestShelfGroupsTheLatest leaves out what is older than the latest thousand, and says so.
func TestShelfGroupsTheLatest(t *testing.T) {
	t.Parallel()
	h, err := home.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for n := range 1001 {
		if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{CWD: fmt.Sprint("/", n%2)}); err != nil {
			t.Fatal(err)
		}
		if n < 999 {
			continue
		}
		got, err := h.Sessions.Shelf(t.Context(), home.ShelfRequest{ByProject: true, Empty: true, From: 998, Limit: 5})
		if err != nil || len(got.Rows) != 2 || got.Count != 1000 || got.Cut != (n == 1000) {
			t.Errorf("of %d: %d rows of %d, cut: %v, %v", n+1, len(got.Rows), got.Count, got.Cut, err)
		}
	}
}

// With AsIs, the shelf is as old as the index.
func TestShelfAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	count := func(r home.ShelfRequest) int {
		t.Helper()
		h, err := home.Open(t.Context(), dir, &home.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		got, err := h.Sessions.Shelf(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Rows)
	}
	keep(t, dir, "one", 1, "hello")
	if n := count(home.ShelfRequest{AsIs: true}); n != 1 { // nothing was known yet
		t.Errorf("%d sessions at first", n)
	}
	keep(t, dir, "two", 1, "hello")
	if n := count(home.ShelfRequest{AsIs: true}); n != 1 {
		t.Errorf("%d sessions as it is", n)
	}
	if n := count(home.ShelfRequest{}); n != 2 {
		t.Errorf("%d sessions", n)
	}
}
