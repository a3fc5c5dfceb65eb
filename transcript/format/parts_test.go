package format_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/amp"
	"github.com/coppice-dev/coppice/transcript/format/cline"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

// adder remembers the records that it is given, up to a number of them.
type adder struct {
	sink
	added []transcript.Record
	most  int
}

var errFull = errors.New("full")

func (a *adder) Add(r transcript.Record) error {
	if len(a.added) == a.most {
		return errFull
	}
	a.added = append(a.added, r)
	return nil
}

func TestRecordsAddParts(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	parts := []session.Entry{session.Message(session.RoleTool), session.Message(session.RoleUser), session.Message(session.RoleAssistant)}
	add := func(id string, most, n int) (ids, parents []string, err error) {
		to := &adder{most: most}
		rec := transcript.Record{ID: id, Parent: "p", From: []transcript.Span{{Pos: 7, Len: 1}}}
		rec.Entry.Timestamp = at
		err = records.AddParts(to, rec, ":", parts[:n])
		for i, r := range to.added {
			ids, parents = append(ids, r.ID), append(parents, r.Parent)
			if !r.Entry.Timestamp.Equal(at) || len(r.From) != 1 || r.Entry.Message != parts[i].Message {
				t.Errorf("part %d is %+v", i, r)
			}
		}
		return ids, parents, err
	}
	tests := []struct {
		name         string
		id           string
		most, n      int
		ids, parents []string
		err          error
	}{
		{"several", "m", 9, 3, []string{"m:1", "m:2", "m"}, []string{"p", "", ""}, nil},
		{"one", "m", 9, 1, []string{"m"}, []string{"p"}, nil},
		{"none", "m", 9, 0, nil, nil, nil},
		{"without an id", "", 9, 2, []string{"", ""}, []string{"p", ""}, nil},
		{"an error of the sink", "m", 1, 3, []string{"m:1"}, []string{"p"}, errFull},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids, parents, err := add(tt.id, tt.most, tt.n)
			if !errors.Is(err, tt.err) || !slices.Equal(ids, tt.ids) || !slices.Equal(parents, tt.parents) {
				t.Errorf("ids %q, parents %q, %v", ids, parents, err)
			}
		})
	}
}

// TestTornDocumentsAreCorrupt holds that all readers of documents name a torn file alike, and
// take a byte order mark for none of its content.
func TestTornDocumentsAreCorrupt(t *testing.T) {
	for format, doc := range map[*transcript.Format]struct{ file, text string }{
		amp.Format():   {"/x/T-1.json", `{"id":"T-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		cline.Format(): {"/x/1/api_conversation_history.json", `[{"role":"user","content":"hi"}]`},
		codex.Format(): {"/x/rollout.json", `{"session":{"id":"s"},"items":[{"role":"user","content":"hi"}]}`},
	} {
		t.Run(format.Name, func(t *testing.T) {
			read := func(text string) error {
				_, err := transcript.Collect(t.Context(), format, transcript.FileOf(doc.file, []byte(text)))
				return err
			}
			if err := read("\xef\xbb\xbf" + doc.text); err != nil {
				t.Errorf("with a byte order mark: %v", err)
			}
			if err := read(doc.text[:len(doc.text)-1]); !errors.Is(err, session.ErrCorrupt) {
				t.Errorf("torn: %v", err)
			}
		})
	}
}
