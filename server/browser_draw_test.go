package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// What the page has drawn is as harmless as what a session has.
func TestDrawing(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	draw := func(body string) string {
		t.Helper()
		return want[struct{ HTML string }](s, 200, "POST", "/web/html", body).HTML
	}
	for _, tt := range []struct {
		body string
		want []string
	}{
		{`{"content": [{"type": "text", "text": {"content": "This is **bold** <script>"}}]}`, []string{"<strong>bold</strong>", "&lt;script&gt;"}},
		{`{"content": [{"type": "tool_use", "tool_use": {"id": "1", "name": "bash", "input": {"command": "ls </code><img src=x>"}}}]}`, []string{"<b>bash</b>", "ls &lt;/code&gt;&lt;img"}},
		{`{"edits": [{"path": "a.go", "op": "change", "hunks": [{"before": 7, "after": 7, "lines": ["-x", "+<b>y"]}]}]}`, []string{"<del>-x", "<ins>+&lt;b&gt;y"}},
		{`{}`, nil},
	} {
		got := draw(tt.body)
		for _, part := range tt.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s is drawn as %s", tt.body, got)
			}
		}
	}
	if got := s.ask("POST", "/web/html", `{"content": "no list"}`); got.status != http.StatusBadRequest {
		t.Errorf("a wrong body is %d", got.status)
	}
	if got := s.ask("POST", "/web/html", `{"content": [{"type": "text", "text": {"content": "`+strings.Repeat("x", 5<<20)+`"}}]}`); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large is %d", got.status)
	}
}

func TestChoicesOfThePage(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := want[struct {
		Models   []home.KnownModel
		Thinking []string
		Programs []struct {
			Name, Title string
			Resumes     bool
		}
	}](s, 200, "GET", "/web/choices", "")
	if len(got.Models) == 0 || len(got.Thinking) == 0 || len(got.Programs) < 2 {
		t.Errorf("there is too little to choose from: %+v", got)
	}
	for _, m := range got.Models {
		if !m.Ready {
			t.Errorf("%s cannot be asked", m.Name())
		}
	}
	for _, p := range got.Programs {
		if p.Title == "" || p.Name == "claude-code" && !p.Resumes {
			t.Errorf("%+v", p)
		}
	}
}

// Rows say what their calls do, so that the page can fold them.
func TestRowsOfThePageSayWhatCallsDo(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) {})
	made := want[home.CreateResult](s, 200, "POST", "/v1/sessions", `{"title": "work"}`)
	say := func(role, content string) {
		t.Helper()
		want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+made.Session+"/entries", `{"message": {"role": "`+role+`", "content": [`+content+`]}}`)
	}
	call := `{"type": "tool_use", "tool_use": {"id": "1", "name": "bash", "input": {"command": "ls"}}}`
	say("user", `{"type": "text", "text": {"content": "Look."}}`)
	say("assistant", call)
	say("tool", `{"type": "tool_result", "tool_result": {"tool_use_id": "1", "is_error": true, "content": "no"}}`)
	say("assistant", `{"type": "text", "text": {"content": "I look again."}}, `+strings.Replace(call, `"1"`, `"2"`, 1))
	var rows struct {
		Rows []struct {
			Work *struct {
				Calls, Failed int
				Deeds         []struct{ Verb string }
			}
		}
	}
	if err := json.Unmarshal(s.ask("GET", "/web/rows/"+made.Session, "").body, &rows); err != nil || len(rows.Rows) != 4 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if w := rows.Rows[1].Work; w == nil || w.Calls != 1 || w.Failed != 1 || len(w.Deeds) != 1 || w.Deeds[0].Verb != "ran" {
		t.Errorf("the call is %+v", w)
	}
	if rows.Rows[0].Work != nil || rows.Rows[3].Work != nil {
		t.Error("something that was said counts as work")
	}
}
