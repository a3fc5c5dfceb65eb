package session_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

const megabyte = 1 << 20

func output(bytes int) session.Content {
	return session.ToolResult("c", strings.Repeat("o", bytes), false)
}

// wantLimit checks that an error names the limit, and that nothing was written.
func wantLimit(t *testing.T, err error, limit store.Limit, max int64) {
	t.Helper()
	var got *store.LimitError
	if !errors.As(err, &got) || got.Limit != limit || got.Max != max || got.Size <= max || !errors.Is(err, session.ErrTooLarge) {
		t.Fatalf("%v, want an error that names %s of %d", err, limit, max)
	}
	if text := err.Error(); !strings.Contains(text, string(limit)) || !strings.Contains(text, fmt.Sprint(max)) {
		t.Errorf("%q names neither the limit nor its value", text)
	}
}

func wantNoBlobs(t *testing.T, st store.Store) {
	t.Helper()
	for ref, err := range st.Blobs().All(t.Context()) {
		t.Errorf("left behind: %s %v", ref, err)
	}
}

// The limit of an entry holds for what a reader gets, wherever it is kept, on
// every way in; and what is refused leaves nothing behind.
func TestEntryLimitCountsBlobs(t *testing.T) {
	image := session.Image("image/png", base64.StdEncoding.EncodeToString(make([]byte, 2*megabyte)))
	message := func(blocks ...session.Content) session.Entry {
		return session.Message("tool", blocks...)
	}
	parent := ""
	ways := map[string]func(s *session.Session) error{
		"append": func(s *session.Session) error { return s.Append(message(output(5 * megabyte))) },
		"message": func(s *session.Session) error {
			_, err := s.AppendMessage(session.RoleTool, []session.Content{image})
			return err
		},
		"together": func(s *session.Session) error {
			return s.Append(message(output(megabyte/2), output(megabyte*6/10)))
		},
		"in parts": func(s *session.Session) error {
			return s.Append(message(session.Content{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{
				ToolUseID: "c", Parts: []session.Content{image},
			}}))
		},
		"the last of a batch": func(s *session.Session) error {
			_, err := s.AppendAll(message(output(megabyte/2)), message(session.Text(strings.Repeat("t", 2*megabyte))))
			return err
		},
		"graft": func(s *session.Session) error {
			e := message(output(5 * megabyte))
			e.ID, e.ParentID, e.Timestamp = "grafted", &parent, time.Now()
			return s.Graft(e)
		},
		"edit": func(s *session.Session) error {
			_, err := s.AppendEntry(session.ContextEdit(parent, output(5*megabyte)))
			return err
		},
		"continuation": func(s *session.Session) error {
			_, err := s.Continue(message(output(5 * megabyte)))
			return err
		},
	}
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			for _, st := range []store.Store{
				mustGet(file.Open(t.TempDir(), &file.Options{MaxLine: megabyte, Sync: file.Never}))(t),
				memory.New(&memory.Options{MaxLine: megabyte}),
			} {
				s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
				parent = mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")}))(t)
				wantLimit(t, write(s), store.MaxEntry, megabyte)
				wantNoBlobs(t, st)
				mustGet(s.AppendMessage(session.RoleTool, []session.Content{output(megabyte / 2)}))(t)
				s.Close()
			}
		})
	}
}

// A reference to a blob that is there already counts for what it is, whatever
// the caller says of its size.
func TestEntryLimitCountsGivenReferences(t *testing.T) {
	st := memory.New(&memory.Options{MaxLine: megabyte})
	s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
	ref := mustGet(st.Blobs().Put(t.Context(), make([]byte, 5*megabyte)))(t)
	result := &session.ToolResultContent{ToolUseID: "c", Blob: ref, Size: 1}
	err := s.Append(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: "tool", Content: []session.Content{{Type: session.ContentTypeToolResult, ToolResult: result}},
	}})
	wantLimit(t, err, store.MaxEntry, megabyte)
}

// A fork is held to the limits of the store that it goes to.
func TestForkIsHeldToLimits(t *testing.T) {
	from := memory.New(nil)
	s := mustGet(session.Create(t.Context(), from, session.Header{}, nil))(t)
	mustGet(s.AppendMessage(session.RoleTool, []session.Content{output(megabyte / 2)}))(t)
	mustGet(s.AppendMessage(session.RoleTool, []session.Content{output(2 * megabyte)}))(t)
	for _, test := range []struct {
		limit store.Limit
		opts  memory.Options
	}{{store.MaxEntry, memory.Options{MaxLine: megabyte}}, {store.MaxSession, memory.Options{MaxLog: megabyte}}} {
		to := memory.New(&test.opts)
		_, err := s.Fork(t.Context(), to, nil)
		wantLimit(t, err, test.limit, megabyte)
		wantNoBlobs(t, to)
		for stat := range to.List(t.Context()) {
			t.Errorf("there is a session %s", stat.Name)
		}
	}
	mustGet(s.Fork(t.Context(), memory.New(&memory.Options{MaxLine: 3 * megabyte}), nil))(t)
}

// The limit of a session counts the blobs that it refers to, also those of other
// handles and of earlier ones, and what is refused leaves nothing behind.
func TestSessionLimitCountsBlobs(t *testing.T) {
	st := mustGet(file.Open(t.TempDir(), &file.Options{MaxLog: megabyte, Sync: file.Never}))(t)
	defer st.Close()
	s := mustGet(session.Create(t.Context(), st, session.Header{}, nil))(t)
	other := mustGet(session.Open(t.Context(), st, s.ID(), nil))(t)
	grow := func(s *session.Session, bytes int) error {
		mustGet(s.Refresh())(t)
		_, err := s.AppendMessage(session.RoleTool, []session.Content{output(bytes)})
		return err
	}
	for i, handle := range []*session.Session{s, other, s} {
		if err := grow(handle, 300_000+i); err != nil {
			t.Fatal(err)
		}
	}
	late := mustGet(session.Open(t.Context(), st, s.ID(), nil))(t)
	before := len(mustBlobs(t, st))
	for _, handle := range []*session.Session{s, other, late} {
		wantLimit(t, grow(handle, 200_000), store.MaxSession, megabyte)
		mustGet(handle.AppendMessage(session.RoleUser, []session.Content{session.Text("small")}))(t)
	}
	if after := len(mustBlobs(t, st)); after != before {
		t.Errorf("%d blobs were left behind", after-before)
	}
	if err := grow(late, 100_000); err != nil {
		t.Errorf("there is room for this: %v", err)
	}
	wantLimit(t, grow(other, 100_000), store.MaxSession, megabyte)
}

func mustBlobs(t *testing.T, st store.Store) (refs []store.Ref) {
	t.Helper()
	for ref, err := range st.Blobs().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	return refs
}
