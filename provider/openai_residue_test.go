package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// A message as lines of this and of earlier versions have it.
const (
	residueNow = `{"type":"message","id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user",` +
		`"content":[{"type":"text","text":{"content":"hi"}}],"openai_chat":{"set":{"mood":{"x":[1]},"name":"ann"}}}}`
	residueBefore = `{"type":"message","id":"a","parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user",` +
		`"content":[{"type":"text","text":{"content":"hi"}}],"openai_chat":{"fields":{"mood":{"x":[1]},"name":"ann"}}}}`
)

// TestOpenAIResiduesOfEarlierVersions: what a session has no place for comes back from
// the encoding on disk that there is now and from the one there was before.
func TestOpenAIResiduesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"now": residueNow, "before": residueBefore} {
		var e session.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		encoded, err := openai.EncodeChat([]session.Entry{e}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := string(encoded.Request(nil))
		if !strings.Contains(text, `"mood":{"x":[1]}`) || !strings.Contains(text, `"name":"ann"`) {
			t.Errorf("%s: the request is %s", name, text)
		}
	}
}

// TestOpenAIOneResidueEncoding: it is written in the form that transcripts use too.
func TestOpenAIOneResidueEncoding(t *testing.T) {
	t.Parallel()
	var d openai.ChatDecoder
	e, err := d.Message([]byte(`{"role":"user","content":"hi","mood":1}`))
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(line), `"openai_chat":{"set":{"mood":1}}`) {
		t.Errorf("the line is %s, %v", line, err)
	}
}
