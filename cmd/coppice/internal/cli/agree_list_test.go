package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// line is what a list says of a conversation.
type line struct {
	ID, Title string
	Messages  int
}

// Package conversation lists what coppice ls lists: the same conversations with the
// same titles and counts in the same order, whether there is an index or not.
func TestListsAgree(t *testing.T) {
	dir := t.TempDir()
	writeChats(t, dir)
	before := listed(t, dir)
	if st, err := file.Open(dir, nil); err != nil {
		t.Fatal(err)
	} else if _, err := os.Stat(st.IndexPath()); err == nil {
		t.Fatal("a list has made an index")
	} else if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if len(before) != 7 {
		t.Fatalf("%d conversations: %v", len(before), before)
	}
	printed := printedList(t, dir)
	if diff := cmp.Diff(printed, before); diff != "" {
		t.Errorf("coppice ls and package conversation differ (-ls +conversation):\n%s", diff)
	}
	if diff := cmp.Diff(printed, listed(t, dir)); diff != "" {
		t.Errorf("with an index they differ (-ls +conversation):\n%s", diff)
	}
	// What was said since the index was made is in the list.
	chat(t, dir, printed[len(printed)-1].ID, "user", "once more")
	after := listed(t, dir)
	if after[0].ID != printed[len(printed)-1].ID || after[0].Messages != printed[len(printed)-1].Messages+1 {
		t.Errorf("after one more message the list begins with %v", after[0])
	}
	if diff := cmp.Diff(printedList(t, dir), after); diff != "" {
		t.Errorf("after one more message they differ (-ls +conversation):\n%s", diff)
	}
}

// chat says something in a conversation.
func chat(t *testing.T, dir, id string, roleAndText ...string) string {
	t.Helper()
	m, err := conversation.OpenSessions(dir, &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: 6, AutoSaveInterval: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := conversation.NewChat(m, conversation.NewWindow(nil))
	if id != "" {
		err = c.Load(id)
	}
	for i := 0; i < len(roleAndText) && err == nil; i += 2 {
		_, err = c.AddMessage(roleAndText[i], roleAndText[i+1], 0, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // the index knows times to the millisecond
	return c.ID()
}

// writeChats writes conversations of all kinds.
func writeChats(t *testing.T, dir string) {
	t.Helper()
	chat(t, dir, "", "user", "Where do beans grow?\nI mean all of them.", "assistant", "In the sun.")
	chat(t, dir, "", "system", "be kind", "user", "/model", "user", "Which model is this?")
	long := []string{"system", "be brief"}
	for i := range 10 {
		long = append(long, "user", fmt.Sprint("question ", i), "assistant", fmt.Sprint("answer ", i))
	}
	chat(t, dir, "", long...)
	gap := chat(t, dir, "", long...)
	lost := chat(t, dir, "", long...)

	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for id, nth := range map[string]int{gap: 1, lost: 0} {
		chain, err := session.FindChain(t.Context(), st, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Remove(t.Context(), chain.Links[nth]); err != nil {
			t.Fatal(err)
		}
	}
	branched := chat(t, dir, "", "user", "one way", "assistant", "or the other")
	s, err := session.Open(t.Context(), st, branched, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.Forward("")
	if err == nil {
		err = s.Branch(path[0].ID)
	}
	if err == nil {
		_, err = s.AppendSessionInfo("Two ways")
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	chat(t, dir, branched, "assistant", "this one")
	s, err = session.Create(t.Context(), st, session.Header{ID: "empty"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// listed is the list of package conversation.
func listed(t *testing.T, dir string) (list []line) {
	t.Helper()
	m, err := conversation.OpenSessions(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	all, err := m.ListConversations(-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Err != nil {
			t.Error(i.Err)
		}
		list = append(list, line{i.ID, i.Title, i.MessageCount})
		one, err := m.Info(i.ID)
		if err != nil || one.Title != i.Title || one.MessageCount != i.MessageCount {
			t.Errorf("the list has %+v, Info %+v, %v", i, one, err)
		}
	}
	return list
}

// printedList is what coppice ls prints.
func printedList(t *testing.T, dir string) (list []line) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{talk: newTalk(&out, &errs, os.Getenv), stdin: os.Stdin, getenv: os.Getenv}
	if code := a.run(t.Context(), []string{"--dir", dir, "ls", "--all", "-n", "0", "--json"}); code != 0 {
		t.Fatalf("coppice ls: exit %d: %s", code, &errs)
	}
	for text := range strings.Lines(out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		list = append(list, l)
	}
	return list
}
