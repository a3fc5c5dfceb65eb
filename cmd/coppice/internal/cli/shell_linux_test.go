package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// stub stands for the programs that are named in commands: it notes what it was
// given. What it notes is separated by characters that no argument has.
const stub = `note() { for word; do printf '%s\037' "$word"; done >>noted; printf '\036' >>noted; }
coppice() { note coppice "$@"; }
claude() { note claude "$@"; }
cd() { note cd "$@"; }
`

// suggested finds the commands in what the program says. What follows a command
// on its line is a part of what a careless reader copies. An id may end in "cd", too.
var suggested = regexp.MustCompile(`(?:coppice (?:show|tree|ls|branch|revert|repair|trash restore|context|export) |\bcd |export COPPICE_HOME=).*`)

// Whatever ids and names are in the store: a command that is printed for the
// reader does what it says, and nothing else.
func TestPrintedCommandsDoWhatTheySay(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := hostileStore(t), hostileFiles(t)
	lines := append(tries(t, evilSessions[0], files), // the last first: they need the session as it is
		[]string{"show", "--", "-rf"}, []string{"search", "branch needle"}, []string{"fsck", "--", "-rf"}, []string{"rm", "--", "-rf"})
	var commands []string
	for _, args := range lines {
		if args[0] == "follow" || args[0] == "help" {
			continue
		}
		var out, talked bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		hostileApp(t, dir, &out, &talked).run(ctx, args)
		cancel()
		said := out.String() + talked.String()
		switch {
		case args[0] == "search" && slices.Contains(args, "--json"):
			said = opensIn(t, out.Bytes())
		case slices.Contains(args, "--json") || args[0] == "export" && !slices.Contains(args, "claude-code"):
			continue
		}
		commands = append(commands, suggested.FindAllString(ansi.Strip(said), -1)...)
	}
	commands = slices.Compact(slices.Sorted(slices.Values(commands)))
	verbs := make(map[string]int)
	for _, command := range commands {
		for _, argv := range runNoted(t, sh, command) {
			verb := argv[0] + " " + argv[1]
			if argv[0] == "coppice" {
				checkArguments(t, command, argv[1:])
			}
			verbs[verb]++
		}
	}
	for _, verb := range []string{"coppice show", "coppice branch", "coppice revert", "coppice repair", "coppice trash", "coppice ls", "claude --resume"} {
		if verbs[verb] == 0 {
			t.Errorf("no command %q was printed and run; there were %v in %q", verb, verbs, commands)
		}
	}
}

// opensIn returns the commands in the JSON output of search.
func opensIn(t *testing.T, out []byte) string {
	t.Helper()
	var opens []string
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var hit struct{ Open string }
		if err := dec.Decode(&hit); err != nil {
			t.Fatal(err)
		}
		opens = append(opens, hit.Open)
	}
	return strings.Join(opens, "\n")
}

// runNoted has a shell run a line, and returns the commands that it understood.
func runNoted(t *testing.T, sh, line string) [][]string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(sh, "-c", stub+line+"\n")
	cmd.Dir = dir
	said, _ := cmd.CombinedOutput() // words that follow the command may be wrong
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file.Name() != "noted" {
			t.Errorf("%s made the file %q", line, file.Name())
		}
	}
	noted, err := os.ReadFile(filepath.Join(dir, "noted"))
	if err != nil && !strings.HasPrefix(line, "export") {
		t.Errorf("%s ran nothing: %s", line, said)
	}
	var commands [][]string
	for one := range strings.SplitSeq(strings.TrimSuffix(string(noted), "\x1e"), "\x1e") {
		if words := strings.Split(strings.TrimSuffix(one, "\x1f"), "\x1f"); len(words) > 1 {
			commands = append(commands, words)
		}
	}
	return commands
}

// checkArguments checks that the session and the entry that a command names are
// ones that there are.
func checkArguments(t *testing.T, line string, argv []string) {
	t.Helper()
	begins := func(given string, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return given != "" && strings.HasPrefix(strings.ReplaceAll(name, evilByte, "\x9b"), given) || name == given
		})
	}
	namesEntry := func(word string) bool { return word == "--leaf" || word == "--at" }
	if at := slices.IndexFunc(argv, namesEntry); at > 0 && len(argv) > at+1 {
		known := append([]string{"a", "b"}, evilEntries...)
		if leaf := argv[at+1]; !begins(leaf, known) && !regexp.MustCompile(`^(?:[ab][0-9]|dup.*|[0-9a-f-]+)$`).MatchString(leaf) {
			t.Errorf("%s names the entry %q", line, leaf)
		}
	}
	for i, given := range argv {
		odd := strings.ContainsAny(given, ";$")
		if odd && i > 0 && !namesEntry(argv[i-1]) && argv[i-1] != "#" && !begins(given, evilSessions) {
			t.Errorf("%s names %q", line, given)
		}
		if given == "-rf" && !slices.Contains(argv[:i], "--") {
			t.Errorf("%s gives %q as a flag", line, given)
		}
	}
}
