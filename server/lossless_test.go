package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestNothingIsLostSilently: what a request has is done or kept, or it is refused with the name
// of what is wrong.
func TestNothingIsLostSilently(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, entry := s.talk()
	for body, field := range map[string]string{
		`{"message": {"role": "user", "content": [{"text": "Hello"}]}}`:                                                "message",
		`{"message": {"role": "user", "content": [{"type": "text"}]}}`:                                                 "message",
		`{"message": {"role": "user", "content": [{"type": "tool_use", "tool_use": {"name": "x"}}]}}`:                  "message",
		`{"message": {"role": "user", "tokens": "many", "content": [{"type": "text", "text": "Hello"}]}}`:              "message",
		`{"message": {"role": "nobody", "content": [{"type": "text", "text": "Hello"}]}}`:                              "message.role",
		`{"mesage": {"role": "user", "content": [{"type": "text", "text": "Hello"}]}}`:                                 "mesage",
		`{"at": "none", "message": {"role": "user", "content": [{"type": "text", "text": "Hello"}]}}`:                  "",
		`{"at": "` + entry + `", "message": {"role": "user", "content": [{"type": "text", "text": "Hello"}]}, "x": 1}`: "x",
	} {
		a := s.ask("POST", "/v1/sessions/"+id+"/entries", body)
		var p struct{ Field, Detail string }
		if err := json.Unmarshal(a.body, &p); err != nil || a.status/100 != 4 || p.Field != field || strings.Contains(p.Detail, "Go ") {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	a := s.ask("POST", "/v1/sessions/"+id+"/entries", `{"message": {"role": "user", "mood": "calm", "content": [{"type": "text", "text": "Hello", "lang": "en"}]}}`)
	read := s.ask("GET", "/v1/sessions/"+id+"/entries?last=1", "")
	if a.status != http.StatusOK || !strings.Contains(string(read.body), `"mood":"calm"`) || !strings.Contains(string(read.body), `"lang":"en"`) {
		t.Errorf("%d %s is read as %s", a.status, a.body, read.body)
	}
}

// TestIdempotencyKeyIsTakenOrRefused: no caller may rely on a key that is ignored.
func TestIdempotencyKeyIsTakenOrRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	for path, body := range map[string]string{"/v1/sessions": `{}`, "/v1/sessions/" + id + "/fork": `{}`} {
		a := s.ask("POST", path, body, "Idempotency-Key: one")
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), `"field":"Idempotency-Key"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.ask("GET", "/v1/sessions", "", "Idempotency-Key: one"); a.status != http.StatusOK {
		t.Errorf("a list: %d %s", a.status, a.body)
	}
}
