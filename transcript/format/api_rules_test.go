package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestAPIRules: what is written obeys the rules that the providers document, for
// whichever of them the conversation was held with.
func TestAPIRules(t *testing.T) {
	t.Parallel()
	for file, from := range apiFixtures(t) {
		apiCheckRules(t, file, transcripttest.Collect(t, from, apiOpen(t, file)))
	}
}

// TestAPIRulesOnSamples: so does what is written of real sessions of agents.
func TestAPIRulesOnSamples(t *testing.T) {
	t.Parallel()
	for pattern, from := range map[string]*transcript.Format{
		"claude-code/*/*.jsonl": claudecode.Format(), "codex/*/*.jsonl": codex.Format(), "pi/*/*.jsonl": pi.Format(),
		"gemini-cli/*.json": geminicli.Format(), "gemini-cli/*/*.json": geminicli.Format(),
	} {
		for _, file := range transcripttest.Samples(t, pattern) {
			c, err := transcript.Collect(t.Context(), from, transcripttest.Open(t, file))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			apiCheckRules(t, file, c)
		}
	}
}

// apiCheckRules writes conversations for all providers.
func apiCheckRules(t *testing.T, file string, c *transcript.Collected) {
	t.Helper()
	rules := map[string]func([]byte) []provider.Fault{
		"openai": openai.CheckChat, "openai-responses": openai.CheckResponses,
		"anthropic": anthropic.Check, "google": google.Check,
	}
	for _, conversation := range c.Conversations {
		script, err := transcripttest.Script(t.Context(), conversation)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range written() {
			out, err := to.Write(t.Context(), script, transcript.Env{})
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Files) == 0 {
				continue // there is no message for it
			}
			if faults := rules[to.Name](out.Files[0].Data); len(faults) > 0 {
				t.Errorf("%s as %s: %.300v", file, to.Name, faults)
			}
		}
	}
}
