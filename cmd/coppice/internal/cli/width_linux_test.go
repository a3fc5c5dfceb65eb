package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
)

// What is drawn fits the terminal. Prose that a terminal breaks by itself, and commands
// to copy, may be longer.
func TestDrawingsFitTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "NO_COLOR": "1", "COPPICE_PAGER": "cat", "COPPICE_HOME": dir + "/sessions"}
	if shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), []string{"demo"}) }); !strings.Contains(shown, "sessions") {
		t.Fatal(shown)
	}
	for _, width := range []int{40, 60, 80, 120, 200} {
		env["COLUMNS"] = fmt.Sprint(width)
		for _, line := range []string{
			"", "ls", "ls --all", "search build", "show nightly", "show --full table", "show --all kyoto", "tree nightly", "tree --all table", "context nightly",
			"stats", "stats nightly", "images kyoto", "retain --older-than 1d --dry-run", "compare nightly leaf nightly-06", "config show --origin",
		} {
			shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), strings.Fields(line)) })
			for _, row := range rowsOf(shown) {
				if ansi.StringWidth(row) > width && !mayBeLonger(row) {
					t.Errorf("%s at %d columns: %d: %q", line, width, ansi.StringWidth(row), row)
				}
			}
			if strings.Count(shown, "\n") < 2 {
				t.Errorf("%s at %d columns shows %q", line, width, shown)
			}
		}
	}
}

// rowsOf returns the lines on a terminal. A bar, which appears where a machine is slow,
// is drawn over again and again.
func rowsOf(shown string) []string {
	return strings.Split(strings.ReplaceAll(shown, "\r\x1b[K", "\n"), "\n")
}

// A bar fits the terminal too.
func TestBarFitsTheTerminal(t *testing.T) {
	for width := 20; width < 100; width++ {
		for done := range int64(11) {
			for _, pace := range []string{"", "12 MB/s, 1m23s left"} {
				drawn := progressBar("indexing", done, 10, pace, width)
				if ansi.StringWidth(drawn) >= width || width > 70 && !strings.Contains(drawn, strings.Repeat("█", 3*int(done))) || width > 70 && !strings.HasSuffix(drawn, pace) {
					t.Errorf("%d columns wide on %d: %q", ansi.StringWidth(drawn), width, drawn)
				}
			}
		}
	}
}

func mayBeLonger(row string) bool {
	return strings.Contains(row, "coppice ") || strings.Contains(row, "shared, ") || strings.HasPrefix(row, "sessions that would") ||
		strings.HasPrefix(row, "8 sessions in ")
}

// Two projects of the same name can be told apart.
func TestProjectsOfTheSameNameAreToldApart(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1", "COLUMNS": "120"}
	env["COPPICE_HOME"] = env["HOME"] + "/sessions"
	err := os.Mkdir(env["COPPICE_HOME"], 0o700)
	for i, dir := range []string{"/home/ada/work/api", "/home/ada/play/api", "/home/ada/forge"} {
		header := fmt.Sprintf(`{"type":"session","id":"s%d","version":1,"timestamp":"2026-01-01T10:00:00Z","cwd":%q}`+"\n", i, dir)
		err = errors.Join(err, os.WriteFile(fmt.Sprintf("%s/s%d.jsonl", env["COPPICE_HOME"], i), []byte(header), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), []string{"ls"}) })
	for _, want := range []string{" work/api ", " play/api ", " forge "} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	for _, filter := range []string{"project:work/api", "project:/home/ada/work/api", "project:/home/ada/work/api/"} {
		if shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), []string{"ls", filter}) }); strings.Count(shown, "\n") != 2 || !strings.Contains(shown, " api ") {
			t.Errorf("%s:\n%s", filter, shown)
		}
	}
	shown = screenOfApp(t, env, func(a *app) { a.run(t.Context(), []string{"search", "nothing", "project:work/api"}) })
	if strings.Contains(shown, "no session has") {
		t.Errorf("the filter is not known: %s", shown)
	}
}

// Ids are long, and none of what is listed at 80 columns is wider because of them.
func TestLongIDsFitTheTerminal(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1", "COLUMNS": "80"}
	env["COPPICE_HOME"] = env["HOME"] + "/sessions"
	const call = "toolu_011mk4qaB89ZVgGUK3FDLMAyXY"
	err := os.Mkdir(env["COPPICE_HOME"], 0o700)
	for i, agent := range []string{"claude-code", "codex"} {
		id := fmt.Sprintf("01a1bd98-2213-740d-8a5e-9c4fb71e03d%d", i)
		err = errors.Join(err, os.WriteFile(env["COPPICE_HOME"]+"/"+id+".jsonl", fmt.Appendf(nil, `{"type":"session","id":%q,"version":1,"timestamp":"2026-01-01T10:00:00Z","cwd":"/home/ada/a-long-project","origin":{"format":%q,"id":"x"}}
{"type":"message","id":"892b5f2b-b756-8000-9a9c-87c4cbc7f071","parent_id":null,"timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Find what is in this directory, and say it in a few words"}}]}}
{"type":"message","id":"892b5f2b-b756-8000-9a9c-87c4cbc7f072","parent_id":"892b5f2b-b756-8000-9a9c-87c4cbc7f071","timestamp":"2026-01-01T10:00:00Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":%q,"name":"ls","input":{}}}]}}
{"type":"message","id":"f0748d5a-0000-8000-9a9c-87c4cbc7f073","parent_id":"892b5f2b-b756-8000-9a9c-87c4cbc7f072","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"And then?"}}]}}
`, id, agent, call), 0o600))
	}
	transcript := env["HOME"] + "/talk.json"
	err = errors.Join(err, os.WriteFile(transcript, []byte(`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"a kind of block that nobody knows and that is long, too","x":1}]}]}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	const first = "9c4fb71e03d0" // the shortest name that the other does not have
	for line, wants := range map[string][]string{
		"ls":               {first, "AGENT", "claude-code ", "codex"},
		"context " + first: {"\n-  ", "And then?"},
		"fsck":             {first, "interrupted tool call", call},
		"show 9c4fb71e03d": {"ambiguous", "\n  " + first + " (Find what"},
	} {
		shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), strings.Fields(line)) })
		for _, row := range rowsOf(shown) {
			if ansi.StringWidth(row) > 80 {
				t.Errorf("%s: %d columns: %q", line, ansi.StringWidth(row), row)
			}
		}
		for _, want := range wants {
			if !strings.Contains(shown, want) {
				t.Errorf("%s does not have %q:\n%s", line, want, shown)
			}
		}
	}
}

// Messages about damage fit a terminal, even with long ids that begin alike. A command to copy is on
// one line and names one session.
func TestDamageFitsTheTerminal(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1", "COLUMNS": "80"}
	env["COPPICE_HOME"] = env["HOME"] + "/s"
	err := os.Mkdir(env["COPPICE_HOME"], 0o700)
	for i := range 2 {
		id := fmt.Sprintf("01a1bd98-2213-740d-8a5e-9c4fb71e03d%d", i)
		err = errors.Join(err, os.WriteFile(env["COPPICE_HOME"]+"/"+id+".jsonl", fmt.Appendf(nil, `{"type":"session","id":%q,"version":1,"timestamp":"2026-01-01T10:00:00Z"}
{"type":"message","id":"892b5f2b-b756-8000-9a9c-87c4cbc7f071","parent_id":null,"timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Find what is in this directory, and say it in a few words"}}]}}
{"type":"message","id":"f2748d5a-0000-8000-9a9c-87c4cbc7f075","parent_id":"01cb5f2b-b756-8000-9a9c-87c4cbc7f999","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"And then?"}}]}}
{"type":"message","id":"f3748d5a-0000-8000-9a9c-87c4cbc7f076","parent_id":"f2748d5a-0000-8000-9a9c-87c4cbc7f075","timest
`, id), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	const first = "9c4fb71e03d0"
	for _, test := range []struct{ line, want string }{
		{"fsck", "hint: coppice repair " + first + " --dry-run shows"},
		{"context " + first, "hint: coppice fsck " + first + " says"},
		{"context " + first, "content is missing: entry 01cb5f2b: "},
		{"show " + first, "; coppice repair " + first + " mends\n"},
		{"show " + first, `coppice: read "` + first + `": content is missing`},
		{"repair " + first + " --dry-run", first + " at byte "},
		{"repair " + first + " --dry-run", " entry f2748d5a: leaf: "},
		{"rm " + first, "; coppice trash restore 9c4fb71e brings"},
	} {
		shown := screenOfApp(t, env, func(a *app) { a.run(t.Context(), strings.Fields(test.line)) })
		for _, row := range rowsOf(shown) {
			if ansi.StringWidth(row) > 80 {
				t.Errorf("%s: %d columns: %q", test.line, ansi.StringWidth(row), row)
			}
		}
		if !strings.Contains(shown, test.want) {
			t.Errorf("%s does not have %q:\n%s", test.line, test.want, shown)
		}
	}
}

// A command to copy is not broken, at any width, and one within a longer one makes no difference.
func TestCommandsAreNotBroken(t *testing.T) {
	t.Parallel()
	a := &app{talk: newTalk(os.Stdout, os.Stderr, os.Getenv)}
	short, long := a.command("repair", nil), a.command("repair", []string{"a b"}, "--dry-run")
	for width := 24; width < 100; width++ {
		shown := a.hanging("two faults were found in it; "+long+" shows what can be done, and "+short+" does it", width)
		if !strings.Contains(shown, long) || !strings.Contains(shown, short+" ") && !strings.Contains(shown, short+"\n") {
			t.Errorf("at %d columns:\n%s", width, shown)
		}
		for _, row := range rowsOf(shown) {
			if ansi.StringWidth(row) > max(width, len(long)+2) {
				t.Errorf("%d columns at %d: %s", ansi.StringWidth(row), width, row)
			}
		}
	}
}

// Nor is the command of another program.
func TestCommandOfAnAgentIsNotBroken(t *testing.T) {
	t.Parallel()
	const resume = "cd /home/ada/a-long-project/with/parts && codex resume 5ae37d46-a99b-8f3b-b3ba-9b5555171146"
	env := map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1", "COLUMNS": "80"}
	shown := screenOfApp(t, env, func(a *app) { _ = a.printWritten(&home.ExportResult{Resume: resume}) })
	if !strings.Contains(shown, resume) {
		t.Error(shown)
	}
}
