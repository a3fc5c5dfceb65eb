package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3/responses"

	"github.com/coppice-dev/coppice/provider/providertest"
)

// TestCounts: an SDK that reads our request to count tokens sends the same one. Only
// Anthropic's and that of Responses are the provider's own: Google's SDK counts less
// than a whole request.
func TestCounts(t *testing.T) {
	counters := map[string]func(s *providertest.Server, request []byte) (int64, error){
		"anthropic": func(s *providertest.Server, request []byte) (int64, error) {
			var params anthropic.MessageCountTokensParams
			if err := json.Unmarshal(request, &params); err != nil {
				return 0, err
			}
			counted, err := newAnthropicChat(s).client.Messages.CountTokens(context.Background(), params)
			if err != nil {
				return 0, err
			}
			return counted.InputTokens, nil
		},
		"openai": func(s *providertest.Server, request []byte) (int64, error) {
			var params responses.InputTokenCountParams
			if err := json.Unmarshal(request, &params); err != nil {
				return 0, err
			}
			client := newOpenAI(s)
			counted, err := client.Responses.InputTokens.Count(context.Background(), params)
			if err != nil {
				return 0, err
			}
			return counted.InputTokens, nil
		},
	}
	each(t, func(t *testing.T, o *official) {
		count := counters[o.dialect]
		if count == nil {
			return
		}
		var body []byte
		s := &providertest.Server{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body) // the test sees what is missing
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"input_tokens":42}`)
		}))}
		defer s.Close()
		for _, name := range slices.Sorted(maps.Keys(conversations)) {
			n, err := connect(t, s, o.dialect).CountTokens(t.Context(), conversations[name](t, o))
			if err != nil || n != 42 {
				t.Fatalf("%s: we got %d, %v", name, n, err)
			}
			want := object(t, body)
			theirs, err := count(s, body)
			if err != nil || theirs != 42 {
				t.Fatalf("%s: the SDK got %d, %v", name, theirs, err)
			}
			got := object(t, body)
			for _, d := range o.allowed {
				d.apply(want)
				d.apply(got) // this request keeps a text as it is
			}
			for _, d := range diff("", want, got) {
				t.Errorf("%s: %s", name, d)
			}
		}
	})
}
