package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// piCount counts what is in a file by looking at the JSON alone.
func piCount(_ *testing.T, _ string, data []byte) (c transcripttest.Counts) {
	for line := range strings.Lines(string(data)) {
		var v struct {
			Type    string
			Message struct {
				Role    string
				Content json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &v) != nil || v.Type != "message" && v.Type != "custom_message" {
			continue
		}
		c.Messages++
		if v.Message.Role == "toolResult" {
			c.Results++
		}
		var blocks []struct{ Type string }
		_ = json.Unmarshal(v.Message.Content, &blocks)
		for _, b := range blocks {
			if b.Type == "toolCall" {
				c.Calls++
			}
		}
	}
	return c
}

// TestPiSamples reads real files, where there are any, and writes them again. What version 1 lacks is not compared.
func TestPiSamples(t *testing.T) {
	t.Parallel()
	for _, path := range transcripttest.Samples(t, "pi/*/*.jsonl") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := piCollect(t, path)
			s, err := transcripttest.Script(t.Context(), c.Conversations[0])
			if err != nil {
				t.Fatal(err)
			}
			out, err := pi.Format().Write(t.Context(), s, environment())
			if err != nil {
				t.Fatal(err)
			}
			var want []any
			for line := range strings.Lines(string(data)) {
				if json.Valid([]byte(line)) {
					want = append(want, piLines(t, line)...)
				}
			}
			got := piLines(t, string(out.Files[0].Data))
			if diff := cmp.Diff(asVersion3(want), asVersion3(got)); diff != "" {
				t.Errorf("the file differs (-read +written):\n%s", diff)
			}
		})
	}
}

// asVersion3 takes away what is in one version and not in the other.
func asVersion3(list []any) []any {
	for _, line := range list[1:] {
		m, _ := line.(map[string]any)
		for _, name := range []string{"id", "parentId", "firstKeptEntryId", "firstKeptEntryIndex"} {
			delete(m, name)
		}
	}
	if header, ok := list[0].(map[string]any); ok {
		delete(header, "version")
	}
	return list
}
