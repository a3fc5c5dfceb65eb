package sdk_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// failure is an answer that is none, as a provider words it.
type failure struct {
	status int
	body   string
	want   error  // as we classify it
	words  string // what the SDK has of it
}

// failures are those of each dialect.
var failures = map[string]map[string]failure{
	"anthropic": {
		"limited":    {429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your limit"}}`, provider.ErrLimited, "rate_limit_error"},
		"overloaded": {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, provider.ErrUnavailable, "overloaded_error"},
		"overflow":   {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, provider.ErrOverflow, "prompt is too long"},
		"too large":  {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, provider.ErrOverflow, "request_too_large"},
		"denied":     {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, provider.ErrDenied, "authentication_error"},
		"forbidden":  {403, `{"type":"error","error":{"type":"permission_error","message":"not yours"}}`, provider.ErrDenied, "permission_error"},
		"wrong":      {400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: must be positive"}}`, session.ErrInvalid, "invalid_request_error"},
		"no model":   {404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, session.ErrInvalid, "not_found_error"},
		"broken":     {500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, provider.ErrUnavailable, "api_error"},
	},
	"openai-chat": openaiFailures,
	"openai":      openaiFailures,
	"google": {
		"limited":    {429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`, provider.ErrLimited, "RESOURCE_EXHAUSTED"},
		"overloaded": {503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, provider.ErrUnavailable, "UNAVAILABLE"},
		"overflow":   {400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, provider.ErrOverflow, "input token count"},
		"denied":     {403, `{"error":{"code":403,"message":"denied","status":"PERMISSION_DENIED"}}`, provider.ErrDenied, "PERMISSION_DENIED"},
		"wrong":      {400, `{"error":{"code":400,"message":"Invalid JSON payload","status":"INVALID_ARGUMENT"}}`, session.ErrInvalid, "INVALID_ARGUMENT"},
		"broken":     {500, `{"error":{"code":500,"message":"An internal error has occurred","status":"INTERNAL"}}`, provider.ErrUnavailable, "INTERNAL"},
	},
}

var openaiFailures = map[string]failure{
	"limited":    {429, `{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, provider.ErrLimited, "rate_limit_exceeded"},
	"no money":   {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, provider.ErrLimited, "insufficient_quota"},
	"overloaded": {503, `{"error":{"message":"The engine is currently overloaded","type":"server_error","param":null,"code":null}}`, provider.ErrUnavailable, "server_error"},
	"overflow":   {400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, provider.ErrOverflow, "context_length_exceeded"},
	"denied":     {401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, provider.ErrDenied, "invalid_api_key"},
	"wrong":      {400, `{"error":{"message":"Unknown parameter: 'x'.","type":"invalid_request_error","param":"x","code":"unknown_parameter"}}`, session.ErrInvalid, "unknown_parameter"},
	"broken":     {500, `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`, provider.ErrUnavailable, "server_error"},
}

// TestErrors: both sides fail with the same status and the provider's word for it. We
// retry what the SDK would.
func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		for name, f := range failures[o.dialect] {
			t.Run(name, func(t *testing.T) {
				s := providertest.New(t, func(*providertest.Request) providertest.Answer {
					return providertest.Answer{Status: f.status, Body: f.body, Header: http.Header{"Retry-After": {"7"}}}
				})
				response, err := provider.Respond(t.Context(), connect(t, s, o.dialect), ask(user("go")), nil)
				var ours *provider.Error
				if !errors.Is(err, f.want) || !errors.As(err, &ours) || response != nil {
					t.Fatalf("we got %v, %v, want %v", response, err, f.want)
				}
				theirs, err := o.start(s, "go")
				if err != nil {
					t.Fatal(err)
				}
				a, err := theirs.ask()
				status, words := o.failed(err)
				if a != nil || status != ours.Status || !strings.Contains(words, f.words) {
					t.Errorf("the SDK got %+v, %v: status %d, %s; we got %v", a, err, status, words, ours)
				}
				if !strings.Contains(words, ours.Code) || !strings.Contains(words, ours.Message) {
					t.Errorf("we say %q, %q; the SDK says %q", ours.Code, ours.Message, words)
				}
				if retried := status == 429 && name != "no money" || status >= 500; ours.Temporary() != retried {
					t.Errorf("status %d, and we would ask again: %v", status, ours.Temporary())
				}
			})
		}
	})
}

// TestErrorAmidTheStream: an answer that fails after it has begun fails for both.
func TestErrorAmidTheStream(t *testing.T) {
	fail := map[string]string{
		"anthropic":   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		"openai-chat": "data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n",
		"openai":      "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The server had an error\",\"param\":null,\"sequence_number\":3}\n\n",
		"google":      "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n",
	}
	each(t, func(t *testing.T, o *official) {
		s := providertest.New(t, func(*providertest.Request) providertest.Answer {
			return providertest.Answer{Message: answers["a text"], Events: func(events []string) []string {
				return append(events[:len(events)/2:len(events)/2], fail[o.dialect])
			}}
		})
		response, err := provider.Respond(t.Context(), connect(t, s, o.dialect), ask(user("go")), nil)
		if !errors.Is(err, provider.ErrUnavailable) || response == nil || !response.Partial {
			t.Errorf("we got %+v, %v", response, err)
		}
		theirs, err := o.start(s, "go")
		if err != nil {
			t.Fatal(err)
		}
		if a, err := theirs.ask(); err == nil || errors.Is(err, errNoEnd) {
			t.Errorf("the SDK got %+v, %v", a, err)
		}
	})
}
