package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// openTerminal returns both ends of a new terminal: what the program writes to,
// and where a screen would read it.
func openTerminal(t *testing.T) (slave, master *os.File) {
	t.Helper()
	slave, master, err := newTerminal(120)
	if err != nil {
		t.Fatal(err)
	}
	return slave, master
}

// onTerminal runs the program with a terminal for its output, and returns all that
// the terminal got.
func onTerminal(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	slave, master := openTerminal(t)
	defer master.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got := make(chan string)
	go func() {
		var all strings.Builder
		buf := make([]byte, 32<<10)
		n, err := master.Read(buf)
		for ; err == nil; n, err = master.Read(buf) { // an error comes when the other end is closed
			all.Write(buf[:n])
			if args[0] == "follow" { // which has begun, and would not end
				time.AfterFunc(100*time.Millisecond, cancel)
			}
		}
		got <- all.String()
	}()
	a := hostileApp(t, dir, slave, slave)
	code := a.run(ctx, args)
	slave.Close()
	return <-got, code
}

func hostileApp(t *testing.T, dir string, out, err io.Writer) *app {
	home := filepath.Dir(dir)
	env := map[string]string{"COPPICE_HOME": dir, "HOME": home, "XDG_CACHE_HOME": home, "TERM": "xterm-256color"}
	getenv := func(name string) string { return env[name] }
	return &app{talk: newTalk(out, err, getenv), stdin: strings.NewReader("text" + evil), getenv: getenv}
}

// tries are command lines for every command. Those at the end change the store.
func tries(t *testing.T, session, files string) [][]string {
	odd := "nope" + evil
	out := filepath.Join(t.TempDir(), "out")
	return [][]string{
		{"ls"},
		{"ls", "--all"},
		{"ls", "--json"},
		{"ls", "-n", "1", "--tag", "tag" + evil},
		{"ls", "-n", "1"},
		{"show", session},
		{"show", session, "--all", "--full"},
		{"show", session, "--all", "--json"},
		{"show", session, "--raw", "a3"},
		{"show", session, "--leaf", "id"},
		{"export", session, "--leaf", "id"},
		{"show", session, "--leaf", odd},
		{"show", session, "--at", "id"},
		{"resume", session, "--print"},
		{"resume", session, "--in", "claude-code", "--print"},
		{"show", session, "--at", odd},
		{"show", session, "--last", "2"},
		{"show", odd},
		{"tree", session, "--all"},
		{"tree", session, "--json"},
		{"images", session},
		{"images", "--search", "needle"},
		{"images", session, odd},
		{"tag"},
		{"tag", "--auto", "--all", "--dry-run"},
		{"chat", session, "--print", "needle" + evil},
		{"chat", session, "--json"},
		{"ipc", "--stdio"},
		{"mcp"},
		{"mcp", "install"},
		{"mcp", "install", "claude-code", "--name", odd, "--yes"},
		{"mcp", "uninstall", "claude-code", "--name", odd, "--yes"},
		{"serve", "--addr", odd},
		{"web", odd},
		{"search", "needle"},
		{"search", "needle", "--json"},
		{"search", odd},
		{"context", session},
		{"context", session, "--leaf", "a8"},
		{"context", session, "--format", "text"},
		{"context", session, "--json"},
		{"context", session, "--window", "1000"},
		{"compare", session, "b5", "a8"},
		{"stats"},
		{"stats", session},
		{"stats", "--json"},
		{"tag", session},
		{"tag", session, "--suggest"},
		{"fsck"},
		{"fsck", "--json"},
		{"fsck", session},
		{"repair", session, "--dry-run"},
		{"repair", "--stale", "--dry-run"},
		{"export", session, "--format", "md"},
		{"export", session, "--format", "html"},
		{"export", session, "--format", "json"},
		{"export", session, "--format", "jsonl"},
		{"export", session, "--to", "anthropic", "-o", "-"},
		{"export", session, "--to", "openai", "-o", "-"},
		{"export", session, "--to", "claude-code"},
		{"export", session, "-o", out + evilShell + ".md"},
		{"redact", session, "--dry-run"},
		{"redact", "--all", "--dry-run", "--json"},
		{"retain", "--older-than", "1d", "--dry-run"},
		{"import", files, "--dry-run"},
		{"import", files},
		{"import", files, "--json", "--again"},
		{"import", "--from", "claude-code", filepath.Join(files, "z\x1b]0;pwned\x07.json")},
		{"follow", session, "--last", "30"},
		{"follow", "--all", "--last", "30"},
		{"follow", session, "--last", "30", "--json"},
		{"__complete", "show", ""},
		{"__complete", "show", session, "--leaf", ""},
		{"index", "status"},
		{"index", "rebuild"},
		{"version"},
		{"man"},
		{"models"},
		{"models", odd},
		{"help", "show"},
		{"help", odd},
		{"config", "show"},
		{"config", "path"},
		{"config", "set", odd, "y"},
		{"config", "set", "color", odd},
		{"config", "get", odd},
		{"config", "unset", odd},
		{"config", "trust", odd},
		{"config", "untrust", odd},
		{"--bogus" + evil},
		{odd},
		{"compact", session, "--dry-run"},
		{"compact", session, "--summary", "sum" + evil},
		{"revert", session},
		{"merge", session, odd},
		{"merge", session, "a8", "--summary", "sum" + evil},
		{"revert", session},
		{"branch", session, odd},
		{"branch", session, "a5"},
		{"fork", session},
		{"note", session, "--by", odd, odd},
		{"append", session, "--role", "user", "text" + evil},
		{"append", session, "--role", "x" + evil, "text"},
		{"label", session, "a3", "x" + evil},
		{"rename", session, "t" + evil},
		{"tag", session, "+t" + evil},
		{"rate", session, "bad", "--note", "n" + evil},
		{"pin", session},
		{"unpin", session},
		{"new", "--title", "t" + evil},
		{"demo", out + evilShell},
		{"backup", out + "-backup"},
		{"restore", out + "-backup", "--dir", out + "-restored"},
		{"migrate"},
		{"copy", "--to", out + "-copy" + evilShell},
		{"archive", session},
		{"show", session},
		{"unarchive", session},
		{"repair", session},
		{"redact", session, "--apply"},
		{"rm", session},
		{"trash", "ls"},
		{"trash", "restore", session},
		{"trash", "empty", "--yes"},
		{"trash", "restore", odd},
		{"token", "add", "laptop", "--tag", "t" + evil},
		{"token", "add", "laptop", "--key", "k" + evil},
		{"token", "ls"},
		{"token", "revoke", odd},
		{"ls"},
	}
}

// checkCovered checks that there is a try for every command.
func checkCovered(t *testing.T, lines [][]string) {
	t.Helper()
	root := (&app{}).rootCommand()
	root.InitDefaultHelpCmd()
	tried := make(map[string]bool)
	for _, args := range lines {
		if cmd, _, err := root.Find(args); err == nil {
			tried[cmd.CommandPath()] = true
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" { // the scripts are cobra's, and the same for everybody
			return
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && !tried[cmd.CommandPath()] {
			t.Errorf("no try for %q: add one to tries", cmd.CommandPath())
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
}

// Whatever a session, a file or an argument says, and whatever is asked for: a
// terminal gets text and our own colours.
func TestNothingActsOnATerminal(t *testing.T) {
	dir, files := hostileStore(t), hostileFiles(t)
	lines := tries(t, evilSessions[0], files)
	checkCovered(t, lines)
	for _, args := range lines {
		out, code := onTerminal(t, dir, args...)
		for _, why := range screenFaults(out) {
			t.Errorf("%.60q: %s", args, why)
		}
		if out == "" {
			t.Errorf("%.60q says nothing (exit code %d): the try shows nothing", args, code)
		}
	}
}

// styles are all that may follow an escape: ours, and the clearing of a line that
// is drawn again.
var styles = regexp.MustCompile(`^\x1b\[(?:[0-9;]*m|K)`)

// screenFaults reads as a terminal does, and returns what is more than text.
func screenFaults(out string) []string {
	var faults []string
	before := rune(0)
	for len(out) > 0 {
		if style := styles.FindString(out); style != "" {
			out = out[len(style):]
			continue
		}
		r, n := utf8.DecodeRuneInString(out)
		switch {
		case r == utf8.RuneError && n == 1:
			faults = append(faults, fmt.Sprintf("the byte %#x", out[0]))
		case r == '\r' && (strings.HasPrefix(out, "\r\n") || strings.HasPrefix(out, "\r\x1b[K")): // the terminal adds the first
		case !plain.Harmless(before, r):
			faults = append(faults, fmt.Sprintf("%U in %.40q", r, out))
		}
		before, out = r, out[n:]
	}
	return faults[:min(len(faults), 3)]
}

// What is meant for people has no control characters in a pipe either, where
// there are no colours.
func TestNothingActsInAPipe(t *testing.T) {
	session := evilSessions[0]
	dir, files := hostileStore(t), hostileFiles(t)
	for _, args := range tries(t, session, files) {
		line := strings.Join(args, " ")
		if strings.Contains(line, "--json") || strings.Contains(line, "--raw") || args[0] == "follow" {
			continue
		}
		var out, talked bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		hostileApp(t, dir, &out, &talked).run(ctx, args)
		cancel()
		if args[0] == "export" {
			out.Reset() // a document keeps its bytes
		}
		for _, why := range append(screenFaults(out.String()), screenFaults(talked.String())...) {
			t.Errorf("%.60q: %s", args, why)
		}
		if bytes.ContainsRune(append(out.Bytes(), talked.Bytes()...), '\x1b') {
			t.Errorf("%.60q: an escape", args)
		}
	}
}

// Our own colours do reach a terminal, and text is where it should be.
func TestColoursReachATerminal(t *testing.T) {
	dir := hostileStore(t)
	out, code := onTerminal(t, dir, "search", "needle")
	if code != exitOK || !strings.Contains(out, "\x1b[1m") || !strings.Contains(out, "\x1b[31mneedle\x1b[0m") {
		t.Errorf("exit code %d: %q", code, out)
	}
	if strings.Contains(out, "\x1b[31m\u009b") || strings.Contains(out, "2J\x1b[31m") {
		t.Error("a colour of the session's reached the terminal")
	}
	out, _ = onTerminal(t, dir, "ls")
	if !strings.Contains(out, "\x1b[36m") {
		t.Errorf("the list has no colours: %q", out)
	}
}

// JSON is the same value on a terminal as in a pipe, what went wrong included.
func TestJSONOnATerminalIsTheSameValue(t *testing.T) {
	dir := hostileStore(t)
	args := []string{"show", evilSessions[0], "--all", "--json"}
	shown, _ := onTerminal(t, dir, args...)
	var piped, talked bytes.Buffer
	hostileApp(t, dir, &piped, &talked).run(t.Context(), args)
	if piped.Len() == 0 || !bytes.ContainsRune(piped.Bytes(), '\x7f') {
		t.Fatalf("the pipe got %q", piped.String())
	}
	if got, want := normalised(t, shown), normalised(t, piped.String()+talked.String()); got != want {
		t.Errorf("on a terminal %s\nin a pipe %s", got, want)
	}
}

// On a terminal, a command that writes prints one short line. Full ids are for
// programs.
func TestWritesPrintOneShortLineOnATerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	var said []string
	for _, text := range []string{"one", "two", "three"} {
		entry, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, entry)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	uuid := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	short := id[:18]
	for _, args := range [][]string{
		{"new"},
		{"append", short, "--role", "user", "hello"},
		{"fork", short},
		{"rename", short, "Beans"},
		{"tag", short, "+a"},
		{"tag", short, "+a"},
		{"pin", short},
		{"unpin", short},
		{"label", short, said[0], "start"},
		{"compact", short, "--summary", "x", "--first-kept", said[2]},
		{"revert", short},
		{"branch", short, said[0]},
		{"branch", short, said[0]},
		{"merge", short, said[1], "--summary", "x"},
	} {
		got, code := onTerminal(t, dir, args...)
		if code != exitOK || strings.Count(got, "\n") != 1 || uuid.MatchString(got) {
			t.Errorf("coppice %q: exit code %d, want one line without a whole id:\n%s", args, code, got)
		}
	}
}
