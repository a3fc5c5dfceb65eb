package home_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/chaingen"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/bulk"
)

// longTalk makes a conversation of several sessions and returns their ids.
func longTalk(t *testing.T, h *home.Home, dir string) []string {
	t.Helper()
	m, err := conversation.OpenSessions(dir, &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: 3, AutoSaveInterval: -1}})
	if err != nil {
		t.Fatal(err)
	}
	chat := conversation.NewChat(m, conversation.NewWindow(nil))
	for _, text := range []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"} {
		if _, err := chat.AddMessage(session.RoleUser, text, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: chat.ID()}))
	defer c.Close()
	if len(c.Chain.Links) < 4 {
		t.Fatalf("only %d sessions", len(c.Chain.Links))
	}
	return c.Chain.Links[:4:4]
}

// Two sessions side by side are lost. By whichever of the others it is named, the
// conversation is the same one that the list has, and what is added goes to its end.
func TestNeighboursAreLost(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	links := longTalk(t, h, dir)
	for _, lost := range links[1:3] {
		must[*home.RemoveResult](t)(h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: lost, Link: true}))
	}
	list := must[*home.ListResult](t)(h.Sessions.List(t.Context(), home.ListRequest{}))
	if len(list.Sessions) != 1 || list.Sessions[0].ID != links[0] || !slices.Equal(list.Sessions[0].Missing, links[1:3]) {
		t.Fatalf("%+v", list.Sessions)
	}
	for _, id := range links {
		c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: id}))
		if n := must[int](t)(c.MessageCount()); c.Handle != links[0] || n != list.Sessions[0].Messages {
			t.Errorf("by %s it is %s with %d messages; the list has %d", id, c.Handle, n, list.Sessions[0].Messages)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	said := must[*home.AppendResult](t)(h.Entries.Append(t.Context(), home.AppendRequest{Session: links[0], Message: userSays("more")}))
	if last := must[*home.SessionInfo](t)(h.Sessions.Get(t.Context(), home.SessionRequest{Session: said.Session})); last.ID != links[0] || last.Leaf != said.Entry {
		t.Errorf("what was added is in %s, %s, and not at the end of the conversation", said.Session, last.ID)
	}
}

// The id of a session that is missing means its conversation, although the ids of other sessions
// begin with it.
func TestLostIDIsNoBeginning(t *testing.T) {
	t.Parallel()
	for _, others := range [][]string{{"b0x"}, {"b0x", "b0x-copy"}} {
		h, dir := keptHome(t)
		write := func(name, text string) {
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		message := func(id, text string) string {
			return `{"type":"message","id":"` + id + `","parent_id":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
		}
		write("later", `{"type":"session","version":1,"id":"later","timestamp":"2026-01-02T03:04:05Z","cwd":"/","parent_session":"b0","relation":"continuation","continuation":1}`+"\n"+message("m1", "of the lost one"))
		for _, name := range others {
			write(name, `{"type":"session","version":1,"id":"`+name+`","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}`+"\n"+message("m2", "of another"))
		}
		must[*home.ListResult](t)(h.Sessions.List(t.Context(), home.ListRequest{}))
		info := must[*home.SessionInfo](t)(h.Sessions.Get(t.Context(), home.SessionRequest{Session: "b0"}))
		c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: "b0"}))
		path := must[[]session.Entry](t)(c.Forward(""))
		if info.ID != "b0" || len(path) == 0 || session.TextOf(path[len(path)-1].Message.Content) != "of the lost one" {
			t.Errorf("beside %v it is %s, and ends with %+v", others, info.ID, path)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Of random chains, with all that may happen to their files, the list says what a reader
// of the conversation finds: which sessions, which messages, and one title.
func TestListsOfRandomChains(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 3) {
		h, dir := keptHome(t)
		files, _ := chaingen.Store(seed)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := must[*home.ListResult](t)(h.Sessions.List(t.Context(), home.ListRequest{Limit: -1}))
		for _, info := range list.Sessions {
			if info.Agent == "" {
				continue // a file that cannot be read
			}
			c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: info.ID}))
			drawn, err := c.Rendered(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := must[int](t)(c.MessageCount()); n != info.Messages || drawn.Title != info.Title || len(drawn.Links) != info.Links || !slices.Equal(drawn.Missing, info.Missing) {
				t.Errorf("seed %d: the list has %+v; read, it has %d messages, %v, without %v, and the title %q", seed, info, n, drawn.Links, drawn.Missing, drawn.Title)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A conversation of several sessions that has lost its name has one title everywhere.
func TestTitleAfterTheNameWasTakenAway(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	id := longTalk(t, h, dir)[0]
	for _, name := range []string{"Beans", ""} {
		must[*home.RenameResult](t)(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: id, Name: name}))
	}
	info := must[*home.SessionInfo](t)(h.Sessions.Get(t.Context(), home.SessionRequest{Session: id}))
	if info.Title != "one" || info.Named {
		t.Errorf("the list has %q, %v", info.Title, info.Named)
	}
	for _, format := range []string{"md", "html"} {
		var out bytes.Buffer
		if _, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: id}, Format: format}, into(&out)); err != nil {
			t.Fatal(err)
		}
		if title := map[string]string{"md": "# one\n", "html": "<title>one</title>"}[format]; !bytes.Contains(out.Bytes(), []byte(title)) {
			t.Errorf("the %s has another title than %q: %.300s", format, title, out.String())
		}
	}
}

// A conversation of several sessions that is exported into a directory comes back with all
// of them: by the id of each it is the same conversation, and where it was imported from is
// known to it.
func TestChainComesBackFromItsExport(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	longTalk(t, h, dir)
	const source = "../transcript/format/testdata/penguin"
	must[*bulk.Result](t)(h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{source}}, nil, nil))
	files := logsIn(t, dir)
	for _, r := range backups {
		to := filepath.Join(t.TempDir(), "export") + "/"
		r.Path = to
		done := must[*home.ExportAllResult](t)(h.Transfer.ExportAll(t.Context(), home.ExportAllRequest{ExportRequest: r, All: true}, nil))
		if done.Failed > 0 || done.Exported >= len(files) {
			t.Errorf("%s: %+v of %d sessions", r.Format, done, len(files))
		}
		other, otherDir := keptHome(t)
		must[*bulk.Result](t)(other.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{to}}, nil, nil))
		if r.Format == home.ExportJSONL && !maps.Equal(files, logsIn(t, otherDir)) {
			t.Error("the sessions are not the same")
		}
		for name := range files {
			id := strings.TrimSuffix(name, ".jsonl")
			was := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: id}))
			is, err := other.Conversation(t.Context(), home.OpenRequest{Session: id})
			if err != nil {
				t.Fatalf("%s: %v", r.Format, err)
			}
			if is.Handle != was.Handle || !slices.Equal(is.Chain.Links, was.Chain.Links) {
				t.Errorf("%s: %s is %s %v, and was %s %v", r.Format, id, is.Handle, is.Chain.Links, was.Handle, was.Chain.Links)
			}
			if err := errors.Join(was.Close(), is.Close()); err != nil {
				t.Error(err)
			}
		}
		again := must[*bulk.Result](t)(other.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{source}}, nil, nil))
		if again.Entries > 0 {
			t.Errorf("%s: the source brings %d entries again", r.Format, again.Entries)
		}
	}
}

// logsIn returns the plain logs of a home.
func logsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no sessions: %v", dir, err)
	}
	for _, path := range paths {
		files[filepath.Base(path)] = string(must[[]byte](t)(os.ReadFile(path)))
	}
	return files
}
