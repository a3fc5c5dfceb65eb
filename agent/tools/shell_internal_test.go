package tools

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
)

// pieces is what lines are made of: mostly what is dangerous.
var pieces = []string{
	"go", "go ", "head", "rm", " ", " ", " ", "a", "-x", "./b", "=", "x=1 ", "'", "'", `"`, `"`, `\`, ";", "; ", "&", "&&", " && ", "|", "||", " | ",
	"$", "$(", ")", "`", "(", "{", "}", "{a,b}", "<", ">", "2>&1", " 2>&1", "*", "?", "[a]", "~", "#", " #", "!", "\n", "\t", "\r", "^", "%", "@", "+", ",", ":", "é", "\u00a0", "if ", "then ", "time ", "eval ", "$'", "\x01",
}

// What bash runs of a line that counts as simple are the commands that rules have seen,
// and no others.
func TestSimpleCommandsAreWhatBashRuns(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	rng := soak.Rand(t)
	var script strings.Builder
	// The lines run functions that only tell what they were called with: in one write,
	// because both sides of a | run at the same time.
	script.WriteString("PATH=/nowhere\nrecord() { local words; printf -v words '<%s>' \"$@\"; printf '%s\\0' \"$words\" >&3; }\n" +
		"go() { record go \"$@\"; }\nhead() { record head \"$@\"; return 1; }\ncommand_not_found_handle() { record \"$@\"; }\n")
	var lines []string
	var seen []map[string]bool
	for len(seen) < 400 {
		var line strings.Builder
		for range 1 + rng.IntN(12) {
			line.WriteString(pieces[rng.IntN(len(pieces))])
		}
		commands, err := simpleCommands(line.String(), false)
		if err != nil || strings.Contains(line.String(), "eval") {
			continue
		}
		ours := make(map[string]bool)
		for _, command := range commands {
			var words strings.Builder
			for _, w := range command {
				fmt.Fprintf(&words, "<%s>", w.text)
			}
			ours[words.String()] = true
		}
		lines, seen = append(lines, line.String()), append(seen, ours)
		quoted := "'" + strings.ReplaceAll(line.String(), "'", `'\''`) + "'"
		fmt.Fprintf(&script, "( eval -- %s ) >/dev/null 2>&1 </dev/null\nprintf '\\nend\\0' >&3\n", quoted)
	}
	cmd := exec.Command(bash, "--norc", "-s")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader("exec 3>&1\n"+script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	line, ran := 0, 0
	for record := range bytes.SplitSeq(out, []byte{0}) {
		switch command := string(record); {
		case command == "\nend":
			line++
		case command != "":
			ran++
			if !seen[line][command] {
				t.Errorf("%q: bash ran %q, and rules saw %v", lines[line], command, seen[line])
			}
		}
	}
	if line != len(lines) || ran < line/2 {
		t.Errorf("of %d lines %d ended, and %d commands ran", len(lines), line, ran)
	}
}
