package provider

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
)

// parameters are the words by which providers name the parameters of a request that can be left
// out, by the names that Request.Without has for them. The first that fits counts.
var parameters = []struct {
	name  string
	words []string
}{
	{"marks", []string{"cache_control"}},
	{"key", []string{"prompt_cache_key"}},
	{"summary", []string{"reasoning.summary", "reasoning summaries", "thinking.adaptive.display", "includethoughts", "include_thoughts"}},
	{"encrypted", []string{"encrypted content", "encrypted_content"}},
	{"stream_options", []string{"stream_options"}},
	{"temperature", []string{"temperature"}},
	{"max_tokens", []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens"}},
	{"thinking", []string{"thinking", "reasoning", "effort", "output_config"}},
}

// ofContent matches the words of refusals that are about the conversation or the tools.
var ofContent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(messages|contents|input|tools)[.\[]|\bitem '|\bitem with id|\bsignature|_signature|\bblocks?\b`)
})

// Parameter returns the parameter for which a provider refused a request, as Request.Without
// names it; "" if the refusal names none that can be left out.
func (e *Error) Parameter() string {
	if !errors.Is(e.Kind, session.ErrInvalid) || e.Status != 0 && e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return ""
	}
	text := strings.ToLower(e.Param + " " + e.Message)
	for _, p := range parameters {
		for _, word := range p.words {
			if strings.Contains(text, word) && (p.name == "marks" || !ofContent().MatchString(text)) {
				return p.name
			}
		}
	}
	return ""
}
