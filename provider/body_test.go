package provider_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	m := provider.Messages{Fields: session.Fields{{Name: "messages", Value: json.RawMessage(`[]`)}}}
	got := m.Request(session.Fields{{Name: "model", Value: json.RawMessage(`"m"`)}, {Name: "messages", Value: json.RawMessage(`[1]`)}})
	if want := `{"model":"m","messages":[]}`; string(got) != want {
		t.Errorf("the request is %s, want %s", got, want)
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	if got := (provider.Note{Entry: "e1", What: "an image is left out"}).String(); got != "e1: an image is left out" {
		t.Error(got)
	}
	if got := (provider.Note{What: "x"}).String(); got != "x" {
		t.Error(got)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://x/y.png", "data:image/png;base64,AAAA", "data:;base64,", "data:text/plain,x", "data:a;b;base64,AA", ""} {
		s := provider.SourceAt(url)
		if back, ok := provider.URLOf(s); !ok || back != url {
			t.Errorf("%q became %+v and then %q", url, s, back)
		}
	}
	if s := provider.SourceAt("data:image/png;base64,AAAA"); s.Type != provider.SourceBase64 || s.MediaType != "image/png" || s.Data != "AAAA" {
		t.Errorf("the bytes were not taken out: %+v", s)
	}
	if _, ok := provider.URLOf(&session.Source{Type: provider.SourceFile, Data: "f"}); ok {
		t.Error("an uploaded file has a URL")
	}
}
