package home_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func TestASessionHasManyNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	telegram, err := session.KeyID("telegram:7")
	if err != nil {
		t.Fatal(err)
	}
	plainKey, err := session.KeyID("diary")
	if err != nil {
		t.Fatal(err)
	}
	h.say(session.Header{ID: telegram, Key: "telegram:7"}, "a bot's")
	h.say(session.Header{ID: plainKey, Key: "diary"}, "a key without a colon")
	h.say(session.Header{ID: "abc-1", Key: "codex:0199"}, "imported")
	named := h.say(session.Header{ID: "abc-2"}, "a name")
	if _, err := named.AppendSessionInfo("Rewrite the Parser"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // it is the last one that anything was said in
	h.say(session.Header{ID: "xyz"}, "the latest")

	for given, want := range map[string]string{
		"xyz":                "xyz",
		"x":                  "xyz",
		"abc-2":              "abc-2",
		"telegram:7":         telegram,
		"diary":              plainKey,
		"codex:0199":         "abc-1",
		"rewrite the parser": "abc-2",
		"last":               "xyz",
		"@1":                 "xyz",
		"@2":                 "abc-2",
	} {
		got, err := resolve(t, h.Sessions, given)
		if got != want || err != nil {
			t.Errorf("%q means %q, %v; want %q", given, got, err, want)
		}
	}
	for given, want := range map[string]home.Kind{
		"": home.KindInvalid, "abc": home.KindInvalid, "nope": home.KindNotFound, "@9": home.KindNotFound,
		"@0": home.KindNotFound, "../xyz": home.KindNotFound,
	} {
		got, err := resolve(t, h.Sessions, given)
		if home.KindOf(err) != want {
			t.Errorf("%q means %q, %v; want an error of kind %s", given, got, err, want)
		}
	}
	_, err = resolve(t, h.Sessions, "abc")
	if ambiguous, ok := errors.AsType[*home.AmbiguousError](err); !ok || len(ambiguous.Found) != 2 {
		t.Errorf("the error does not list both: %v", err)
	}
}

// What somebody chose is meant before what happens to match.
func TestAChosenNameWinsOverAPrefix(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.say(session.Header{ID: "last"}, "called last")
	h.say(session.Header{ID: "later"}, "said later")
	if got, err := resolve(t, h.Sessions, "last"); got != "last" || err != nil {
		t.Errorf("last means %q, %v; want the session of that id", got, err)
	}
	s := h.say(session.Header{ID: "s"}, "one", "two")
	ids := h.ids(s)
	label := ids[1][:1] // with which every id begins
	if _, err := s.SetLabel(ids[0], label); err != nil {
		t.Fatal(err)
	}
	if got, err := home.ResolveEntry(s, label); got != ids[0] || err != nil {
		t.Errorf("%q means %q, %v; want the entry of that label", label, got, err)
	}
}

// A name must not be taken for a session because nobody waited for the answer.
func TestResolveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h, _ := keptHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if name, err := resolveIn(ctx, h.Sessions, "nothing"); name != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", name, err)
	}
}

// A key that already means something cannot be typed, so nobody gets one. What has one
// all the same, because a program chose it, does not change what "last" means.
func TestKeysDoNotShadowOtherNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	old, err := session.KeyID("last")
	if err != nil {
		t.Fatal(err)
	}
	h.say(session.Header{ID: old, Key: "last"}, "made by a program")
	time.Sleep(2 * time.Millisecond) // the other one is the last
	h.say(session.Header{ID: "latest"}, "hello")
	for _, key := range []string{"last", "@1", "@12", "latest"} {
		if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{Key: key}); !errors.Is(err, session.ErrInvalid) || home.HintOf(err) == "" {
			t.Errorf("%s: %v", key, err)
		}
	}
	for given, want := range map[string]string{"last": "latest", old: old} {
		if got, err := resolve(t, h.Sessions, given); got != want || err != nil {
			t.Errorf("%q means %q, %v; want %q", given, got, err, want)
		}
	}
	for _, key := range []string{"@me", "lasting", "@0"} {
		if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{Key: key}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{Key: "@me"}); !errors.Is(err, session.ErrExist) {
		t.Errorf("the same key again: %v", err)
	}
}

// A label that can never be typed is refused. The same label on two entries is not:
// programs mark with it. It names neither then.
func TestLabelsDoNotShadowOtherNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{ID: "talk"}, "one", "two")
	ids := h.ids(s)
	first, second := ids[0], ids[1]
	for _, label := range []string{"leaf", " leaf ", first, second} {
		if _, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: "talk", Entry: first, Label: label}); !errors.Is(err, session.ErrInvalid) || home.HintOf(err) == "" {
			t.Errorf("%s: %v", label, err)
		}
	}
	raw := []byte(`{"type":"label","label":{"target_id":"` + first + `","label":"leaf"}}`)
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: "talk", Entry: raw}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("appended as it is: %v", err)
	}
	for _, entry := range []string{first, second} {
		if _, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: "talk", Entry: entry, Label: "needs_review"}); err != nil {
			t.Error(err)
		}
	}
	_, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: "talk", Entry: "needs_review", Label: "x"})
	if ambiguous, ok := errors.AsType[*home.AmbiguousError](err); !ok || len(ambiguous.Found) != 2 {
		t.Error(err)
	}
	// What an old log has is read, and changes nothing.
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetLabel(first, "leaf"); err != nil {
		t.Fatal(err)
	}
	if id, err := home.ResolveEntry(s, "leaf"); id != second || err != nil {
		t.Errorf("leaf means %q, %v", id, err)
	}
}

// A name that is shown can be typed, whatever begins like it: the short name, anything
// longer, the beginning of the id, and the id.
func TestShortNamesMeanWhatTheyAreShownFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ids := []string{
		"019a1e50-0001-7000-8000-abcd12340001", "019a1e50-0002-7000-8000-abcd12340002", "019a1e50-0003-7000-8000-abcd12350000",
		"019a1e50-0004-7000-8000-019a1e500004", "tokenizer-2", "tokenizer-20", "abcd1235-0f14-8d98-9c29-53c11466b940",
	}
	for _, id := range ids {
		h.say(session.Header{ID: id}, "about "+id)
	}
	if _, err := h.Sessions.List(t.Context(), home.ListRequest{}); err != nil { // which makes an index
		t.Fatal(err)
	}
	short := render.Names(must[*home.NamesResult](t)(h.Sessions.Short(t.Context(), home.SessionNamesRequest{Sessions: ids})).Names)
	want := render.Names{
		ids[0]: "abcd12340001", ids[1]: "abcd12340002", ids[2]: "abcd12350", ids[3]: "019a1e500",
		"tokenizer-2": "tokenizer-2", "tokenizer-20": "tokenizer-20", ids[6]: "abcd1235-0",
	}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Errorf("short names (-want +got):\n%s", diff)
	}
	for _, id := range ids {
		alone, err := h.Sessions.Short(t.Context(), home.SessionNamesRequest{Sessions: []string{id}})
		if err != nil || alone.Names[id] != short[id] {
			t.Errorf("alone %s is called %q, %v, and %q beside others", id, alone.Names[id], err, short[id])
		}
		for _, given := range []string{short[id], id, id[:min(len(id), 24)]} {
			if got, err := resolve(t, h.Sessions, given); got != id || err != nil {
				t.Errorf("%q means %q, %v; want %q", given, got, err, id)
			}
		}
	}
	_, err := resolve(t, h.Sessions, "abcd1234")
	if err == nil || err.Error() != `session "abcd1234" is ambiguous: abcd12340001 (about 019a1e50-0001-7000-8000-abcd12340…), abcd12340002 (about 019a1e50-0002-7000-8000-abcd12340…); type one of these, or more of the id` {
		t.Errorf("%v", err)
	}
}

// The ids by which other programs know their conversations name the imported sessions, and
// so does an id under which we exported one.
func TestIDsOfOtherProgramsAreNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	imported := func(id, format, native string) {
		h.say(session.Header{ID: id, Key: format + ":" + native, Extra: []session.Field{{
			Name: session.OriginField, Value: []byte(`{"format":"` + format + `","id":"` + native + `","path":"/x"}`),
		}}}, "about "+id)
	}
	imported("claude", "claude-code", "fe5e1c67-8a4e-4c7c-9a57-6b2f1f0f0001")
	imported("pico", "picoclaw", "telegram:123456")
	imported("seed", "bareagent", "2026-11-14_234943")
	imported("penguin", "penguin", "session_20261114_1")
	imported("twin", "openagent", "session_20261114_1")
	for given, want := range map[string]string{
		"fe5e1c67-8a4e-4c7c-9a57-6b2f1f0f0001": "claude", "fe5e1c67": "claude", "telegram:123456": "pico", "2026-11-14_234943": "seed",
		"2026-11-14_2": "seed", "penguin:session_20261114_1": "penguin",
	} {
		if got, err := resolve(t, h.Sessions, given); got != want || err != nil {
			t.Errorf("%q means %q, %v; want %q", given, got, err, want)
		}
	}
	_, err := resolve(t, h.Sessions, "session_20261114_1")
	if ambiguous, ok := errors.AsType[*home.AmbiguousError](err); !ok || len(ambiguous.Found) != 2 {
		t.Errorf("an id of two programs: %v", err)
	}
	h.say(session.Header{ID: "ours"}, "to be exported")
	done, err := h.Transfer.Export(t.Context(), home.ExportRequest{
		OpenRequest: home.OpenRequest{Session: "ours"}, Format: "claude-code",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	native := strings.TrimSuffix(filepath.Base(done.Paths[0]), ".jsonl")
	if got, err := resolve(t, h.Sessions, native); got != "ours" || err != nil {
		t.Errorf("%q, the id of an export, means %q, %v", native, got, err)
	}
}

// Whoever has a whole id needs no index: reading a session must not begin with reading all
// the others.
func TestAWholeIDNeedsNoIndex(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	const id = "019a1e50-0001-7000-8000-abcd12340001"
	h.say(session.Header{ID: id}, "hello")
	c, err := h.Conversation(t.Context(), home.OpenRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	drawn, err := c.Rendered(t.Context())
	if err != nil || drawn.Name != "abcd1234" {
		t.Errorf("the session is called %q, %v", drawn.Name, err)
	}
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("more")},
	}}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(indexPath(h.Home)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is an index now: %v", err)
	}
}

// A directory means the latest conversation about it.
func TestADirectoryIsAName(t *testing.T) {
	h := newHouse(t)
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	h.say(session.Header{ID: "here", CWD: here}, "about this")
	time.Sleep(2 * time.Millisecond)
	h.say(session.Header{ID: "below", CWD: filepath.Join(here, "below")}, "about what is below")
	time.Sleep(2 * time.Millisecond)
	h.say(session.Header{ID: "elsewhere", CWD: filepath.Join(filepath.Dir(here), "x")}, "about something else")
	for given, want := range map[string]string{
		".": "below", "..": "elsewhere", "./below": "below", here: "below", "../x": "elsewhere", "last": "elsewhere",
	} {
		if got, err := resolve(t, h.Sessions, given); got != want || err != nil {
			t.Errorf("%q means %q, %v; want %q", given, got, err, want)
		}
	}
	if _, err := resolve(t, h.Sessions, "./nope"); home.KindOf(err) != home.KindNotFound {
		t.Errorf("a directory without a conversation: %v", err)
	}
	list, err := h.Sessions.List(t.Context(), home.ListRequest{CWD: "."})
	if err != nil || len(list.Sessions) != 2 {
		t.Errorf("about .: %+v, %v", list, err)
	}
	found, err := h.Search.Find(t.Context(), home.FindRequest{Query: "about", CWD: "./below"})
	if err != nil || len(found.Hits) != 1 {
		t.Errorf("a search in below: %+v, %v", found, err)
	}
}

// An id cannot be redacted, so one that is a secret is refused, without being repeated.
func TestASecretIsNoID(t *testing.T) {
	t.Parallel()
	const secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	h := newHouseInFiles(t)
	h.say(session.Header{ID: "s"}, "hello")
	opened := h.open(&home.Options{Settings: settings(t, env{"HOME": t.TempDir(), "COPPICE_REDACT": "true"})})
	entry := func(id string) []byte {
		return []byte(`{"type":"message","id":"` + id + `","message":{"role":"user","content":[{"type":"text","text":{"content":"x"}}]}}`)
	}
	_, err := opened.Entries.Append(t.Context(), home.AppendRequest{Session: "s", Entry: entry(secret)})
	if home.KindOf(err) != home.KindInvalid || strings.Contains(err.Error(), secret) {
		t.Errorf("a secret as an id: %v", err)
	}
	if _, err := opened.Entries.Append(t.Context(), home.AppendRequest{Session: "s", Entry: entry("chosen")}); err != nil {
		t.Error(err)
	}
}
