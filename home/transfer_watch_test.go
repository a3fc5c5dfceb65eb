package home_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// inClaudeCode is where Claude Code of a user keeps the n-th conversation.
func inClaudeCode(user string, n int) string {
	return filepath.Join(user, ".claude", "projects", "-w", fmt.Sprintf("%08d-4d57-4a54-9be1-3f6b1b2f6f10.jsonl", n))
}

// inPi is where pi keeps a conversation, and what is in it.
func inPi(user string, n int) (path, text string) {
	id := fmt.Sprintf("%08d-4d57-4a54-9be1-3f6b1b2f6f20", n)
	return filepath.Join(user, ".pi", "agent", "sessions", "--w--", "2026-01-02T03-04-05-000Z_"+id+".jsonl"),
		`{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}` + "\n" +
			`{"type":"message","id":"aaaa0001","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"plant a hazel"}}` + "\n"
}

// watchAgents watches until the returned function is called.
func (h *house) watchAgents(at *home.Home, which string) (stop func()) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := at.WatchAgents(ctx, which); err != nil {
			h.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); work.Wait() })
	h.Cleanup(stop)
	return stop
}

// titles lists the titles of the sessions, as soon as there are so many.
func (h *house) titles(n int) []string {
	h.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		list, err := h.Sessions.List(h.Context(), home.ListRequest{Limit: -1})
		if err != nil {
			h.Fatal(err)
		}
		if len(list.Sessions) >= n || time.Since(began) > 30*time.Second {
			var titles []string
			for _, s := range list.Sessions {
				titles = append(titles, s.Title)
			}
			if len(titles) != n {
				h.Fatalf("the home has %q, want %d sessions", titles, n)
			}
			return titles
		}
	}
}

// TestAgentsWhoseSessionsAreHereAreWatched: one agent's sessions were imported, those of another
// never. Only the first is watched, and nobody need ask for that. The other is what a person is
// asked about, once. Nothing is changed where the agents keep it.
func TestAgentsWhoseSessionsAreHereAreWatched(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	user := h.env["HOME"]
	first := writeText(t, inClaudeCode(user, 1), claudeCode(1, "prune the hazel"))
	pi, text := inPi(user, 1)
	writeText(t, pi, text)
	others, err := h.UnwatchedAgents(t.Context())
	if err != nil || len(others) != 2 {
		t.Errorf("an empty home could ask about %+v, %v", others, err)
	}
	if _, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{first}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	others, err = h.UnwatchedAgents(t.Context())
	if err != nil || len(others) != 1 || others[0].Title != "pi" || others[0].Files != 1 {
		t.Errorf("it could ask about %+v, %v; want pi", others, err)
	}
	stop := h.watchAgents(h.Home, "")
	time.Sleep(100 * time.Millisecond)
	writeText(t, inClaudeCode(user, 2), claudeCode(2, "water the fern"))
	for _, title := range h.titles(2) {
		if strings.Contains(title, "plant") {
			t.Error("nobody has asked for the sessions of pi")
		}
	}
	stop()
	writeText(t, inClaudeCode(user, 3), claudeCode(3, "feed the moss"))
	h.titles(2)
	for which, want := range map[string]int{home.ImportNone: 2, home.ImportAll: 4} {
		if which == home.ImportAll {
			h.watchAgents(h.Home, which)
		} else if err := h.WatchAgents(t.Context(), which); err != nil {
			t.Error(err)
		}
		h.titles(want)
	}
	if got := readText(t, first) + readText(t, pi); got != claudeCode(1, "prune the hazel")+text {
		t.Errorf("the agents' files are now %q", got)
	}
}

// TestTheSettingSaysWhichAgentsAreWatched: what a person said is not asked again.
func TestTheSettingSaysWhichAgentsAreWatched(t *testing.T) {
	t.Parallel()
	for which, want := range map[string]int{home.ImportKnown: 0, home.ImportNone: 0, home.ImportAll: 1} {
		h := newHouseInFiles(t)
		h.env["COPPICE_IMPORT"] = which
		pi, text := inPi(h.env["HOME"], 1)
		writeText(t, pi, text)
		h.Home = h.open(&home.Options{Create: true, Settings: settings(t, h.env)})
		if others, err := h.UnwatchedAgents(t.Context()); err != nil || len(others) > 0 {
			t.Errorf("%s: it could ask about %+v, %v", which, others, err)
		}
		stop := h.watchAgents(h.Home, "")
		if want == 0 {
			time.Sleep(200 * time.Millisecond)
		}
		h.titles(want)
		stop()
	}
	if err := newHouseInFiles(t).WatchAgents(t.Context(), "some"); home.KindOf(err) != home.KindInvalid || !strings.Contains(err.Error(), "ask, known, all or none") {
		t.Errorf("agents that nobody can mean: %v", err)
	}
}

// TestSessionsOfElsewhereDoNotMakeAnAgentKnown: a session that was imported from a copy, and one
// that was exported to the agent, are no wish to import what the agent keeps here.
func TestSessionsOfElsewhereDoNotMakeAnAgentKnown(t *testing.T) {
	t.Parallel()
	h := imported(t, "prune the hazel")
	if _, err := h.Transfer.Resume(t.Context(), home.ResumeRequest{Session: "last", In: "claude-code"}); err != nil {
		t.Fatal(err)
	}
	others, err := h.UnwatchedAgents(t.Context())
	if err != nil || len(others) != 1 || others[0].Title != "Claude Code" {
		t.Errorf("it could ask about %+v, %v; want Claude Code", others, err)
	}
}

// TestAHomeElsewhereWatchesNoAgentsHere: looking at the sessions of another machine sends none
// there.
func TestAHomeElsewhereWatchesNoAgentsHere(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	user := h.env["HOME"]
	writeText(t, inClaudeCode(user, 1), claudeCode(1, "prune the hazel"))
	h.env["COPPICE_IMPORT"] = home.ImportAll
	away, err := home.Away(t.Context(), h.Store(), overThere{h.Home, t.TempDir()}, &home.Options{Create: true, Settings: settings(t, h.env)})
	if err != nil {
		t.Fatal(err)
	}
	if others, err := away.UnwatchedAgents(t.Context()); err != nil || len(others) > 0 {
		t.Errorf("it could ask about %+v, %v", others, err)
	}
	if err := away.WatchAgents(t.Context(), ""); err != nil { // returns at once
		t.Error(err)
	}
	h.titles(0)
	h.watchAgents(away, home.ImportAll)
	h.titles(1)
}

// TestWhatCannotBeWatchedIsSaidOnce: a file that cannot be read is no reason to stop.
func TestWhatCannotBeWatchedIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	user := h.env["HOME"]
	var mu sync.Mutex
	var said []home.Notice
	h.Home = h.open(&home.Options{Create: true, Settings: settings(t, h.env), Notify: func(n home.Notice) {
		mu.Lock()
		defer mu.Unlock()
		if n.Kind == home.ImportFailed {
			said = append(said, n)
		}
	}})
	db := filepath.Join(user, ".local", "share", "opencode", "opencode.db")
	writeText(t, db, "SQLite format 3\x00 and nothing that a database has")
	writeText(t, inClaudeCode(user, 0), claudeCode(0, "prune the hazel"))
	h.watchAgents(h.Home, home.ImportAll)
	for i := range 3 {
		h.titles(i + 1)
		writeText(t, db, "SQLite format 3\x00 and nothing that a database has"+strings.Repeat("!", i+1))
		writeText(t, inClaudeCode(user, i+1), claudeCode(i+1, "prune the hazel"))
	}
	h.titles(4)
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 1 || said[0].Path != db || said[0].Error == nil {
		t.Errorf("it said %+v", said)
	}
}

// TestTwoProgramsWatchOneHome: each sees what an agent appends, and it is there once.
func TestTwoProgramsWatchOneHome(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	user := h.env["HOME"]
	if err := os.MkdirAll(filepath.Dir(inClaudeCode(user, 0)), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h.watchAgents(h.open(&home.Options{Create: true, Settings: settings(t, h.env)}), home.ImportAll)
	}
	const files, lines = 3, 12
	for i := range lines {
		for n := range files {
			f, err := os.OpenFile(inClaudeCode(user, n), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			line := strings.Replace(claudeCodeLine(n, i, fmt.Sprintf("line %d", i)), `"parentUuid":null`, parentOf(n, i), 1)
			if _, err := f.WriteString(line); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.titles(files)
	messages := func() (most, least int) {
		list, err := h.Sessions.List(t.Context(), home.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		least = lines
		for _, s := range list.Sessions {
			n := 0
			_, err := h.Entries.Path(t.Context(), home.PathRequest{Session: s.ID, All: true}, func(e session.Entry) error {
				if e.Message != nil {
					n++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			most, least = max(most, n), min(least, n)
		}
		return most, least
	}
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
		if _, least := messages(); least == lines {
			break
		}
	}
	time.Sleep(time.Second) // for what would come twice
	if most, least := messages(); most != lines || least != lines {
		t.Errorf("the sessions have between %d and %d messages, want %d", least, most, lines)
	}
}

func parentOf(n, i int) string {
	if i == 0 {
		return `"parentUuid":null`
	}
	return fmt.Sprintf(`"parentUuid":"%08d-0000-4000-8000-%012d"`, n, i)
}
