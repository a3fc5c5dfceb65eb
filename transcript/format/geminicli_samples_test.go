package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// geminicliCounts are those of a recording.
type geminicliCounts struct{ Users, Answers, Calls int }

type geminicliCounted struct {
	ID, Type, Role string
	ToolCalls      []struct{ ID string }
}

// countMessages counts by looking at the JSON alone: the last version of each id.
func countMessages(t *testing.T, path string, data []byte) (c geminicliCounts) {
	t.Helper()
	var list []geminicliCounted
	if filepath.Ext(path) == ".json" {
		var doc struct{ Messages, History []geminicliCounted }
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		list = append(doc.Messages, doc.History...)
	} else {
		at := map[string]int{}
		for line := range strings.Lines(string(data)) {
			var m geminicliCounted
			if json.Unmarshal([]byte(line), &m) != nil || m.ID == "" {
				continue
			}
			if i, again := at[m.ID]; again {
				list[i] = m
				continue
			}
			at[m.ID] = len(list)
			list = append(list, m)
		}
	}
	for _, m := range list {
		switch m.Type + m.Role {
		case "user":
			c.Users++
		case "gemini", "model":
			c.Answers++
		}
		c.Calls += len(m.ToolCalls)
	}
	return c
}

func geminicliCountRecords(c *transcript.Collected) (n geminicliCounts) {
	for _, conv := range c.Conversations {
		for _, r := range conv.Records {
			if r.Entry.Message == nil {
				continue
			}
			switch r.Entry.Message.Role {
			case "user":
				n.Users++
			case "assistant":
				n.Answers++
			}
			for _, b := range r.Entry.Message.Content {
				if b.ToolUse != nil {
					n.Calls++
				}
			}
		}
	}
	return n
}

func TestGeminiCLISamples(t *testing.T) {
	t.Parallel()
	paths := append(transcripttest.Samples(t, "gemini-cli/*.json*"), transcripttest.Samples(t, "gemini-cli/*/*.json*")...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := geminicliCollect(t, path)
			if diff := cmp.Diff(countMessages(t, path, data), geminicliCountRecords(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
			if len(c.Problems) != 0 {
				t.Errorf("problems are %v", c.Problems)
			}
		})
	}
}
