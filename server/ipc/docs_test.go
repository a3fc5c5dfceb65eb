package ipc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var documented = regexp.MustCompile("(?s)<!-- run: (\\w+) -->\n```\n(.*?)\n```\n")

// TestDocs runs the examples of docs/ipc.md. In an answer, … stands for anything.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ipc.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := documented.FindAllStringSubmatch(string(text), -1)
	if len(examples) < 2 {
		t.Fatalf("docs/ipc.md has %d examples", len(examples))
	}
	for _, example := range examples {
		t.Run(example[1], func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			for line := range strings.SplitSeq(example[2], "\n") {
				if said, ok := strings.CutPrefix(line, "→ "); ok {
					c.say(said)
					continue
				}
				want, ok := strings.CutPrefix(line, "← ")
				if !ok {
					t.Fatalf("what is %q?", line)
				}
				got := c.hear()
				for strings.HasPrefix(got, progress) {
					got = c.hear()
				}
				pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$"
				if !regexp.MustCompile(pattern).MatchString(got) {
					t.Fatalf("the answer is\n%s\nand docs/ipc.md has\n%s", got, want)
				}
			}
		})
	}
}
