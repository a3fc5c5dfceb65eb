package home_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

func rowsOf(t *testing.T, h *home.Home, r home.RowsRequest) *home.RowsResult {
	t.Helper()
	return must[*home.RowsResult](t)(h.Entries.Rows(t.Context(), r))
}

func rowIDs(r *home.RowsResult) (ids []string) {
	for i := range r.Rows {
		ids = append(ids, r.Rows[i].Entry.ID)
	}
	return ids
}

func TestAWindowIsCountedFromTheRootTheEndOrAnEntry(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two", "three", "four", "five")
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"noted"}}))
	for _, test := range []struct {
		r        home.RowsRequest
		from, to int
	}{
		{home.RowsRequest{}, 0, 5},
		{home.RowsRequest{From: 1, Count: 2}, 1, 3},
		{home.RowsRequest{From: 4, Count: 9}, 4, 5},
		{home.RowsRequest{From: 9}, 5, 5},
		{home.RowsRequest{From: -2}, 3, 5},
		{home.RowsRequest{From: -9, Count: 1}, 0, 1},
		{home.RowsRequest{At: said[2]}, 2, 5},
		{home.RowsRequest{At: said[2], From: -1, Count: 2}, 1, 3},
		{home.RowsRequest{At: said[2], From: -9, Count: 2}, 0, 2},
		{home.RowsRequest{At: home.Leaf, From: 1}, 5, 5},
	} {
		test.r.Session = id
		got := rowsOf(t, h, test.r)
		if !slices.Equal(rowIDs(got), said[test.from:test.to]) || got.From != test.from || got.Total != 5 || got.Leaf != said[4] {
			t.Errorf("%+v: rows %v from %d of %d to %s", test.r, rowIDs(got), got.From, got.Total, got.Leaf)
		}
		for i, row := range got.Rows {
			if row.Index != test.from+i || row.Kind != "user" || row.Gist == "" {
				t.Errorf("%+v: row %+v", test.r, row)
			}
		}
	}
	for field, r := range map[string]home.RowsRequest{"count": {Count: 1001}, "limit": {Limit: -1}} {
		r.Session = id
		wantField(t, errorOf(h.Entries.Rows(t.Context(), r)), field)
	}
}

func TestAnEntryOfAnotherBranchBringsItsPath(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two", "three")
	under := func(parent, text string) string {
		r := home.AppendRequest{Session: id, Message: userSays(text), Parent: parent}
		return must[*home.AppendResult](t)(h.Entries.Append(t.Context(), r)).Entry
	}
	other := under(said[0], "another two")
	last := under(other, "another three")
	got := rowsOf(t, h, home.RowsRequest{Session: id, At: said[1]})
	if got.Leaf != said[2] || got.Total != 3 || got.From != 1 {
		t.Errorf("the path goes to %s, has %d and begins at %d", got.Leaf, got.Total, got.From)
	}
	got = rowsOf(t, h, home.RowsRequest{Session: id})
	if got.Leaf != last || !slices.Equal(got.Rows[0].Others, []home.Branch{{Entry: said[1], Length: 2}}) {
		t.Errorf("the path goes to %s, beside %+v", got.Leaf, got.Rows[0].Others)
	}
	got = rowsOf(t, h, home.RowsRequest{Session: id, Leaf: said[0]})
	if len(got.Rows) != 1 || len(got.Rows[0].Others) != 2 {
		t.Errorf("the path that ends early: %+v", got)
	}
}

func TestARowHasNoMoreTextThanAskedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{}, strings.Repeat("ö", 300))
	long := strings.Repeat("long ", 100)
	for _, c := range []session.Content{
		session.Thinking(long, "signature"),
		session.ToolUse("1", "bash", map[string]any{"command": long, "list": []any{long, long}}),
		session.ToolResult("1", long, false),
		{Type: "hologram", Raw: []byte(`{"type":"hologram","data":"` + long + `"}`)},
	} {
		if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{c, session.Text("the end")}); err != nil {
			t.Fatal(err)
		}
	}
	for limit := range 40 {
		for _, row := range rowsOf(t, h.Home, home.RowsRequest{Session: s.ID(), Limit: limit + 1}).Rows {
			text := must[[]byte](t)(json.Marshal(row.Entry))
			if !row.Cut || len(text) > limit+400 || !utf8.Valid(text) || strings.Contains(string(text), "�") {
				t.Fatalf("with %d bytes, cut is %v and the row is %s", limit+1, row.Cut, text)
			}
		}
	}
	for _, row := range rowsOf(t, h.Home, home.RowsRequest{Session: s.ID()}).Rows {
		if row.Cut {
			t.Errorf("a short row is cut: %s", row.Gist)
		}
	}
}

func TestPicturesInRowsHaveASizeAndNoContent(t *testing.T) {
	t.Parallel()
	h, drawing, _ := album(t)
	list := must[*home.ListResult](t)(h.Sessions.List(t.Context(), home.ListRequest{}))
	found := 0
	for _, c := range list.Sessions {
		for _, row := range rowsOf(t, h.Home, home.RowsRequest{Session: c.ID}).Rows {
			if row.Entry.Message == nil {
				continue
			}
			for _, block := range row.Entry.Message.Content {
				if block.Image == nil {
					continue
				}
				if block.Image.Source.Type != "url" && block.Image.Source.Data != "" {
					t.Errorf("a picture has %d bytes of content", len(block.Image.Source.Data))
				}
				if block.Image.Source.Size == int64(len(drawing)) {
					found++
				}
			}
		}
	}
	if found == 0 {
		t.Error("no picture has the size of the drawing")
	}
}

func TestSeek(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{}, "Straße nach Köln", "two")
	say := func(role string, content ...session.Content) string {
		t.Helper()
		return must[string](t)(s.AppendMessage(role, content))
	}
	call := say(session.RoleAssistant, session.Thinking("hmm, the door", ""),
		session.ToolUse("1", "Edit", map[string]any{"file_path": "a.go", "old_string": "x", "new_string": "Yonder"}))
	failed := say(session.RoleTool, session.ToolResult("1", "no such FILE", true))
	answer := say(session.RoleAssistant, session.Text("It does not exist."))
	must[*home.LabelResult](t)(h.Entries.Label(t.Context(), home.LabelRequest{Session: s.ID(), Entry: answer, Label: "stuck"}))
	all := rowIDs(rowsOf(t, h.Home, home.RowsRequest{Session: s.ID()}))
	for _, test := range []struct {
		r    home.SeekRequest
		want string
	}{
		{home.SeekRequest{Text: "KÖLN"}, all[0]},
		{home.SeekRequest{Text: "köln", From: 1}, ""},
		{home.SeekRequest{Text: "köln", From: -1, Back: true}, all[0]},
		{home.SeekRequest{Text: "THE DOOR"}, call},
		{home.SeekRequest{Text: "yonder"}, call},
		{home.SeekRequest{Text: "a.go"}, call},
		{home.SeekRequest{Text: "no such file"}, failed},
		{home.SeekRequest{Text: "stuck"}, answer},
		{home.SeekRequest{Kind: "prompt"}, all[0]},
		{home.SeekRequest{Kind: "prompt", From: -1, Back: true}, all[1]},
		{home.SeekRequest{Kind: "answer"}, answer},
		{home.SeekRequest{Kind: "call"}, call},
		{home.SeekRequest{Kind: "edit"}, call},
		{home.SeekRequest{Kind: "error"}, failed},
		{home.SeekRequest{Kind: "label"}, answer},
		{home.SeekRequest{Kind: "branch"}, ""},
		{home.SeekRequest{Kind: "prompt", Text: "two"}, all[1]},
		{home.SeekRequest{Kind: "answer", Text: "two"}, ""},
	} {
		test.r.Session = s.ID()
		got := must[*home.SeekResult](t)(h.Entries.Seek(t.Context(), test.r))
		if got.Entry != test.want || got.Found != (test.want != "") || got.Found && all[got.Index] != got.Entry {
			t.Errorf("%+v found %+v, want %q", test.r, got, test.want)
		}
		if got.Found && test.r.Text != "" && !strings.Contains(strings.ToLower(got.Excerpt), strings.ToLower(test.r.Text)) {
			t.Errorf("%+v: the excerpt is %q", test.r, got.Excerpt)
		}
	}
	wantField(t, errorOf(h.Entries.Seek(t.Context(), home.SeekRequest{Session: s.ID()})), "text")
	wantField(t, errorOf(h.Entries.Seek(t.Context(), home.SeekRequest{Session: s.ID(), Kind: "poem"})), "kind")
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *home.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("the error is not about %s: %v", field, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }
