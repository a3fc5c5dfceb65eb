package format_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

// sink counts what it is given.
type sink struct {
	kept     []string
	problems []transcript.Problem
	keepErr  error
}

func (s *sink) Begin(transcript.Conversation) error { return nil }
func (s *sink) Add(transcript.Record) error         { return nil }
func (s *sink) Count(string, string, int)           {}
func (s *sink) Problem(p transcript.Problem)        { s.problems = append(s.problems, p) }

func (s *sink) Keep(_ string, raw []byte) (transcript.Span, error) {
	s.kept = append(s.kept, string(raw))
	return transcript.Span{Pos: 1000, Len: int64(len(raw))}, s.keepErr
}

func TestRecordsEach(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
		problems         int
		kept             int
		err              error
	}{
		{"one document", "a.json", "\xef\xbb\xbf{\n \"a\": 1\n}", []string{"{\n \"a\": 1\n}"}, 0, 0, nil},
		{"an array", "a.json", ` [{"a":1}, {"b":2}, 7] `, []string{`{"a":1}`, `{"b":2}`}, 1, 3, nil},
		{"lines", "a.jsonl", "{\"a\":1}\r\n\nnot json\n{\"b\":2}\n{\"torn\":", []string{`{"a":1}`, `{"b":2}`}, 1, 0, nil},
		{"one long line", "a.jsonl", `{"a":"` + strings.Repeat("x", 70<<10) + `"}`, []string{`{"a":"` + strings.Repeat("x", 70<<10) + `"}`}, 0, 0, nil},
		{"a bad record in lines", "a.jsonl", "{\"bad\":1}\n{\"a\":1}\n", []string{`{"a":1}`}, 1, 0, nil},
		{"a bad record alone", "a.json", `{"bad":1}`, nil, 0, 0, session.ErrInvalid},
		{"not JSON", "a.json", `{`, nil, 0, 0, session.ErrCorrupt},
		{"an array that breaks off", "a.json", `[{"a":1},`, []string{`{"a":1}`}, 0, 1, session.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			to := &sink{}
			err := records.Each(t.Context(), transcript.FileOf("/x/"+tt.file, []byte(tt.text)), to, func(r records.Record) error {
				if r.Has("bad") {
					return records.Bad(errors.New("bad"))
				}
				got = append(got, string(r.Value))
				return nil
			})
			if !errors.Is(err, tt.err) {
				t.Errorf("the error is %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(to.problems) != tt.problems || len(to.kept) != tt.kept {
				t.Errorf("problems %v, kept %q", to.problems, to.kept)
			}
		})
	}
}

// TestRecordsOtherErrors: what is wrong with the sink ends the reading.
func TestRecordsOtherErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{`{"a":1}`, `[{"a":1}]`, "{\"a\":1}\n{\"a\":1}\n"} {
		err := records.Each(t.Context(), transcript.FileOf("/x", []byte(text)), &sink{}, func(records.Record) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
	err := records.Each(t.Context(), transcript.FileOf("/x", []byte(`[{}]`)), &sink{keepErr: broken}, func(records.Record) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if records.Bad(nil) != nil || !errors.Is(records.Bad(broken), broken) || !errors.Is(records.Bad(broken), session.ErrInvalid) {
		t.Error("a bad record is not what it is")
	}
}

func TestRecordsID(t *testing.T) {
	file, input := transcript.FileOf("/x", nil), transcript.FileOf("-", nil)
	ids := []string{
		records.ID("f", file, "", 1, []byte("a")), records.ID("f", file, "", 2, []byte("a")), records.ID("f", file, "n", 1, nil),
		records.ID("g", file, "", 1, nil), records.ID("f", input, "", 1, []byte("a")), records.ID("f", input, "", 1, []byte("b")),
	}
	seen := make(map[string]bool)
	for _, id := range ids {
		if seen[id] {
			t.Errorf("two conversations are %s", id)
		}
		seen[id] = true
	}
	if ids[0] != records.ID("f", file, "", 1, []byte("grown")) {
		t.Error("a conversation that grew is another one")
	}
}

func TestRecordsOneLine(t *testing.T) {
	if got := records.OneLine([]byte("{ \"a\":\n1 }")); string(got) != `{"a":1}` {
		t.Errorf("%s", got)
	}
	if got := records.OneLine([]byte("{")); got != nil {
		t.Errorf("%s", got)
	}
}
