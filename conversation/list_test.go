package conversation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/store/file"
)

// Lists say the same whether or not the store has an index, also of what was said
// since, and of sessions that cannot be read.
func TestListsAreTheSameWithAnIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newManager(t, dir, 4)
	talk := func(id string) string {
		time.Sleep(2 * time.Millisecond) // the index knows times to the millisecond
		return say(t, m, id, user("one"), assistant("two"), user("three"))
	}
	ids := []string{talk(""), talk(""), talk("")}
	talk(ids[1]) // it goes on in another session
	if tail := must(m.Tail(ids[1]))(t); tail == ids[1] {
		t.Fatal("it does not")
	}

	st := must(file.Open(dir, nil))(t)
	defer st.Close()
	ix := index.New(st, must(sqlite.Open(t.Context(), st.IndexPath(), nil))(t), nil)
	defer ix.Close()
	o := quiet(4)
	o.Index = ix
	indexed := must(conversation.OpenSessions(dir, o))(t)
	defer indexed.Close()
	lists := func(m *conversation.Sessions) (all [][]conversation.Info) {
		for _, list := range []func(int, int) ([]conversation.Info, error){m.ListSessions, m.ListConversations} {
			all = append(all, must(list(0, 0))(t), must(list(-1, 1))(t), must(list(1, 1))(t))
		}
		return all
	}
	same := func(when string) {
		t.Helper()
		with, without := lists(indexed), lists(m)
		if diff := cmp.Diff(without, with, cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
			t.Errorf("%s (-without +with the index):\n%s", when, diff)
		}
		if len(with[0]) < 4 || len(with[3]) < 3 {
			t.Errorf("%s: %d sessions, %d conversations", when, len(with[0]), len(with[3]))
		}
	}
	same("at first")
	talk(ids[0])
	same("after more was said")
	broken := filepath.Join(dir, "broken.jsonl")
	do(t, os.WriteFile(broken, []byte("nothing\n"), 0o600))
	now := time.Now().Truncate(time.Millisecond)
	do(t, os.Chtimes(broken, now, now))
	same("beside what cannot be read")
}
