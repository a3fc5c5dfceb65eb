package home_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// Errors in a request use the JSON names that the sender knows, not the words of encoding/json.
func TestDecodeSpeaksPlainly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		request     any
		field, says string
	}{
		`{"limit": "x"}`:             {&home.ListRequest{}, "limit", "limit is a JSON string; it must be a whole number"},
		`{"limit": 1.5}`:             {&home.ListRequest{}, "limit", "limit is a JSON number 1.5; it must be a whole number"},
		`{"tags": "x"}`:              {&home.ListRequest{}, "tags", "tags is a JSON string; it must be a list"},
		`{"colour": "x"}`:            {&home.ListRequest{}, "colour", "there is no colour"},
		`{"since": "yesterday"}`:     {&home.ListRequest{}, "since", `since is "yesterday": it must be a time as in RFC 3339`},
		`{"older_than": "x"}`:        {&home.ArchiveRequest{}, "older_than", `older_than is "x": it must be an age such as 30d`},
		`{"window": {"tokens": ""}}`: {&home.ContextRequest{}, "window.tokens", "window.tokens is a JSON string"},
		`{"model": 5}`:               {&home.PromptRequest{}, "model", "model is a JSON number; it must be a text"},
		`{"limit": 1,}`:              {&home.ListRequest{}, "", "it is not JSON at byte 13"},
		`[1]`:                        {&home.ListRequest{}, "", "it is a JSON array; it must be an object"},
	} {
		err := home.Decode([]byte(text), want.request)
		if err == nil || home.KindOf(err) != home.KindInvalid || !strings.HasPrefix(err.Error(), want.says) {
			t.Errorf("%s: %v (%s)", text, err, home.KindOf(err))
		}
		if wrong, ok := errors.AsType[*home.FieldError](err); ok != (want.field != "") || ok && wrong.Field != want.field {
			t.Errorf("%s: the field is %+v", text, wrong)
		}
	}
}
