package home_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// changes are what happens to a session while it stays open.
func changes(secret string) map[string]func(t *testing.T, h *home.Home, id string) error {
	return map[string]func(t *testing.T, h *home.Home, id string) error{
		"append": func(t *testing.T, h *home.Home, id string) error {
			_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("between")})
			return err
		},
		"label": func(t *testing.T, h *home.Home, id string) error {
			_, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: id, Entry: home.Leaf, Label: "here"})
			return err
		},
		"archive": func(t *testing.T, h *home.Home, id string) error {
			_, err := h.Sessions.Archive(t.Context(), home.ArchiveRequest{Session: id})
			return err
		},
		"remove and restore": func(t *testing.T, h *home.Home, id string) error {
			_, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id})
			_, again := h.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: id})
			return errors.Join(err, again)
		},
		"redact": func(t *testing.T, h *home.Home, id string) error {
			_, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{Value: secret, Apply: true})
			return err
		},
		"continue": func(t *testing.T, h *home.Home, id string) error {
			s, err := session.Open(t.Context(), h.Store(), id, nil)
			if err != nil {
				return err
			}
			next, err := s.Continue()
			if err != nil {
				return err
			}
			return errors.Join(next.Close(), s.Close())
		},
	}
}

// TestAppendAfterOthers: what happens to a session between two appends, through this home or by
// another program, does not keep the second one from the end of the conversation.
func TestAppendAfterOthers(t *testing.T) {
	t.Parallel()
	secret := "hunter2-" + "correct-horse"
	for name, change := range changes(secret) {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, elsewhere), func(t *testing.T) {
				t.Parallel()
				h := newHouseInFiles(t)
				id, _ := begin(t, h.Home)
				by := h.Home
				if elsewhere {
					by = h.open(&home.Options{})
				}
				say := func(text, at string) string {
					t.Helper()
					said, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays(text), At: at})
					if err != nil {
						t.Fatal(err)
					}
					return said.Entry
				}
				want := []string{say("before "+secret, "")}
				if err := change(t, by, id); err != nil {
					t.Fatal(err)
				}
				want = append(want, say("after "+secret, home.Leaf), say("and again", ""))
				var path []string
				if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
					path = append(path, e.ID)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if got := slices.DeleteFunc(slices.Clone(path), func(id string) bool { return !slices.Contains(want, id) }); !slices.Equal(got, want) {
					t.Errorf("the conversation has %v of %v", got, want)
				}
				found, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{Value: secret})
				if err != nil {
					t.Fatal(err)
				}
				if name == "redact" && len(found.Secrets) > 0 {
					t.Error("what was redacted came back")
				}
			})
		}
	}
}

// TestAppendToWhatIsGone: a removed session is not found, even if it was open a moment ago. A new
// session with the same id is a different session.
func TestAppendToWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		h := newHouseInFiles(t)
		id, _ := begin(t, h.Home)
		by := h.Home
		if elsewhere {
			by = h.open(&home.Options{})
		}
		say := func() error {
			_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("hello")})
			return err
		}
		noError(t, say())
		_, err := by.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id})
		noError(t, err)
		if err := say(); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("appended to a session that was removed: %v", err)
		}
		s, err := session.Create(t.Context(), by.Store(), session.Header{ID: id}, nil)
		noError(t, err)
		noError(t, s.Close())
		noError(t, say())
	}
}

// TestManyAppendToOneSession: several callers append to one session at the same time, through
// several homes. Each entry is there once, and together they form one line. Notices about an entry
// go to the caller that appended it.
func TestManyAppendToOneSession(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	id, _ := begin(t, h.Home)
	secret := "hunter2-" + "correct-horse"
	_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays(secret)})
	noError(t, err)
	_, err = h.Upkeep.Redact(t.Context(), home.RedactRequest{Value: secret, Apply: true})
	noError(t, err)
	const writers = 8
	each := soak.N(20)
	said := make([][]string, writers)
	var writing sync.WaitGroup
	for w := range writers {
		by := h.Home
		if w%4 == 0 {
			by = h.open(&home.Options{})
		}
		writing.Go(func() {
			for i := range each {
				told := 0
				ctx := home.WithNotify(t.Context(), func(home.Notice) { told++ })
				text, want := "hello", 0
				if (w+i)%2 == 0 {
					text, want = "hello "+secret, 1
				}
				a, err := by.Entries.Append(ctx, home.AppendRequest{Session: id, Message: userSays(text)})
				if err != nil {
					t.Error(err)
					return
				}
				if min(told, 1) != want { // an append that is tried again cleans its entry again
					t.Errorf("the writer of %q heard %d notices", text, told)
				}
				said[w] = append(said[w], a.Entry)
			}
		})
	}
	writing.Wait()
	seen := make(map[string]int)
	if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
		seen[e.ID]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for w := range said {
		for _, id := range said[w] {
			if seen[id] != 1 {
				t.Errorf("entry %s is on the path %d times", id, seen[id])
			}
		}
	}
}
