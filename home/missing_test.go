package home_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A tool's output is in a file of its own. Nobody reads the conversation as if it were
// whole once that is lost, and nobody takes it for lost while it only cannot be read.
func TestLostOutputIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	shelf := h.sayInBlob()
	path := func() (*home.PathResult, error) {
		return h.open(&home.Options{}).Entries.Path(t.Context(), home.PathRequest{Session: "s0"}, nil)
	}
	context := func() (*home.ContextResult, error) {
		return h.open(&home.Options{}).Entries.Context(t.Context(), home.ContextRequest{Session: "s0"})
	}
	if read, err := path(); err != nil || len(read.Missing) > 0 {
		t.Fatalf("before: %+v, %v", read, err)
	}
	if err := os.Rename(shelf, shelf+".away"); err != nil {
		t.Fatal(err)
	}
	if read, err := path(); !errors.Is(err, home.ErrIncomplete) || len(read.Missing) != 1 || read.Missing[0].Blob == "" {
		t.Errorf("the path does not name what is lost: %+v, %v", read, err)
	}
	if now, err := context(); err != nil || len(now.Missing) != 1 || now.Missing[0].Blob == "" || len(now.Entries) != 3 {
		t.Errorf("the context does not name what is lost: %+v, %v", now, err)
	}
	// A disk that answers with an error has not lost it.
	if err := os.WriteFile(shelf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := path(); err == nil || errors.Is(err, home.ErrIncomplete) {
		t.Errorf("the path of what cannot be read now: %v", err)
	}
	if _, err := context(); err == nil {
		t.Error("the context goes on without what cannot be read now")
	}
}

// sayInBlob begins the session s0 with an output that is in a blob, and returns the directory
// of that.
func (h *house) sayInBlob() string {
	h.Helper()
	s := h.say(session.Header{ID: "s0"}, "look at the log")
	for _, m := range []session.Entry{
		session.Message(session.RoleAssistant, session.ToolUse("c1", "read", map[string]any{"path": "log"})),
		session.Message(session.RoleTool, session.ToolResult("c1", strings.Repeat("line of the log\n", 8<<10), false)),
	} {
		if err := s.Append(m); err != nil {
			h.Fatal(err)
		}
	}
	blobs := must[[]string](h.T)(filepath.Glob(filepath.Join(h.dir, ".coppice", "blobs", "*", "*")))
	if len(blobs) != 1 {
		h.Fatalf("%d blobs", len(blobs))
	}
	return filepath.Dir(blobs[0])
}

// A model is not asked in silence about a conversation of which an output is lost: the person
// hears it, once in a chat and in each turn of a server, and nothing is asked while it only
// cannot be read.
func TestNoTurnGoesOnInSilenceWithoutContent(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	shelf := h.sayInBlob()
	if err := os.Rename(shelf, shelf+".away"); err != nil {
		t.Fatal(err)
	}
	var heard []home.Notice
	h.Home = h.open(&home.Options{Settings: settings(t, h.env), Notify: func(n home.Notice) {
		if n.Kind == home.ContentMissing {
			heard = append(heard, n)
		}
	}})
	chat := h.chat(home.ChatRequest{Session: "s0"})
	for range 2 {
		h.tell(chat, "and?")
		if len(heard) != 1 || heard[0].Session != "s0" || len(heard[0].Lost) != 1 || heard[0].Lost[0].Blob == "" {
			t.Fatalf("the chat says %+v", heard)
		}
	}
	if err := chat.Close(); err != nil {
		t.Fatal(err)
	}
	ask := func() (lost []home.MissingContent, err error) {
		_, err = h.Turns.Prompt(t.Context(), home.PromptRequest{Text: "and?", TurnOptions: home.TurnOptions{ChatRequest: home.ChatRequest{Session: "s0"}}},
			func(e home.TurnEvent) error {
				if e.Notice != nil && e.Notice.Kind == home.ContentMissing {
					lost = append(lost, e.Notice.Lost...)
				}
				return nil
			})
		return lost, err
	}
	for range 2 {
		if lost, err := ask(); err != nil || len(lost) != 1 || lost[0].Blob == "" {
			t.Errorf("the turn says that %+v is lost, %v", lost, err)
		}
	}
	if err := os.WriteFile(shelf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); err == nil {
		t.Error("a model is asked without what cannot be read now")
	}
}

// Whoever appends to an archived session of which the end was cut off hears that something is lost.
func TestAppendToADamagedArchiveNamesIt(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	h.cutArchive("s0")
	var heard []home.Notice
	h.Home = h.open(&home.Options{Notify: func(n home.Notice) { heard = append(heard, n) }})
	for range 2 {
		_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "s0", Message: &session.MessageEntry{
			Role: session.RoleUser, Content: []session.Content{session.Text("and?")},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(heard) != 1 || heard[0].Kind != home.ContentMissing || heard[0].Session != "s0" || len(heard[0].Lost) != 1 {
		t.Errorf("it says %+v", heard)
	}
}

// cutArchive makes an archived session and cuts off the end of its archive. It returns the path
// of that, and what it had.
func (h *house) cutArchive(name string) (path string, whole []byte) {
	h.Helper()
	s := h.say(session.Header{ID: name}, "look at the log")
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 { // more than one frame, and none that shrinks to nothing
		text := make([]byte, 30<<10)
		for i := range text {
			text[i] = 'a' + byte(random.IntN(26))
		}
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(string(text))}); err != nil {
			h.Fatal(err)
		}
	}
	must[*home.ArchiveResult](h.T)(h.Sessions.Archive(h.Context(), home.ArchiveRequest{Session: name}))
	path = filepath.Join(h.dir, ".coppice", "archive", name+".jsonl.zst")
	whole = must[[]byte](h.T)(os.ReadFile(path))
	if err := os.Truncate(path, int64(len(whole))*2/3); err != nil {
		h.Fatal(err)
	}
	return path, whole
}
