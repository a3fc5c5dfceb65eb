package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// parrot waters what it is told to, and says how many messages it was sent.
type parrot struct{}

func (parrot) Name() string { return "parrot" }

func (parrot) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	answer := genai.NewContentFromText(fmt.Sprint("I know ", len(r.Contents), " messages"), genai.RoleModel)
	if last := r.Contents[len(r.Contents)-1].Parts[0]; last.Text != "" {
		answer = genai.NewContentFromFunctionCall("water", map[string]any{"name": last.Text}, genai.RoleModel)
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: answer, TurnComplete: true}, nil)
	}
}

// The second run knows what the first one did.
func TestGardener(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	for _, want := range []string{"I know 3 messages", "I know 7 messages"} {
		var out strings.Builder
		if err := garden(t.Context(), parrot{}, dir, "roses", &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("it said %q, want %q", got, want)
		}
	}
}
