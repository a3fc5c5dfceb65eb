package window_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/window"
)

// newSession returns a session in memory that keeps what is large in blobs.
func newSession(t *testing.T) *session.Session {
	t.Helper()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, &session.Options{BlobThreshold: 200})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func say(t *testing.T, s *session.Session, role session.MessageRole, content ...session.Content) string {
	t.Helper()
	id, err := s.AppendMessage(role, content)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func contextOf(t *testing.T, s *session.Session) *session.Context {
	t.Helper()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// R101, R102, R216, ruling 30: the newest image stays, older ones become
// placeholders, and each placeholder's reference opens its image again: in
// messages, in tool results, and in what replaced a message by an edit.
func TestImagesAndRecall(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	want := []session.Content{picture(10, 20), picture(30, 40), noise(3000), picture(70, 80)}
	say(t, s, session.RoleUser, session.Text("two"), want[0], want[1])
	say(t, s, session.RoleAssistant, session.ToolUse("c1", "shoot", nil))
	shot := session.ToolResult("c1", "done", false)
	shot.ToolResult.Parts = []session.Content{session.Text("done"), want[2]}
	say(t, s, session.RoleTool, shot)
	edited := say(t, s, session.RoleUser, session.Text("to be edited"))
	if _, err := s.AppendEntry(session.ContextEdit(edited, session.Text("instead"), want[3])); err != nil {
		t.Fatal(err)
	}
	say(t, s, session.RoleUser, picture(90, 100))

	v, err := window.Trim(contextOf(t, s), window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []session.Content
	for i, o := range v.Report.Omissions {
		if o.Kind != window.ImageLeftOut || o.Tokens <= 0 || o.Bytes <= 0 {
			t.Errorf("omission %+v", o)
		}
		image, err := window.Recall(s, o.Reference)
		if err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
		image.Image.Source.Blob, image.Image.Source.Size = "", 0 // where it is kept
		got = append(got, image)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recalled images differ:\n%s", diff)
	}
	if len(v.Entries) != 5 || v.Entries[4].Message.Content[0].Image == nil {
		t.Error("the newest image is gone")
	}
	first := v.Entries[0].Message.Content
	if first[0].Text.Content != "two" || !strings.Contains(first[1].Text.Content, "image/png, 10 by 20; reference "+v.Report.Omissions[0].Reference+"]") {
		t.Errorf("the first message became %+v", first)
	}
	result := v.Entries[2].Message.Content[0].ToolResult
	if !strings.Contains(result.Parts[1].Text.Content, "1280 by 800") || !strings.HasPrefix(result.Content, "done\n[image left out") {
		t.Errorf("the result became %+v", result)
	}
}

func TestImagesKept(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleSystem, picture(5, 5)) // never touched, and not counted
	for range 4 {
		b.message(session.RoleUser, picture(50, 50), picture(60, 60))
	}
	for images, want := range map[int]int{0: 2, 1: 2, 3: 4, window.AllImages: 9, window.NoImages: 1} {
		v := trimmed(t, b.entries, window.Options{Images: images})
		if got := strings.Count(string(snapshot(t, v.Entries)), `"type":"image"`); got != want {
			t.Errorf("with %d there are %d images, want %d", images, got, want)
		}
	}
}

func TestRecallRefuses(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	id := say(t, s, session.RoleUser, session.Text("no image"))
	label, err := s.SetLabel(id, "x")
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]error{
		"":                                     session.ErrInvalid,
		"image:":                               session.ErrInvalid,
		"image:#0123456789abcdef":              session.ErrInvalid,
		"image:" + id:                          session.ErrInvalid,
		"image:" + id + "#short":               session.ErrInvalid,
		"file:" + id + "#0123456789abcdef":     session.ErrInvalid,
		"image:" + id + "#0123456789abcdef":    session.ErrNotExist,
		"image:" + label + "#0123456789abcdef": session.ErrNotExist,
		"image:nobody#0123456789abcdef":        session.ErrNotExist,
	} {
		if _, err := window.Recall(s, reference); !errors.Is(err, want) {
			t.Errorf("%q: error is %v, want %v", reference, err, want)
		}
	}
}

// The newest message is kept even if its own images must go.
func TestNewestImagesGiveWay(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.message(session.RoleUser, session.Text("see"), noise(5000), noise(9000))
	v := trimmed(t, b.entries, window.Options{Images: window.AllImages, Budget: window.Budget{Bytes: 13_500}})
	content := v.Entries[0].Message.Content
	if content[0].Text.Content != "see" || content[1].Image != nil || content[2].Image == nil {
		t.Errorf("the message became %d blocks, %v", len(content), v.Report.Omissions)
	}
	v = trimmed(t, b.entries, window.Options{Images: window.AllImages, Budget: window.Budget{Tokens: 200}})
	if content := v.Entries[0].Message.Content; content[1].Image != nil || content[2].Image != nil {
		t.Error("an image is left in a window of 200 tokens")
	}
}
