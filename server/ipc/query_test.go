package ipc_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// query asks the built-in model to do something: see package offline.
func (c *client) query(text string) {
	c.Helper()
	line, err := json.Marshal(object{"type": "query", "query": text})
	if err != nil {
		c.Fatal(err)
	}
	c.say(string(line))
}

// until returns the messages up to one of a type.
func (c *client) until(kind string) (all []object) {
	c.Helper()
	for {
		m := c.next()
		all = append(all, m)
		switch m["type"] {
		case kind:
			return all
		case "stream_complete", "error":
			c.Fatalf("there was no %s: %v", kind, all)
		}
	}
}

// last returns the last of messages.
func last(all []object) object { return all[len(all)-1] }

// withTools has the built-in model answer, which may run commands in a directory.
func (c *client) withTools(dir string) {
	c.Helper()
	line, err := json.Marshal(object{"type": "initialize", "demo_mode": true, "tools": []string{"bash"}, "cwd": dir})
	if err != nil {
		c.Fatal(err)
	}
	if answer := c.ask(string(line)); answer["type"] != "initialized" {
		c.Fatal(answer)
	}
}

// touch is the query with which the built-in model makes a file.
const touch = `call bash {"command":"touch leaf"}`

func TestQuery(t *testing.T) {
	t.Parallel()
	c := begin(t)
	if answer := c.ask(`{"type":"initialize","demo_mode":true}`); answer["type"] != "initialized" || answer["demo_mode"] != true {
		t.Fatal(answer)
	}
	c.query("say Hazel and willow.")
	all := c.until("stream_complete")
	id, _ := all[0]["session_id"].(string)
	if all[0]["type"] != "session_created" || id == "" {
		t.Errorf("the session was not created first: %v", all)
	}
	var heard strings.Builder
	for _, m := range all[1 : len(all)-1] {
		if m["type"] != "stream_token" {
			t.Errorf("%v", m)
		}
		heard.WriteString(m["content"].(string))
	}
	end := last(all)
	if heard.String() != "Hazel and willow." || end["content"] != "Hazel and willow." || end["session_id"] != id || end["message_count"] != 2.0 {
		t.Errorf("heard %q, end %v", heard.String(), end)
	}
	c.query("say Once more.")
	if end := last(c.until("stream_complete")); end["session_id"] != id || end["message_count"] != 4.0 {
		t.Errorf("the second query: %v", end)
	}
	if loaded := c.ask(`{"type":"session_load","session_id":"` + id + `"}`); loaded["message_count"] != 4.0 {
		t.Errorf("loaded: %v", loaded)
	}
	if empty := c.ask(`{"type":"query","query":" \n"}`); empty["kind"] != "invalid" || empty["field"] != "query" {
		t.Errorf("nothing was said: %v", empty)
	}
	c.ask(`{"type":"initialize","demo_mode":false,"provider":"nobody"}`)
	c.query("Hello?")
	if failed := c.next(); failed["type"] != "error" || failed["kind"] != "invalid" || failed["request"] != "query" {
		t.Errorf("there is no such model: %v", failed)
	}
}

// TestToolApprove: a tool runs if and only if it was approved, and other requests are answered
// while it waits.
func TestToolApprove(t *testing.T) {
	t.Parallel()
	for _, approved := range []string{"true", "false"} {
		t.Run(approved, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := begin(t)
			c.withTools(dir)
			c.query(touch)
			asked := last(c.until("tool_request_approval"))
			input, _ := asked["input"].(object)
			if asked["tool"] != "bash" || input["command"] != "touch leaf" || asked["dir"] != dir {
				t.Errorf("asked: %v", asked)
			}
			if list := c.ask(`{"type":"session_list"}`); list["type"] != "session_list_result" {
				t.Errorf("meanwhile: %v", list)
			}
			if busy := c.ask(`{"type":"query","query":"and?"}`); busy["kind"] != "locked" {
				t.Errorf("a second query: %v", busy)
			}
			if other := c.ask(`{"type":"tool_approve","tool_id":"another","approved":true}`); other["kind"] != "not_found" {
				t.Errorf("another call: %v", other)
			}
			if _, err := os.Stat(filepath.Join(dir, "leaf")); err == nil {
				t.Error("the tool did not wait")
			}
			c.say(`{"type":"tool_approve","tool_id":"` + asked["tool_id"].(string) + `","approved":` + approved + `}`)
			result := last(c.until("tool_result"))
			_, err := os.Stat(filepath.Join(dir, "leaf"))
			if want := approved == "true"; result["tool_id"] != asked["tool_id"] || result["success"] != want || (err == nil) != want {
				t.Errorf("result: %v, file: %v", result, err)
			}
			c.until("stream_complete")
		})
	}
}

// TestApproveWithMore: a client can say why not, and what is allowed from now on.
func TestApproveWithMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := begin(t)
	c.withTools(dir)
	approve := func(asked object, more object) {
		t.Helper()
		more["type"], more["tool_id"] = "tool_approve", asked["tool_id"]
		line, err := json.Marshal(more)
		if err != nil {
			t.Fatal(err)
		}
		c.say(string(line))
	}
	c.query(touch)
	approve(last(c.until("tool_request_approval")), object{"approved": false, "reason": "not in autumn"})
	if result := last(c.until("tool_result")); !strings.Contains(result["content"].(string), "not in autumn") {
		t.Errorf("denied: %v", result)
	}
	c.until("stream_complete")
	c.query(touch + "\n" + touch)
	asked := last(c.until("tool_request_approval"))
	if asked["rules"] == nil {
		t.Errorf("asked: %v", asked)
	}
	approve(asked, object{"approved": true, "rules": asked["rules"]})
	for _, m := range c.until("stream_complete") {
		if m["type"] == "tool_request_approval" {
			t.Errorf("asked again: %v", m)
		}
	}
}

// TestApproveLater: a client that goes away while a tool waits leaves the question behind, and
// another connection answers it.
func TestApproveLater(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*net.UnixConn) error{
		"half": (*net.UnixConn).CloseWrite, "gone": (*net.UnixConn).Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := newHome(t)
			_, path := serve(t, h, nil)
			c := dial(t, path)
			c.withTools(dir)
			c.query(touch)
			asked := c.until("tool_request_approval")
			if err := leave(c.Conn.(*net.UnixConn)); err != nil {
				t.Fatal(err)
			}
			id := asked[0]["session_id"].(string)
			if name == "half" {
				if end := last(c.until("stream_complete")); end["stop"] != "approval" {
					t.Errorf("the turn ended: %v", end)
				}
				if rest, err := io.ReadAll(c.lines); len(rest) > 0 || err != nil {
					t.Errorf("after the end: %q, %v", rest, err)
				}
			} else if _, err := h.Turns.Watch(t.Context(), home.WatchRequest{Session: id}, nil); err != nil {
				t.Fatal(err)
			}

			c = dial(t, path)
			c.withTools(dir)
			c.ask(`{"type":"session_load","session_id":"` + id + `"}`)
			c.say(`{"type":"tool_approve","tool_id":"` + last(asked)["tool_id"].(string) + `","approved":true}`)
			if result := last(c.until("tool_result")); result["success"] != true {
				t.Errorf("result: %v", result)
			}
			c.until("stream_complete")
			if _, err := os.Stat(filepath.Join(dir, "leaf")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGoneClient: a turn that waits for the approval of a client which has gone ends, although
// nothing is written to the client that would fail.
func TestGoneClient(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, path := serve(t, h, nil)
	c := dial(t, path)
	c.say(call("turn", "turns.prompt", object{"text": touch, "provider": "offline", "tools": []string{"bash"}, "cwd": t.TempDir()}))
	e := object{}
	for e["type"] != "tool_waiting" {
		e, _ = c.next()["params"].(object)["event"].(object)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		s, err := h.Turns.Status(t.Context(), home.SessionRequest{Session: e["session"].(string)})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Running {
			if len(s.Pending) != 1 || s.Pending[0].State != "waiting" {
				t.Errorf("it left %+v", s.Pending)
			}
			return
		}
	}
}

// TestShutdownCancels: what has no end in sight is cancelled when the context ends, and its
// client is told.
func TestShutdownCancels(t *testing.T) {
	t.Parallel()
	s, path := serve(t, newHome(t), nil)
	c := dial(t, path)
	c.say(call("turn", "turns.prompt", object{"text": touch, "provider": "offline", "tools": []string{"bash"}, "cwd": t.TempDir()}))
	for {
		e, _ := c.next()["params"].(object)["event"].(object)
		if e["type"] == "tool_waiting" {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("nothing was cancelled")
	}
	answer := c.answer()
	if e, _ := answer["error"].(object); answer["id"] != "turn" || e["code"] != -32008.0 || e["message"] != "the server ended" {
		t.Errorf("%v", answer)
	}
}
