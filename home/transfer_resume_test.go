package home_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestResumeKnowsWhatWasSaidElsewhere: the program in which a conversation began gets what
// was said elsewhere since, in a file of its own. What it wrote itself stays as it is. Once
// it has gone on with that file, it is the one to resume.
func TestResumeKnowsWhatWasSaidElsewhere(t *testing.T) {
	t.Parallel()
	const native = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
	h := newHouse(t)
	user := h.env["HOME"]
	original := filepath.Join(user, ".claude", "projects", "-work", native+".jsonl")
	line := func(id, parent, session, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%s,"sessionId":%q,"cwd":"/work","version":"2.0.0","timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":%q}}`+"\n", id, parent, session, text)
	}
	writeText(t, original, line("11111111-1111-4111-8111-111111111111", "null", native, "Water the fern"))
	resume := func() *home.ResumeResult {
		t.Helper()
		if _, err := h.Transfer.Import(t.Context(), home.ImportRequest{All: true}, nil, nil); err != nil {
			t.Fatal(err)
		}
		r, err := h.Transfer.Resume(t.Context(), home.ResumeRequest{Session: "last"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := resume(); len(r.Written) > 0 || !slices.Contains(r.Command, native) {
		t.Fatalf("%+v, although the program has it", r)
	}
	message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("And the moss")}}
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "last", Message: message}); err != nil {
		t.Fatal(err)
	}
	r := resume()
	if len(r.Written) != 1 || r.Written[0] == original || slices.Contains(r.Command, native) {
		t.Fatalf("%+v, although the program lacks the last message", r)
	}
	written, err := os.ReadFile(r.Written[0])
	if err != nil || !strings.Contains(string(written), "And the moss") {
		t.Fatalf("%s, %v", written, err)
	}
	leaf := lastUUID(string(written))
	own := r.Command[len(r.Command)-1]
	writeText(t, r.Written[0], string(written)+line("33333333-3333-4333-8333-333333333333", fmt.Sprintf("%q", leaf), own, "And the ivy"))
	if r := resume(); len(r.Written) > 0 || r.Command[len(r.Command)-1] != own {
		t.Errorf("%+v, although the program went on with %s", r, own)
	}
	if have, _ := os.ReadFile(original); strings.Contains(string(have), "moss") {
		t.Errorf("the program's own file is now %s", have)
	}
}

// TestResumeAfterAFork: a program that forks a conversation goes on in another file, under
// another id. That is the one to resume while the session stands there.
func TestResumeAfterAFork(t *testing.T) {
	t.Parallel()
	const native, fork = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f", "1a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
	h := newHouse(t)
	user := h.env["HOME"]
	dir := filepath.Join(user, ".claude", "projects", "-work")
	line := func(n int, parent, session, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"%d1111111-1111-4111-8111-111111111111","parentUuid":%s,"sessionId":%q,"cwd":"/work","version":"2.0.0","timestamp":"2026-03-01T10:00:0%d.000Z","message":{"role":"user","content":%q}}`+"\n", n, parent, session, n, text)
	}
	after := func(n int) string { return fmt.Sprintf(`"%d1111111-1111-4111-8111-111111111111"`, n) }
	resumed := func() string {
		t.Helper()
		if _, err := h.Transfer.Import(t.Context(), home.ImportRequest{All: true}, nil, nil); err != nil {
			t.Fatal(err)
		}
		r, err := h.Transfer.Resume(t.Context(), home.ResumeRequest{Session: "last"})
		if err != nil || len(r.Written) > 0 {
			t.Fatal(r, err)
		}
		return r.Command[len(r.Command)-1]
	}
	writeText(t, filepath.Join(dir, native+".jsonl"), line(1, "null", native, "Water the fern")+line(2, after(1), native, "And the moss"))
	if got := resumed(); got != native {
		t.Fatalf("%s is resumed, not the conversation itself", got)
	}
	writeText(t, filepath.Join(dir, fork+".jsonl"), line(1, "null", fork, "Water the fern")+line(2, after(1), fork, "And the moss")+line(3, after(2), fork, "And the ivy"))
	if got := resumed(); got != fork {
		t.Errorf("%s is resumed, not the fork", got)
	}
}

// TestResumeBackAndForth: a conversation goes to another program, comes back with what was
// said there, goes on here, and goes there again. What was said there and is not in the
// session yet is never replaced.
func TestResumeBackAndForth(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	say := func(text string) {
		t.Helper()
		message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
		if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "last", Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	resume := func() (*home.ResumeResult, error) {
		return h.Transfer.Resume(t.Context(), home.ResumeRequest{Session: "last", In: "codex"})
	}
	if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{}); err != nil {
		t.Fatal(err)
	}
	say("Water the fern")
	r, err := resume()
	if err != nil || len(r.Written) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	file := r.Written[0]
	for _, plant := range []string{"ivy", "rose"} {
		before := readText(t, file)
		there := before + fmt.Sprintf(`{"timestamp":"2026-03-01T00:30:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"And the %s"}]}}`+"\n", plant)
		writeText(t, file, there)
		say("And the moss")
		if _, err := resume(); !errors.Is(err, session.ErrExist) || home.Describe(err).Hint == "" || readText(t, file) != there {
			t.Fatalf("%v, although the session lacks what was said there", err)
		}
		if _, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{file}}, nil, nil); err != nil {
			t.Fatal(err)
		}
		say("And the fir after the " + plant)
		if _, err := resume(); err != nil {
			t.Fatalf("%v, although the session has all that is there", err)
		}
		if got := readText(t, file); !strings.Contains(got, "fir after the "+plant) || readText(t, file+".bak") != there {
			t.Errorf("the file is now %s", got)
		}
	}
}

// lastUUID is the uuid of the last line of a transcript that has one.
func lastUUID(text string) string {
	_, rest, _ := strings.Cut(text[strings.LastIndex(text, `"uuid":"`):], `"uuid":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestResumeWritesSubagents: what a conversation's calls started is written with it, also
// in a home that has no index yet.
func TestResumeWritesSubagents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	say := func(parent, text string) string {
		t.Helper()
		header := session.Header{CWD: "/work", ParentSession: parent}
		if parent != "" {
			header.Relation = session.RelationSubagent
		}
		s, err := session.Create(t.Context(), h.Store(), header, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: message}); err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	id := say("", "Water the fern")
	say(id, "Find the can")
	r, err := h.Transfer.Resume(t.Context(), home.ResumeRequest{Session: id, In: "claude-code"})
	if err != nil || len(r.Written) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
