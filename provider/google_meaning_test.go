package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
	"github.com/coppice-dev/coppice/session"
)

// TestGooglePairing: results without ids answer the first open call of their name, in
// this turn.
func TestGooglePairing(t *testing.T) {
	t.Parallel()
	b, err := google.Decode([]byte(`[
		{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
		{"role":"user","parts":[{"text":"never mind"}]},
		{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"own","name":"g"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"g1"}}},{"functionResponse":{"name":"f","response":{"result":"f1"}}},{"functionResponse":{"name":"f","response":{"error":"f2"}}},{"functionResponse":{"id":"own","name":"g","response":{"a":1}}},{"functionResponse":{"name":"h","response":{"output":"h1"}}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range b.Entries {
		for _, c := range e.Message.Content {
			if c.ToolUse != nil {
				got = append(got, c.ToolUse.Name+" "+c.ToolUse.ID)
			}
			if r := c.ToolResult; r != nil {
				got = append(got, fmt.Sprint(r.ToolUseID, " ", r.Content, " ", r.IsError))
			}
		}
	}
	want := []string{
		"f call_auto_1", "f call_auto_2", "g call_auto_3", "f call_auto_4", "g own",
		"call_auto_3 g1 false", "call_auto_2 f1 false", "call_auto_4 f2 true", `own {"a":1} false`, "call_auto_5 h1 false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGoogleMedia: what Google has as inline data is an image, a recording or a file
// (R165).
func TestGoogleMedia(t *testing.T) {
	t.Parallel()
	b, err := google.Decode([]byte(`[{"role":"user","parts":[{"text":"a"},{"inline_data":{"mime_type":"image/png","data":"AA"}},{"inlineData":{"mimeType":"audio/mp3","data":"AA"}},{"inlineData":{"mimeType":"application/pdf","data":"AA"}},{"fileData":{"mimeType":"image/png","fileUri":"gs://x"}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, c := range b.Entries[0].Message.Content {
		types = append(types, string(c.Type))
	}
	if diff := cmp.Diff([]string{"text", "image", "audio", "file", "image"}, types); diff != "" {
		t.Error(diff)
	}
}

func TestGoogleDecoder(t *testing.T) {
	t.Parallel()
	var d google.Decoder
	if _, err := d.Content([]byte(`{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`)); err != nil {
		t.Fatal(err)
	}
	entries, err := d.Content([]byte(`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`))
	if err != nil || entries[0].Message.Content[0].ToolResult.ToolUseID != "call_auto_1" {
		t.Errorf("%+v, %v", entries, err)
	}
	for _, bad := range []string{`{`, `7`} {
		if _, err := d.Content([]byte(bad)); err == nil {
			t.Errorf("%s is a content", bad)
		}
	}
}

// TestGoogleEditedResult: a result that was cleared after it was read is written as
// text.
func TestGoogleEditedResult(t *testing.T) {
	t.Parallel()
	b, err := google.Decode([]byte(`[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1}}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	b.Entries[1].Message.Content[0].ToolResult.Content = "cleared"
	m, err := google.Encode(b.Entries)
	if err != nil || !strings.Contains(string(m.Request(nil)), `{"output":"cleared"}`) {
		t.Errorf("%s, %v", m.Request(nil), err)
	}
}

func TestGoogleSystemMessages(t *testing.T) {
	t.Parallel()
	text := func(s string) session.Entry {
		return session.Entry{Message: &session.MessageEntry{Role: "system", Content: []session.Content{session.Text(s)}}}
	}
	m, err := google.Encode([]session.Entry{text("a"), text("b")})
	if err != nil || string(m.Request(nil)) != `{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},"contents":[]}` {
		t.Errorf("%s, %v", m.Request(nil), err)
	}
}

func TestGoogleFold(t *testing.T) {
	t.Parallel()
	chunks := []string{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"h","thought":true}]},"index":0}],"responseId":"r"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"m","thought":true}]},"index":0}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel","thoughtSignature":"S"},{"text":"l"}]},"index":0},{"content":{"parts":[{"text":"two"}]},"index":1}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"o"},{"functionCall":{"name":"f"}}]},"index":0,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`,
	}
	want := `{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Hel","thoughtSignature":"S"},{"text":"lo"},{"functionCall":{"name":"f"}}]},"index":0,"finishReason":"STOP"},{"content":{"parts":[{"text":"two"}]},"index":1}],"responseId":"r","usageMetadata":{"promptTokenCount":1}}`
	for _, stream := range []string{
		"data: " + strings.Join(chunks, "\r\n\r\ndata: ") + "\r\n\r\n",
		"[" + strings.Join(chunks, ",\n") + "]",
	} {
		got, err := google.Fold(strings.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		if diff := wiretest.Diff([]byte(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, bad := range []string{"", "data: {\n\n", "[", "{}", `[{"error":{"code":429}}]`} {
		if got, err := google.Fold(strings.NewReader(bad)); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func FuzzGoogleFold(f *testing.F) {
	f.Add(`[{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}]`)
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		if folded, err := google.Fold(strings.NewReader(stream)); err == nil {
			if _, err := google.Decode(folded); err != nil && !strings.Contains(err.Error(), "google:") {
				t.Errorf("%s: %v", folded, err)
			}
		}
	})
}
