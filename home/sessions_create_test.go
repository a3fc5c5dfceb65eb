package home_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// must returns a function that unwraps the result of an operation that must work.
func must[R any](t testing.TB) func(R, error) R {
	return func(r R, err error) R {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// wantKind checks that an operation was refused for a reason.
func wantKind(t *testing.T, err error, want home.Kind) {
	t.Helper()
	if got := home.KindOf(err); got != want {
		t.Errorf("the error is of kind %q, want %q: %v", got, want, err)
	}
}

// begin makes a session in which the user says some things.
func begin(t *testing.T, h *home.Home, said ...string) (id string, entries []string) {
	t.Helper()
	id = must[*home.CreateResult](t)(h.Sessions.Create(t.Context(), home.CreateRequest{})).Session
	for _, text := range said {
		entries = append(entries, say(t, h, id, text))
	}
	return id, entries
}

// say appends a message of the user.
func say(t *testing.T, h *home.Home, id, text string) string {
	t.Helper()
	return must[*home.AppendResult](t)(h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays(text)})).Entry
}

func userSays(text string) *session.MessageEntry {
	return &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}
}

func TestCreatedSessionHasWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	made := must[*home.CreateResult](t)(h.Sessions.Create(t.Context(), home.CreateRequest{
		Title: "Beans", Tags: []string{"b", "a"}, Key: "telegram:1", CWD: "/garden",
	}))
	c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: "telegram:1"}))
	defer c.Close()
	title, _ := c.Name()
	remarks, _ := c.Remarks()
	if header := c.Header(); c.Handle != made.Session || title != "Beans" || !slices.Equal(remarks.Tags, []string{"a", "b"}) || header.CWD != "/garden" {
		t.Errorf("session %s, want %s; it is called %q, has the tags %q and is about %q", c.Handle, made.Session, title, remarks.Tags, header.CWD)
	}
	_, err := h.Sessions.Create(t.Context(), home.CreateRequest{Key: "telegram:1"})
	wantKind(t, err, home.KindExists)
}

func TestForkUpToAnEntryHasOnlyThePath(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two", "three")
	forked := must[*home.ForkResult](t)(h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id, At: said[1]}))
	if forked.From != id || forked.At != said[1] {
		t.Errorf("%+v, want a fork of %s at %s", forked, id, said[1])
	}
	now := must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: forked.Session}))
	if got := idsOf(now.Entries); !slices.Equal(got, said[:2]) {
		t.Errorf("the fork has %q, want %q", got, said[:2])
	}
}

func idsOf(entries []session.Entry) []string {
	var ids []string
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	return ids
}

func TestRenamedSessionTellsWhatItWasCalled(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h)
	for _, test := range []struct{ name, want, was string }{{"Beans", "Beans", ""}, {"  Peas\n", "Peas", "Beans"}, {"", "", "Peas"}} {
		got := must[*home.RenameResult](t)(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: id, Name: test.name}))
		if got.Name != test.want || got.Was != test.was {
			t.Errorf("renamed to %q: %+v, want %q, which was %q", test.name, got, test.want, test.was)
		}
	}
}

func TestTagsAreChangedAndListed(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h)
	for _, test := range []struct {
		add, remove, want []string
		writes            bool
	}{
		{nil, nil, []string{}, false},
		{[]string{"b", " a "}, nil, []string{"a", "b"}, true},
		{[]string{"a"}, []string{"z"}, []string{"a", "b"}, false},
		{[]string{"c", "d"}, []string{"b", "d"}, []string{"a", "c"}, true},
	} {
		got := must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: test.add, Remove: test.remove}))
		if !slices.Equal(got.Tags, test.want) || got.Tags == nil || (got.Entry != "") != test.writes {
			t.Errorf("+%q -%q: %+v, want %q, written: %v", test.add, test.remove, got, test.want, test.writes)
		}
	}
	_, err := h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{" "}})
	wantKind(t, err, home.KindInvalid)
}

func TestSuggestedTagsBeginWithThoseOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	must[*home.CreateResult](t)(h.Sessions.Create(t.Context(), home.CreateRequest{Tags: []string{"kohlrabi"}}))
	begin(t, h, "nothing of the kind")
	id, _ := begin(t, h, "zebras and kohlrabi, zebras and zeppelins", "kohlrabi")
	got := must[*home.SuggestTagsResult](t)(h.Sessions.SuggestTags(t.Context(), home.SessionRequest{Session: id}))
	if len(got.Suggested) == 0 || got.Suggested[0] != "kohlrabi" || slices.Contains(got.Suggested, "and") {
		t.Errorf("suggested %q, want kohlrabi first, and no common words", got.Suggested)
	}
}

func TestPinTellsWhetherItChangedAnything(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h)
	for _, test := range []struct{ pinned, changed bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		got := must[*home.PinResult](t)(h.Sessions.Pin(t.Context(), home.PinRequest{Session: id, Pinned: test.pinned}))
		if got.Changed != test.changed || got.Pinned != test.pinned {
			t.Errorf("%+v, want %+v", got, test)
		}
	}
}

// JSON holds Unicode. What is not would be replaced by other characters, so it is
// refused wherever text comes in.
func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	t.Parallel()
	const latin1 = "caf\xe9"
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	ctx := t.Context()
	must[*home.BranchResult](t)(h.Entries.Branch(ctx, home.BranchRequest{Session: id, Entry: said[0]}))
	before := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	tries := map[string]func() error{
		"create": func() error { _, err := h.Sessions.Create(ctx, home.CreateRequest{Title: latin1}); return err },
		"rename": func() error {
			_, err := h.Sessions.Rename(ctx, home.RenameRequest{Session: id, Name: latin1})
			return err
		},
		"tag": func() error {
			_, err := h.Sessions.Tag(ctx, home.TagRequest{Session: id, Add: []string{latin1}})
			return err
		},
		"label": func() error {
			_, err := h.Entries.Label(ctx, home.LabelRequest{Session: id, Entry: said[0], Label: latin1})
			return err
		},
		"branch": func() error {
			_, err := h.Entries.Branch(ctx, home.BranchRequest{Session: id, Entry: said[1], Summary: latin1})
			return err
		},
		"merge": func() error {
			_, err := h.Entries.Merge(ctx, home.MergeRequest{Session: id, From: said[1], Summary: latin1})
			return err
		},
		"compact": func() error {
			_, err := h.Entries.Compact(ctx, home.CompactRequest{Session: id, FirstKept: said[0], Summary: latin1})
			return err
		},
		"message": func() error {
			_, err := h.Entries.Append(ctx, home.AppendRequest{Session: id, Message: userSays(latin1)})
			return err
		},
		"result": func() error {
			m := &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult("c", latin1, false)}}
			_, err := h.Entries.Append(ctx, home.AppendRequest{Session: id, Message: m, Force: true})
			return err
		},
		"entry": func() error {
			_, err := h.Entries.Append(ctx, home.AppendRequest{Session: id, Entry: []byte(`{"type":"custom","custom":{"custom_type":"` + latin1 + `"}}`)})
			return err
		},
	}
	for name, try := range tries {
		if err := try(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, want it to be refused", name, err)
		}
	}
	after := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	if before.Leaf != after.Leaf {
		t.Errorf("something was written: the leaf was %s and is %s", before.Leaf, after.Leaf)
	}
}
