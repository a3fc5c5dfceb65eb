package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// TestFollowingAPartAgain: one who comes back, and follows what the server does not keep, is told
// that something may be missing, and hears what comes from then on. It learns nothing of what is
// outside of its part.
func TestFollowingAPartAgain(t *testing.T) {
	t.Parallel()
	s := servePart(t)
	inside, at := s.talk()
	outside := want[home.CreateResult](s, 200, "POST", "/v1/sessions", `{"title": "Secret otters"}`).Session
	say := func(to string) string {
		return want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+to+"/entries", hello).Entry
	}
	for name, follow := range map[string][]string{
		"a part":       {"/v1/follow", part},
		"with content": {"/v1/follow?filled=true"},
	} {
		next := s.events(follow[0], append(follow[1:], "Last-Event-ID: "+at)...)
		if id, event, _ := next(); event != "reset" || id != "" {
			t.Errorf("%s: it begins with %s %q", name, event, id)
		}
		say(outside)
		said := say(inside)
		for {
			id, event, data := next()
			if strings.Contains(data, outside) && name == "a part" {
				t.Errorf("%s: it hears %s", name, data)
			}
			if id == said && event == "message" {
				break
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/follow?after="+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer part")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); ; {
		var m server.Message
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &m) != nil || m.Error != nil {
			t.Fatalf("after %s comes %q", at, lines.Text())
		}
		if m.Notice != nil && m.Notice.Kind == home.EntriesMissed {
			break
		}
	}
}

// TestReconnectingAsksForTheSameAddress: what it says about the beginning counts only once.
func TestReconnectingAsksForTheSameAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, first := s.talk()
	second := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello).Entry
	path := "/v1/follow?last=2&session=" + id
	next := s.arrivals(path)
	for _, want := range []string{first, second} {
		if got, _, data := next(); got != want {
			t.Errorf("it begins with %s, not with %s", data, want)
		}
	}
	if got, _, data := s.arrivals(path, "Last-Event-ID: "+first)(); got != second {
		t.Errorf("it goes on with %s, not with %s", data, second)
	}
}
