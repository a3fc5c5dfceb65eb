package window_test

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

func entryOf(m session.MessageEntry) *session.Entry {
	return &session.Entry{Type: session.TypeMessage, ID: "e", Message: &m}
}

// Recorded counts are the truth, reported usage where it can be meant, and then
// the counter. Unset is unknown, zero is zero (ruling 26).
func TestCountEntryBelieves(t *testing.T) {
	t.Parallel()
	text := []session.Content{session.Text(strings.Repeat("x", 100))}
	zero, seven := 0, 7
	usage := func(output, reasoning int) *session.Usage {
		return &session.Usage{Input: 5000, Output: output, Reasoning: reasoning}
	}
	tests := map[string]struct {
		message session.MessageEntry
		want    int
	}{
		"nothing known":                 {session.MessageEntry{Role: "assistant", Content: text}, 104},
		"recorded":                      {session.MessageEntry{Role: "user", Content: text, Tokens: &seven}, 7},
		"recorded as nothing":           {session.MessageEntry{Role: "user", Content: text, Tokens: &zero}, 0},
		"reported":                      {session.MessageEntry{Role: "assistant", Content: text, Usage: usage(80, 0)}, 84},
		"reported with reasoning":       {session.MessageEntry{Role: "assistant", Content: text, Usage: usage(1080, 1000)}, 84},
		"reported of a larger reply":    {session.MessageEntry{Role: "assistant", Content: text, Usage: usage(900, 0)}, 104},
		"reported while it grew":        {session.MessageEntry{Role: "assistant", Content: text, Usage: usage(3, 0)}, 104},
		"reported of another's message": {session.MessageEntry{Role: "user", Content: text, Usage: usage(80, 0)}, 104},
		"reasoning that is sent again":  {session.MessageEntry{Role: "assistant", Content: append(text, thinking("hm")), Usage: usage(90, 20)}, 94},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := window.CountEntry(letters{}, "", entryOf(tt.message)).Tokens; got != tt.want {
				t.Errorf("counted %d, want %d", got, tt.want)
			}
		})
	}
}

// contentCost is what a message's content costs.
func contentCost(c window.Counter, provider string, content ...session.Content) window.Cost {
	full := window.CountEntry(c, provider, entryOf(session.MessageEntry{Content: content}))
	empty := window.CountEntry(c, provider, entryOf(session.MessageEntry{}))
	return window.Cost{Tokens: full.Tokens - empty.Tokens, Bytes: full.Bytes - empty.Bytes}
}

// R96: every kind of content has a price.
func TestCountContent(t *testing.T) {
	t.Parallel()
	source := func(kind, media, data string) *session.Source {
		return &session.Source{Type: kind, MediaType: media, Data: data}
	}
	file := func(s *session.Source) session.Content {
		return session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "a.txt", Source: s}}
	}
	result := session.ToolResult("c", "ignored", false)
	result.ToolResult.Parts = []session.Content{session.Text("12345"), session.Text("678")}
	broken := session.ToolUse("c", "look", map[string]any{"at": math.Inf(1), "path": "x"})
	tests := map[string]struct {
		block         session.Content
		tokens, bytes int
	}{
		"text":         {session.Text("four"), 4, 4},
		"thinking":     {thinking("12345"), 5, 13},
		"redacted":     {session.Content{Thinking: &session.ThinkingContent{Redacted: strings.Repeat("r", 160)}}, 30, 160},
		"call":         {session.ToolUse("c", "look", map[string]any{"at": "bed", "n": 2.0, "all": []any{true, nil, map[string]any{}}}), 6 + 4 + 39, 60 + 4 + 47},
		"broken":       {broken, 6 + 24/4, 60 + 4 + 24},
		"result":       {session.ToolResult("c", "12345", false), 11, 65},
		"parts":        {result, 6 + 8, 60 + 8},
		"audio":        {session.Content{Audio: &session.AudioContent{Source: source("base64", "audio/mp3", strings.Repeat("A", 400_000))}}, 600, 400_060},
		"short audio":  {session.Content{Audio: &session.AudioContent{Source: source("base64", "audio/mp3", "AAAA")}}, 250, 64},
		"text file":    {file(source("base64", "text/plain", base64.StdEncoding.EncodeToString([]byte("roses")))), 5, 60 + 5 + 8},
		"bad file":     {file(source("base64", "text/plain", "%%%")), 250, 60 + 5 + 3},
		"no source":    {file(nil), 0, 65},
		"pdf":          {file(source("base64", "application/pdf", strings.Repeat("A", 80_000))), 1500, 80_065},
		"unknown":      {session.Content{Type: "x", Raw: json.RawMessage(`{"type":"x"}`)}, 12, 12},
		"blob":         {session.Content{Image: &session.ImageContent{Source: &session.Source{Type: "base64", Blob: "sha256:1", Size: 300}}}, 1600, 460},
		"linked image": {session.Content{Image: &session.ImageContent{Source: source("url", "image/png", "http://x")}}, 1600, 68},
		"lost image":   {session.Content{Image: &session.ImageContent{}}, 1600, 60},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := contentCost(letters{}, "", tt.block)
			if want := (window.Cost{Tokens: tt.tokens, Bytes: tt.bytes}); got != want {
				t.Errorf("cost is %+v, want %+v", got, want)
			}
		})
	}
}

func TestCountSummaries(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]session.Entry{
		"compaction":     {Compaction: &session.CompactionEntry{Summary: "12345"}},
		"branch summary": {BranchSummary: &session.BranchSummaryEntry{Summary: "12345"}},
		"merge":          {Merge: &session.MergeEntry{Summary: "12345"}},
	} {
		if got := window.CountEntry(letters{}, "", &e); got != (window.Cost{Tokens: 9, Bytes: 45, By: window.Exact}) {
			t.Errorf("%s costs %+v", name, got)
		}
	}
	if got := window.CountEntry(letters{}, "", &session.Entry{Type: session.TypeLabel}).Tokens; got != 4 {
		t.Errorf("an entry without content costs %d", got)
	}
}

// Images cost tokens by their size, in each provider's way.
func TestImageTokens(t *testing.T) {
	t.Parallel()
	tests := []struct {
		width, height                  int
		anthropic, openai, google, any int
	}{
		{100, 100, 14, 255, 258, 258},
		{1000, 1000, 1334, 765, 1032, 1334},
		{1920, 1080, 1600, 1105, 1548, 1600},
		{400, 3000, 438, 85 + 170*4, 258 * 4, 1032},
	}
	for _, tt := range tests {
		image := picture(tt.width, tt.height)
		for provider, want := range map[string]int{"anthropic": tt.anthropic, "openai": tt.openai, "google": tt.google, "": tt.any} {
			if got := contentCost(letters{}, provider, image).Tokens; got != want {
				t.Errorf("%d by %d for %q: %d tokens, want %d", tt.width, tt.height, provider, got, want)
			}
		}
	}
}
