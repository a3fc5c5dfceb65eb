package tiktoken_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// The counts are those of OpenAI's own tokenizer.
func TestCounts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text          string
		o200k, cl100k int
	}{
		{"", 0, 0},
		{"hello world", 2, 2},
		{"tiktoken is great!", 6, 6},
		{"お誕生日おめでとう", 8, 9},
		{"2 + 2 = 4", 7, 7},
	}
	for _, tt := range tests {
		if got := tiktoken.O200k().CountText(tt.text); got != tt.o200k {
			t.Errorf("o200k: %q has %d tokens, want %d", tt.text, got, tt.o200k)
		}
		if got := tiktoken.Cl100k().CountText(tt.text); got != tt.cl100k {
			t.Errorf("cl100k: %q has %d tokens, want %d", tt.text, got, tt.cl100k)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	tests := map[[2]string]string{
		{"openai", "gpt-5-mini"}:             "o200k_base",
		{"openai", "o3"}:                     "o200k_base",
		{"azure", "gpt-4o"}:                  "o200k_base",
		{"openrouter", "openai/gpt-4.1"}:     "o200k_base",
		{"openai", "GPT-9"}:                  "o200k_base",
		{"OpenAI", ""}:                       "o200k_base",
		{"openai", "gpt-4-0613"}:             "cl100k_base",
		{"openai", "gpt-3.5-turbo"}:          "cl100k_base",
		{"anthropic", "claude-sonnet-4-5"}:   "",
		{"openrouter", "google/gemini-2.5"}:  "",
		{"", ""}:                             "",
		{"openai", "text-embedding-3-small"}: "",
	}
	for model, want := range tests {
		got := ""
		if c := tiktoken.For(model[0], model[1]); c != nil {
			got = c.Name()
		}
		if got != want {
			t.Errorf("%v is counted by %q, want %q", model, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]window.Counter{
		"o200k": tiktoken.O200k(), "o200k_base": tiktoken.O200k(), "cl100k": tiktoken.Cl100k(), "cl100k_base": tiktoken.Cl100k(),
	} {
		if got, err := tiktoken.Named(name); err != nil || got != want {
			t.Errorf("%s is %v, error %v", name, got, err)
		}
	}
	if _, err := tiktoken.Named("p50k"); err == nil {
		t.Error("p50k is known")
	}
}

// Bytes that are no text are counted all the same.
func TestNotText(t *testing.T) {
	t.Parallel()
	if n := tiktoken.O200k().CountText("\xff\xfe" + strings.Repeat("x", 100)); n < 5 || n > 110 {
		t.Errorf("counted %d", n)
	}
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The roses in this garden. ", 50)
	want := tiktoken.O200k().CountText(text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := tiktoken.O200k().CountText(text); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	wg.Wait()
}
