package api_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/api"
	"github.com/coppice-dev/coppice/transcript/claudecode"
	"github.com/coppice-dev/coppice/transcript/codex"
	"github.com/coppice-dev/coppice/transcript/geminicli"
	"github.com/coppice-dev/coppice/transcript/loose"
	"github.com/coppice-dev/coppice/transcript/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestRules: what is written obeys the rules that the providers document, for
// whichever of them the conversation was held with.
func TestRules(t *testing.T) {
	for file, from := range fixtures(t) {
		checkRules(t, file, transcripttest.Collect(t, from, open(t, file)))
	}
}

// TestRulesOnSamples: so does what is written of real sessions of agents.
func TestRulesOnSamples(t *testing.T) {
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
			checkRules(t, file, c)
		}
	}
}

// checkRules writes conversations for all providers whose rules are known.
func checkRules(t *testing.T, file string, c *transcript.Collected) {
	t.Helper()
	rules := map[string]func(loose.Value) error{"openai": chatRules, "anthropic": anthropicRules, "google": googleRules}
	for _, conversation := range c.Conversations {
		script, err := transcripttest.Script(t.Context(), conversation)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range api.Formats() {
			check := rules[to.Name]
			if check == nil {
				continue
			}
			out, err := to.Write(t.Context(), script, transcript.Env{})
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Files) == 0 {
				continue // there is no message for it
			}
			if err := check(out.Files[0].Data); err != nil {
				t.Errorf("%s as %s: %.300v", file, to.Name, err)
			}
		}
	}
}

// chatRules: each call is answered right after the message that made it, and
// nothing else is answered.
func chatRules(request loose.Value) error {
	open := map[string]bool{}
	for m := range request.Get("messages").Items() {
		role := m.Get("role").Text()
		if id := m.Get("tool_call_id").Text(); role == "tool" && !open[id] {
			return fmt.Errorf("the result %q answers nothing", id)
		} else if delete(open, id); role != "tool" && len(open) > 0 {
			return fmt.Errorf("calls are not answered: %v", open)
		}
		if role == "assistant" && !m.Has("content") && !m.Has("tool_calls") && !m.Has("function_call") && !m.Has("refusal") {
			return fmt.Errorf("the model says nothing: %s", m)
		}
		for call := range m.Get("tool_calls").Items() {
			if open[call.Get("id").Text()] = true; !call.Get("function", "arguments").IsString() {
				return fmt.Errorf("the arguments are no string: %s", call)
			}
		}
	}
	return nil
}

var safeID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// anthropicRules: calls are answered at the beginning of the next message, and
// texts are not empty.
func anthropicRules(request loose.Value) error {
	open := map[string]bool{}
	for m := range request.Get("messages").Items() {
		if role := m.Get("role").Text(); role != "user" && role != "assistant" {
			return fmt.Errorf("the role %q", role)
		}
		if content := m.Get("content"); content.Text() == "" && content.First() == nil {
			return fmt.Errorf("a message of nothing: %s", m)
		}
		words := false
		for b := range m.Get("content").Items() {
			switch kind := b.Get("type").Text(); {
			case kind == "text" && b.Get("text").Text() == "":
				return fmt.Errorf("an empty text in %s", m)
			case kind == "tool_result" && (words || !open[b.Get("tool_use_id").Text()]):
				return fmt.Errorf("a result in the wrong place: %s", m)
			case kind == "tool_result":
				delete(open, b.Get("tool_use_id").Text())
				continue
			}
			if words = true; m.Get("role").Text() == "user" && len(open) > 0 {
				return fmt.Errorf("calls are not answered: %v", open)
			}
			if b.Get("type").Text() == "tool_use" {
				if id := b.Get("id").Text(); !safeID.MatchString(id) || !b.Get("input").IsObject() {
					return fmt.Errorf("a call that is refused: %s", b)
				}
				open[b.Get("id").Text()] = true
			}
		}
	}
	return nil
}

// googleRules: the content after calls has as many results, and results are
// objects.
func googleRules(request loose.Value) error {
	open := 0
	for c := range request.Get("contents").Items() {
		if role := c.Get("role").Text(); role != "user" && role != "model" && role != "" {
			return fmt.Errorf("the role %q", role)
		}
		calls, results := 0, 0
		for p := range c.Get("parts").Items() {
			if p.Has("functionCall") {
				calls++
			}
			if p.Has("functionResponse") {
				if results++; !p.Get("functionResponse", "response").IsObject() {
					return fmt.Errorf("a result that is no object: %s", p)
				}
			}
		}
		if results != open || c.Get("parts").First() == nil {
			return fmt.Errorf("%d results for %d calls in %s", results, open, c)
		}
		open = calls
	}
	return nil
}
