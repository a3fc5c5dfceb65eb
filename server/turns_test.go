package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// heard is a server-sent event of a turn.
type heard struct {
	id   string
	name string
	data struct {
		Event  home.TurnEvent
		Result *home.TurnResult
		Error  *server.Problem
	}
}

// until reads the events of a turn up to one of a type. It returns the ids of all.
func until(t *testing.T, next func() (id, name, data string, ok bool), is string) (last heard, ids []string) {
	t.Helper()
	for {
		id, name, data, ok := next()
		if !ok {
			t.Fatalf("there was no %s; the last was %+v", is, last)
		}
		last = heard{id: id, name: name}
		if err := json.Unmarshal([]byte(data), &last.data); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if id != "" {
			ids = append(ids, id)
		}
		if name == is || string(last.data.Event.Type) == is {
			return last, ids
		}
	}
}

// A turn is asked for, approved and heard to its end by HTTP, over two connections.
func TestATurnByHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Tools = home.Admin })
	dir := t.TempDir()
	body, err := json.Marshal(map[string]any{"text": `call bash {"command":"touch one"}`, "tools": []string{"bash"}, "cwd": dir})
	if err != nil {
		t.Fatal(err)
	}
	next, leave := s.listen("POST", "/v1/turns", string(body))
	asked, before := until(t, next, "tool_waiting")
	turn := "/v1/sessions/" + asked.data.Event.Session + "/turn"
	if status := want[home.TurnStatus](s, 200, "GET", turn, ""); !status.Running || status.Asked == nil {
		t.Errorf("the status is %+v", status)
	}
	// The connection breaks before the question arrives, and the caller comes back.
	before = before[:len(before)-1]
	again, _ := s.listen("GET", turn+"/events", "", "Last-Event-ID: "+before[len(before)-1])
	leave()
	decision, err := json.Marshal(map[string]string{"call": asked.data.Event.Call.ID, "decision": "allow"})
	if err != nil {
		t.Fatal(err)
	}
	want[home.ApproveResult](s, 200, "POST", turn+"/approve", string(decision))
	end, after := until(t, again, "result")
	if end.data.Result == nil || end.data.Result.Stop != "end_turn" {
		t.Errorf("the turn ended with %+v", end.data)
	}
	if _, err := os.Stat(filepath.Join(dir, "one")); err != nil {
		t.Error(err)
	}
	whole, _ := s.listen("GET", turn+"/events", "")
	_, all := until(t, whole, "result")
	if got := strings.Join(append(before, after...), " "); got != strings.Join(all, " ") {
		t.Errorf("the events were\n%s, and there were\n%s", got, strings.Join(all, " "))
	}
}

// Tools act on the machine of the server, so only those get them whom its owner means.
func TestToolsAreForThoseWhomTheOwnerMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools, access home.Access
		status        int
	}{
		"nobody may":   {0, home.Admin, http.StatusForbidden},
		"others may":   {home.Admin, home.Write, http.StatusForbidden},
		"they may":     {home.Write, home.Write, http.StatusOK},
		"readers ask":  {home.Write, home.Read, http.StatusForbidden},
		"admins do it": {home.Admin, home.Admin, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(o *server.Options) {
				o.Tools = c.tools
				o.Authorize = func(context.Context, string) (*server.Grant, error) {
					return &server.Grant{Name: "caller", Access: c.access}, nil
				}
			})
			for _, asks := range []map[string]any{
				{"text": "hello", "tools": []string{"read"}, "cwd": t.TempDir()},
				{"text": "hello", "context": []string{"turns_test.go"}},
			} {
				body, err := json.Marshal(asks)
				if err != nil {
					t.Fatal(err)
				}
				if a := s.ask("POST", "/v1/turns", string(body)); a.outcome() != c.status {
					t.Errorf("%s: %d %s", body, a.status, a.body)
				}
			}
			if c.access >= home.Write {
				if a := s.ask("POST", "/v1/turns", `{"text": "say hello"}`); a.status != http.StatusOK || !strings.Contains(string(a.body), "end_turn") {
					t.Errorf("without tools: %d %s", a.status, a.body)
				}
			}
		})
	}
}
