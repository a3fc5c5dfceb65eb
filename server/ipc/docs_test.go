package ipc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var documented = regexp.MustCompile("(?s)<!-- run: (\\w+) -->\n```\n(.*?)\n```\n")

var toolID = regexp.MustCompile(`"tool_id":"([^"]+)"`)

// TestDocs runs the examples of docs/ipc.md. In an answer, … stands for anything, and a line of it
// for any number of lines. In a request, "offline_…" is the tool that was asked about.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ipc.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := documented.FindAllStringSubmatch(string(text), -1)
	if len(examples) < 3 {
		t.Fatalf("docs/ipc.md has %d examples", len(examples))
	}
	for _, example := range examples {
		t.Run(example[1], func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			asked, any := "", false
			for line := range strings.SplitSeq(example[2], "\n") {
				if said, ok := strings.CutPrefix(line, "→ "); ok {
					c.say(strings.ReplaceAll(said, "offline_…", asked))
					continue
				}
				want, ok := strings.CutPrefix(line, "← ")
				if !ok {
					t.Fatalf("what is %q?", line)
				}
				if want == "…" {
					any = true
					continue
				}
				pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
				got := c.hear()
				for strings.HasPrefix(got, progress) || any && !pattern.MatchString(got) {
					got = c.hear()
				}
				any = false
				if id := toolID.FindStringSubmatch(got); id != nil {
					asked = id[1]
				}
				if !pattern.MatchString(got) {
					t.Fatalf("the answer is\n%s\nand docs/ipc.md has\n%s", got, want)
				}
			}
		})
	}
}
