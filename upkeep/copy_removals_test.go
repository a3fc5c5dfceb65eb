package upkeep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// state says where a store has a session: live, and how often in the trash.
func state(t *testing.T, st store.Store, name string) string {
	t.Helper()
	words := []string{}
	if _, err := st.Stat(t.Context(), name); err == nil {
		words = append(words, "live")
	}
	items, err := st.Trash().List(t.Context())
	must(t, err)
	for _, item := range items {
		if item.Name == name {
			words = append(words, "removed")
		}
	}
	return strings.Join(words, " ")
}

func wantState(t *testing.T, when string, st store.Store, name, want string) {
	t.Helper()
	if got := state(t, st, name); got != want {
		t.Errorf("%s: the session is %q, want %q", when, got, want)
	}
}

func restore(t *testing.T, st store.Store, name string) {
	t.Helper()
	items, err := st.Trash().List(t.Context())
	must(t, err)
	at := slices.IndexFunc(items, func(item store.Trashed) bool { return item.Name == name })
	must(t, st.Trash().Restore(t.Context(), items[at].ID))
}

func empty(t *testing.T, st store.Store) {
	t.Helper()
	_, err := st.Trash().Empty(t.Context(), time.Now().Add(time.Hour))
	must(t, err)
}

// idle copies and wants nothing to happen: what was done is done once.
func idle(t *testing.T, when string, from, to store.Store) {
	t.Helper()
	did := mustCopy(t, from, to)
	if did.Created+did.Continued+did.Redacted+did.Trashed+did.Removed+did.Notes+len(did.Conflicts)+len(did.Failed) > 0 {
		t.Errorf("%s: the next copy did %+v", when, did)
	}
}

// What was redacted and then removed is removed from the copy, too, once, whatever the order, and
// even if the trash was emptied since. It is the same removal in both stores.
func TestCopyRemovesWhatWasRedacted(t *testing.T) {
	redact := func(t *testing.T, st store.Store) {
		_, err := upkeep.Redact(t.Context(), st, upkeep.RedactRequest{Apply: true})
		must(t, err)
	}
	remove := func(t *testing.T, st store.Store) { must(t, st.Remove(t.Context(), "s")) }
	for what, steps := range map[string][]func(*testing.T, store.Store){
		"redacted, removed":          {redact, remove},
		"removed, redacted":          {remove, redact},
		"redacted, removed, emptied": {redact, remove, empty},
	} {
		t.Run(what, func(t *testing.T) {
			betweenStores(t, func(t *testing.T, from, to store.Store) {
				secret := token(1)
				write(t, from, "s", message("1", "null", "user", text("use "+secret), ""))
				write(t, from, "other", message("1", "null", "user", text("hello"), ""))
				mustCopy(t, from, to)
				for _, step := range steps {
					step(t, from)
				}
				did := mustCopy(t, from, to)
				if did.Removed != 1 || did.Trashed != 0 || len(did.Conflicts)+len(did.Failed) > 0 {
					t.Errorf("copied %+v", did)
				}
				wantState(t, "after the copy", to, "s", "removed")
				if strings.Contains(everywhere(t, to), secret) {
					t.Error("the secret is left in the copy")
				}
				idle(t, "after that", from, to)
				wantState(t, "at the end", to, "s", "removed")
				// The other way, nothing comes back either.
				want := state(t, from, "s")
				idle(t, "back", to, from)
				wantState(t, "in the original", from, "s", want)
			})
		})
	}
}

// An older copy does not bring back what was removed from a store, or deleted for good, and says so.
// Who wants it names it.
func TestOlderCopyBringsNothingBack(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		for _, name := range []string{"kept", "removed", "deleted"} {
			write(t, to, name, message("1", "null", "user", text("hello"), ""))
		}
		mustCopy(t, to, from) // from is the copy now
		must(t, to.Remove(t.Context(), "deleted"))
		empty(t, to)
		must(t, to.Remove(t.Context(), "removed"))
		for range 2 {
			did := mustCopy(t, from, to)
			if fmt.Sprint(did.StayRemoved) != "[deleted removed]" || did.Created+did.Trashed+did.Removed+len(did.Conflicts) > 0 {
				t.Errorf("copied %+v", did)
			}
			wantState(t, "removed", to, "removed", "removed")
			wantState(t, "deleted for good", to, "deleted", "")
		}
		// Not from the trash of the older copy either: what was deleted for good stays away, and
		// nothing is in the trash twice.
		for _, name := range []string{"removed", "deleted"} {
			must(t, from.Remove(t.Context(), name))
		}
		mustCopy(t, from, to)
		wantState(t, "removed from both", to, "removed", "removed")
		wantState(t, "deleted here, removed there", to, "deleted", "")
		for _, name := range []string{"removed", "deleted"} {
			restore(t, from, name)
		}
		did, err := upkeep.Copy(t.Context(), from, to, upkeep.CopyRequest{Sessions: []string{"deleted"}})
		must(t, err)
		if did.Created != 1 {
			t.Errorf("copied by name: %+v", did)
		}
		wantState(t, "copied by name", to, "deleted", "live")
	})
}

// What was restored is there again, in both stores, and what was made again under the same name.
func TestCopyOfWhatWasRestored(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		for _, name := range []string{"restored", "again"} {
			write(t, from, name, message("1", "null", "user", text("hello"), ""))
			must(t, from.Remove(t.Context(), name))
		}
		mustCopy(t, from, to)
		restore(t, from, "restored")
		write(t, from, "again", message("2", "null", "user", text("new"), ""))
		if did := mustCopy(t, from, to); did.Created != 2 || len(did.StayRemoved) > 0 {
			t.Errorf("copied %+v", did)
		}
		idle(t, "after that", from, to)
		// What was restored in the copy alone stays there: its removal is known, and over.
		must(t, from.Remove(t.Context(), "restored"))
		mustCopy(t, from, to)
		restore(t, to, "restored")
		idle(t, "restored in the copy", from, to)
		if got := state(t, to, "restored"); !strings.HasPrefix(got, "live") {
			t.Errorf("it is %q", got)
		}
	})
}

// A session that goes on in the copy is a conflict each time, and keeps its place.
func TestCopyKeepsWhatWentOn(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		for _, name := range []string{"removed", "deleted"} {
			write(t, from, name, message("1", "null", "user", text("hello"), ""))
		}
		mustCopy(t, from, to)
		must(t, from.Remove(t.Context(), "deleted"))
		empty(t, from)
		must(t, from.Remove(t.Context(), "removed"))
		now := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		for _, name := range []string{"removed", "deleted"} {
			log, err := to.Open(t.Context(), name)
			must(t, err)
			end, err := log.End(t.Context())
			must(t, err)
			_, err = log.Append(t.Context(), end, fmt.Appendf(nil, `{"type":"label","id":"2","parent_id":"1","timestamp":%q,"target_id":"1","label":"x"}`, now))
			must(t, err)
			must(t, log.Close())
		}
		for range 2 {
			if did := mustCopy(t, from, to); len(did.Conflicts) != 2 || did.Removed > 0 {
				t.Errorf("copied %+v", did)
			}
			wantState(t, "removed there", to, "removed", "live")
			wantState(t, "deleted there", to, "deleted", "live")
		}
	})
}
