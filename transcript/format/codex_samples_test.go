package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// codexCounts are those of a rollout.
type codexCounts struct{ Messages, Calls, Results int }

// item is as much of an item as is needed to count it.
type item struct{ Type, Role string }

func (c *codexCounts) add(i item) {
	switch {
	case i.Type == "ghost_snapshot" || i.Type == "token_count" || i.Type == "error" || i.Type == "" && i.Role == "":
		return
	case strings.HasSuffix(i.Type, "_output") || i.Type == "tool_result" || i.Type == "function_result":
		c.Results++
	case strings.HasSuffix(i.Type, "function_call") || strings.HasSuffix(i.Type, "tool_call") ||
		i.Type == "local_shell_call" || i.Type == "tool_search_call":
		c.Calls++
	}
	c.Messages++
}

// countItems counts the items of a rollout by looking at the JSON alone. Files
// without any are counted by their events.
func countItems(t *testing.T, path string, data []byte) (c codexCounts) {
	t.Helper()
	if filepath.Ext(path) == ".json" {
		var doc struct{ Items []item }
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		for _, i := range doc.Items {
			c.add(i)
		}
		return c
	}
	for line := range strings.Lines(string(data)) {
		var v struct {
			item
			Payload *item
		}
		if json.Unmarshal([]byte(line), &v) != nil {
			continue
		}
		switch {
		case v.Payload == nil && v.Type != "session_meta":
			c.add(v.item)
		case v.Payload != nil && v.Type == "response_item":
			c.add(*v.Payload)
		}
	}
	return c
}

func codexCountRecords(c *transcript.Collected) (n codexCounts) {
	for _, conv := range c.Conversations {
		for _, r := range conv.Records {
			if r.Entry.Message == nil {
				continue
			}
			n.Messages++
			for _, b := range r.Entry.Message.Content {
				if b.ToolUse != nil {
					n.Calls++
				}
				if b.ToolResult != nil {
					n.Results++
				}
			}
		}
	}
	return n
}

// spent adds up what all responses cost, those included that left no message.
func spent(c *transcript.Collected) (u session.Usage) {
	for _, conv := range c.Conversations {
		for _, r := range conv.Records {
			bill, _ := session.BillOf(&r.Entry)
			one := bill.Usage
			u.Input += one.Input
			u.Output += one.Output
			u.CacheRead += one.CacheRead
			u.CacheWrite += one.CacheWrite
			u.Reasoning += one.Reasoning
		}
	}
	return u
}

// TestCodexSamples reads real rollouts, where there are any, and counts.
func TestCodexSamples(t *testing.T) {
	t.Parallel()
	for _, path := range transcripttest.Samples(t, "codex/*/*.json*") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := transcript.Collect(t.Context(), codex.Format(), transcripttest.Open(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(countItems(t, path, data), codexCountRecords(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
			if len(c.Problems) != 0 {
				t.Errorf("problems are %v", c.Problems)
			}
		})
	}
}

// TestCodexSampleUsage compares what the samples cost with sums made by hand. The rule:
// every token_count whose total differs from the one before adds its
// last_token_usage; input_tokens include cached_input_tokens, which are taken off.
//
//	050: one count in the oldest form, {prompt: 1420, completion: 910}; the next is null.
//	051: turn.completed has totals: 1420 (380 cached) in, 910 out, then 2840
//	     (1420 cached) in, 1520 out: 2840-1420 = 1420 uncached in the end.
//	052: totals that go down are counts of their own: 980+640 out of nothing
//	     cached, then 1620 of which 980 cached, and 240.
//	053: 12091 in, of which 10880 cached (1211 are left), 182 out, of which 128
//	     reasoning; the next count is null.
//	large: the same count once. paginated: 100 in, 60 cached, 5 out.
//	text_only, tool_call, interleaved: one bare count each, nothing cached.
//	small: 16341 in, of which 3584 cached (12757 are left), 81 out, of which 63
//	     reasoning; then a null and a count of nothing.
func TestCodexSampleUsage(t *testing.T) {
	t.Parallel()
	want := map[string]session.Usage{
		"codex_050_legacy.jsonl":                      {Input: 1420, Output: 910},
		"codex_051_usage.jsonl":                       {Input: 1420, CacheRead: 1420, Output: 1520},
		"codex_052_raw.jsonl":                         {Input: 980 + 640, CacheRead: 980, Output: 640 + 240},
		"codex_053_rate_limit.jsonl":                  {Input: 1211, CacheRead: 10880, Output: 182, Reasoning: 128},
		"large.jsonl":                                 {Input: 1211, CacheRead: 10880, Output: 182, Reasoning: 128},
		"rollout-2026-08-20T10-00-00-paginated.jsonl": {Input: 40, CacheRead: 60, Output: 5},
		"small.jsonl":                                 {Input: 12757, CacheRead: 3584, Output: 81, Reasoning: 63},
		"text_only_stream.jsonl":                      {Input: 12, Output: 8},
		"tool_call_stream.jsonl":                      {Input: 42, Output: 18},
		"interleaved_stream.jsonl":                    {Input: 120, Output: 40},
		"rollout-2025-08-20T10-00-00-bare-era.jsonl":  {},
		"rollout-2025-06-10-legacy.json":              {},
	}
	for _, path := range transcripttest.Samples(t, "codex/*/*.json*") {
		expected, ok := want[filepath.Base(path)]
		if !ok {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := transcript.Collect(t.Context(), codex.Format(), transcripttest.Open(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, spent(c)); diff != "" {
				t.Errorf("the usage differs (-by hand +read):\n%s", diff)
			}
		})
	}
}
