package mcp_test

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// An error says outside the quotation what is wrong with a call, so that a model acts on it. Text
// of a session that the error repeats is inside.
func TestErrorsAreOurs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := kiln(t, h)
	newSession(t, h, home.CreateRequest{Title: "EVIL words"}, said(session.RoleUser, "x"))
	newSession(t, h, home.CreateRequest{Title: "EVIL words"}, said(session.RoleUser, "y"))
	c := connect(t, h, nil)
	for _, test := range []struct {
		tool         string
		a            args
		before, then string
	}{
		{"search", args{"query": "x", "max_tokens": 20}, "max_tokens is 20; it must be from 500 to 20000", ""},
		{"search", args{"query": "x", "cursor": "?"}, "cursor is not one from an answer", ""},
		{"search", args{"query": "x", "since": "long ago"}, "since", ""},
		{"search", args{"query": `"x`}, `the phrase has no end`, ""},
		{"search", args{"q": "x"}, "search has no argument q; it needs query, and takes session, directory, ", ""},
		{"recent_sessions", args{"sesion": "x"}, "recent_sessions has no argument sesion; it takes directory, ", ""},
		{"search", args{}, "query is missing; it must be a string (what to search for)", ""},
		{"search", args{"query": nil}, "query is missing", ""},
		{"search", args{"query": []string{"x"}}, `query is ["x"]; it must be a string`, ""},
		{"search", args{"query": 1.5}, `query is 1.5; it must be a string`, ""},
		{"search", args{"query": "x", "limit": "ten"}, `limit is "ten"; it must be a whole number (how many`, ""},
		{"search", args{"query": "x", "limit": 1e30}, "it must be a whole number", ""},
		{"search", args{"query": "x", "newest": "yes"}, `newest is "yes"; it must be true or false (newest first`, ""},
		{"read_session", args{"session": id, "from_start": 1}, "from_start is 1; it must be true or false", ""},
		{"append_note", args{"session": id}, "text is missing; it must be a string (the note)", ""},
		{"set_label", args{"session": id, "entry": "leaf", "label": true}, "label is true; it must be a string", ""},
		{"sessions_with_file", args{"path": " "}, "path is empty", ""},
		{"sessions_with_file", args{"path": "x", "limit": -1}, "limit is -1", ""},
		{"get_image", args{}, "needs session or search", ""},
		{"get_image", args{"session": id, "image": 1}, "there is no such", "image"},
		{"read_session", args{"session": "none"}, "there is no such session", "none"},
		{"read_session", args{"session": id, "entry": "none"}, "there is no such", "none"},
		{"read_session", args{"session": "EVIL words"}, "This did not work", ""},
	} {
		r := c.call(test.tool, test.a)
		before, inside, _ := split(t, textOf(r))
		if !r.IsError || !strings.Contains(before, test.before) || !strings.Contains(inside, test.then) || strings.Contains(before, "EVIL") {
			t.Errorf("%s %v: %v\n%s", test.tool, test.a, r.IsError, textOf(r))
		}
		if (test.then == "") != (inside == "") && test.a["session"] != "EVIL words" {
			t.Errorf("%s %v: inside is %q", test.tool, test.a, inside)
		}
	}
}

// Models send null for what they leave out, and numbers for strings of digits.
func TestArgumentsAreReadAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	kiln(t, h)
	c := connect(t, h, nil)
	wants(t, c.ask("search", args{"query": "heartbeat", "limit": nil, "agent": nil, "newest": nil, "max_tokens": 600.0}), "Hits 1 to 2 of 2")
	wants(t, c.ask("search", args{"query": 40}), "Hits 1 to 1 of 1", "late by 40 ms")
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "recent_sessions"}); err != nil {
		t.Error(err)
	}
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "recent_sessions", Arguments: []string{"x"}})
	if err != nil || !r.IsError {
		t.Fatal(r, err)
	}
	wants(t, textOf(r), "the arguments of recent_sessions must be a JSON object")
}
