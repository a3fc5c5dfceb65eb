package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/session"
)

// killed names the directory in which the test, started again as another process, dies.
const killed = "COPPICE_TEST_KEEPER"

// trees notes two trees and then says what it was told.
func trees(_ context.Context, c *session.Context) (session.MessageEntry, error) {
	said := prompt(c)
	switch {
	case !strings.Contains(said, "NOTE hazel"):
		return answerOf("NOTE hazel"), nil
	case !strings.Contains(said, "NOTE willow"):
		return answerOf("NOTE willow"), nil
	}
	return answerOf(said), nil
}

// dying notes, and ends the program before it can say that it noted the second tree.
func dying(notes string) tool {
	note := noter(notes)
	return func(call agent.Call) agent.Result {
		r := note(call)
		if textIn(call) == "willow" {
			os.Exit(3)
		}
		return r
	}
}

// The program dies after the tool did its work and before it could say so. The next one goes
// on: the model learns that the call was interrupted, and nothing is noted twice.
func TestKilledInTheMiddleOfATool(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(killed); dir != "" {
		t.Fatal(work(t.Context(), filepath.Join(dir, "sessions"), "Note two trees.", trees, dying(filepath.Join(dir, "notes.txt"))))
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), killed+"="+dir)
	if out, err := child.CombinedOutput(); child.ProcessState == nil || child.ProcessState.ExitCode() != 3 {
		t.Fatalf("the first program: %v\n%s", err, out)
	}
	sessions, notes := filepath.Join(dir, "sessions"), filepath.Join(dir, "notes.txt")
	for range 2 { // the second time, nothing is left to do
		if err := work(t.Context(), sessions, "", trees, noter(notes)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(notes); string(text) != "hazel\nwillow\n" {
		t.Errorf("the notes are %q, %v", text, err)
	}
	if said := end(t, sessions); strings.Count(said, "user: ") != 1 || strings.Count(said, "tool: noted") != 1 || strings.Count(said, "interrupted") != 1 {
		t.Errorf("the model was told\n%s", said)
	}
}

// A question that the model could not answer is answered at the next start.
func TestModelThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := errors.New("no model here")
	fails := func(context.Context, *session.Context) (session.MessageEntry, error) {
		return session.MessageEntry{}, broken
	}
	if err := work(t.Context(), dir, "Note two trees.", fails, noter(filepath.Join(dir, "notes.txt"))); !errors.Is(err, broken) {
		t.Fatalf("%v, want %v", err, broken)
	}
	if err := work(t.Context(), dir, "", trees, noter(filepath.Join(dir, "notes.txt"))); err != nil {
		t.Fatal(err)
	}
	if said := end(t, dir); strings.Count(said, "user: ") != 1 || strings.Count(said, "tool: noted") != 2 {
		t.Errorf("the model was told\n%s", said)
	}
}

// end returns the model's last words.
func end(t *testing.T, dir string) string {
	t.Helper()
	s, err := session.ContinueRecent(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return textOf(c.Entries[len(c.Entries)-1].Message.Content)
}
