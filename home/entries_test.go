package home_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// Whoever says something says it wherever the conversation has got to: nobody who
// speaks at the same moment is turned away, and all of it is one conversation.
func TestMessagesOfSeveralWritersAreAllAppended(t *testing.T) {
	t.Parallel()
	first := newHouseInFiles(t)
	id, _ := begin(t, first.Home, "hello")
	const writers, each = 4, 15
	var group sync.WaitGroup
	for w := range writers {
		h := first.open(&home.Options{})
		group.Go(func() {
			for i := range each {
				_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays(fmt.Sprint(w, "-", i))})
				if err != nil {
					t.Errorf("writer %d, message %d: %v", w, i, err)
				}
			}
		})
	}
	group.Wait()
	now := must[*home.ContextResult](t)(first.Entries.Context(t.Context(), home.ContextRequest{Session: id}))
	if len(now.Entries) != writers*each+1 {
		t.Errorf("the conversation has %d messages, want %d, all on one branch", len(now.Entries), writers*each+1)
	}
}

func TestAppendAtAnEntryIsRefusedOnceTheConversationWentOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one")
	at := func(entry string) error {
		_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("next"), At: entry})
		return err
	}
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"noted"}}))
	if err := at(said[0]); err != nil {
		t.Errorf("only a note was taken since: %v", err)
	}
	wantKind(t, at(said[0]), home.KindConflict)
	wantKind(t, at("nosuch"), home.KindNotFound)
	if err := at(home.Leaf); err != nil {
		t.Error(err)
	}
}

// Two people reply to different entries at the same time. Each reply goes where it belongs.
func TestAppendUnderAParentBranchesThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	under := func(parent, text string) string {
		t.Helper()
		r := home.AppendRequest{Session: id, Message: userSays(text), Parent: parent}
		return must[*home.AppendResult](t)(h.Entries.Append(t.Context(), r)).Entry
	}
	ann, bob := under(said[0], "ann 1"), under(said[1], "bob 1")
	ann, bob = under(ann, "ann 2"), under(bob, "bob 2")
	for leaf, want := range map[string]int{ann: 3, bob: 4} {
		now := must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: id, Leaf: leaf}))
		if len(now.Entries) != want {
			t.Errorf("the branch of %s has %d messages, want %d", leaf, len(now.Entries), want)
		}
	}
	_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("late"), Parent: said[0], At: ann})
	wantKind(t, err, home.KindConflict)
	_, err = h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("lost"), Parent: "nosuch"})
	wantKind(t, err, home.KindNotFound)
}

// A server whose clients talk on several branches names the entry twice: the message goes
// there if it is still the last one of its branch, whichever branch is live.
func TestAppendAtAndUnderAnEntryNeedsTheEndOfItsBranch(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	after := func(entry string) (string, error) {
		r, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: userSays("next"), Parent: entry, At: entry})
		if err != nil {
			return "", err
		}
		return r.Entry, nil
	}
	other := must[*home.AppendResult](t)(h.Entries.Append(t.Context(),
		home.AppendRequest{Session: id, Message: userSays("another way"), Parent: said[0]})).Entry
	three := must[string](t)(after(said[1])) // not the live branch
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"noted"}}))
	must[string](t)(after(other))
	must[string](t)(after(three))
	for _, taken := range []string{said[0], said[1], other, three} {
		_, err := after(taken)
		wantKind(t, err, home.KindConflict)
	}
}

func TestParentOfAWholeEntryMustBeTheLeaf(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"noted"}}))
	after := func(parent string) error {
		e := fmt.Sprintf(`{"type":"message","parent_id":%q,"message":{"role":"user","content":"x"}}`, parent)
		_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Entry: []byte(e)})
		return err
	}
	wantKind(t, after(said[0]), home.KindInvalid)
	if err := after(said[1]); err != nil {
		t.Errorf("the last entry that anybody sees: %v", err)
	}
}

func TestAppendRefusesWhatOnlyAMistakeExplains(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h, "one")
	minus := -1
	message := func(role, text string, change func(m *session.MessageEntry)) home.AppendRequest {
		m := &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
		if change != nil {
			change(m)
		}
		return home.AppendRequest{Session: id, Message: m}
	}
	result := message("tool", "", func(m *session.MessageEntry) { m.Content[0] = session.ToolResult("nope", "out", false) })
	for name, r := range map[string]home.AppendRequest{
		"nothing":   {Session: id},
		"both":      {Session: id, Message: userSays("x"), Entry: []byte("{}")},
		"no role":   message("", "x", nil),
		"odd role":  message("critic", "x", nil),
		"empty":     message("user", "", nil),
		"blank":     message("assistant", " \n\t", nil),
		"category":  message("user", "x", func(m *session.MessageEntry) { m.Category = "FOO" }),
		"tokens":    message("user", "x", func(m *session.MessageEntry) { m.Tokens = &minus }),
		"no call":   result,
		"not JSON":  {Session: id, Entry: []byte("{")},
		"odd entry": {Session: id, Entry: []byte(`{"type":"message","message":{"role":"user","content":"x","category":"FOO"}}`)},
	} {
		_, err := h.Entries.Append(t.Context(), r)
		if home.KindOf(err) != home.KindInvalid {
			t.Errorf("%s: %v, want it to be refused", name, err)
		}
	}
	_, err := h.Entries.Append(t.Context(), result)
	if _, ok := errors.AsType[*home.ResultError](err); !ok {
		t.Errorf("%v, want a ResultError", err)
	}
	result.Force = true
	if _, err := h.Entries.Append(t.Context(), result); err != nil {
		t.Errorf("forced: %v", err)
	}
}

// A note (a tag, a name, a label) is an entry too, and never the one that is meant
// by the last one.
func TestLeafMeansWhatWasSaidLast(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{"x"}}))
	must[*home.RenameResult](t)(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: id, Name: "n"}))
	must[*home.PinResult](t)(h.Sessions.Pin(t.Context(), home.PinRequest{Session: id, Pinned: true}))
	for range 2 { // the label is itself a note
		got := must[*home.LabelResult](t)(h.Entries.Label(t.Context(), home.LabelRequest{Session: id, Entry: home.Leaf, Label: "foo"}))
		if got.Target != said[1] || got.Label != "foo" {
			t.Errorf("%+v, want a label of %s", got, said[1])
		}
	}
	got := must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: home.Leaf}))
	if got.Moved || got.Leaf != said[1] {
		t.Errorf("%+v, want the leaf to stay at %s", got, said[1])
	}
}

func TestLeafOfAnEmptyConversationIsNoEntry(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h)
	must[*home.RenameResult](t)(h.Sessions.Rename(t.Context(), home.RenameRequest{Session: id, Name: "n"}))
	_, err := h.Entries.Label(t.Context(), home.LabelRequest{Session: id, Entry: home.Leaf, Label: "foo"})
	wantKind(t, err, home.KindNotFound)
}

func TestBranchTellsHowToGoBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	got := must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: said[0]}))
	if got.Leaf != said[0] || got.Left != said[1] || !got.Moved {
		t.Errorf("%+v, want the leaf at %s, from %s", got, said[0], said[1])
	}
	short := must[*home.NamesResult](t)(h.Entries.Short(t.Context(), home.EntryNamesRequest{Sessions: []string{id}, Entries: said[1:]})).Names
	back := must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: short[said[1]]}))
	if len(short) != 1 || len(short[said[1]]) >= len(said[1]) || back.Leaf != said[1] {
		t.Errorf("%v, and back at %q", short, back.Leaf)
	}
	got = must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: said[0], Summary: "two was said"}))
	now := must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: id}))
	if want := []string{said[0], got.Leaf}; !slices.Equal(idsOf(now.Entries), want) {
		t.Errorf("the context has %q, want %q", idsOf(now.Entries), want)
	}
}

func TestMergeBringsAnotherBranchAndNeverItsOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: said[0]}))
	third := say(t, h, id, "three")
	for _, from := range []string{home.Leaf, third, said[0]} {
		_, err := h.Entries.Merge(t.Context(), home.MergeRequest{Session: id, From: from, Summary: "s"})
		wantKind(t, err, home.KindInvalid)
	}
	_, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Entry: []byte(`{"type":"merge","merge":{"from_id":"` + third + `","summary":"s"}}`)})
	wantKind(t, err, home.KindInvalid)
	_, err = h.Entries.Merge(t.Context(), home.MergeRequest{Session: id, From: said[1]})
	wantKind(t, err, home.KindInvalid)

	merged := must[*home.MergeResult](t)(h.Entries.Merge(t.Context(), home.MergeRequest{Session: id, From: said[1], Picks: []string{said[1]}}))
	now := must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: id}))
	if !slices.Contains(idsOf(now.Entries), said[1]) {
		t.Errorf("the context has %q, want %s in it", idsOf(now.Entries), said[1])
	}
	reverted := must[*home.RevertResult](t)(h.Entries.Revert(t.Context(), home.RevertRequest{Session: id, Entry: merged.Entry}))
	now = must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: id}))
	if reverted.Target != merged.Entry || slices.Contains(idsOf(now.Entries), said[1]) {
		t.Errorf("%+v, want %s to be taken back; the context has %q", reverted, merged.Entry, idsOf(now.Entries))
	}
}

func TestCompactionIsPlannedAppliedAndTakenBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two", "three")
	ctx := t.Context()
	_, err := h.Entries.Compact(ctx, home.CompactRequest{Session: id, Summary: "s"})
	if !errors.Is(err, session.ErrNothingToCompact) || home.KindOf(err) != home.KindInvalid || home.HintOf(err) == "" {
		t.Errorf("all of it fits: %v, want ErrNothingToCompact with a hint", err)
	}
	_, err = h.Entries.Compact(ctx, home.CompactRequest{Session: id, FirstKept: said[2]})
	wantKind(t, err, home.KindInvalid) // no summary
	_, err = h.Entries.Revert(ctx, home.RevertRequest{Session: id})
	wantKind(t, err, home.KindNotFound)
	_, err = h.Entries.Revert(ctx, home.RevertRequest{Session: id, Entry: said[0]})
	if wantKind(t, err, home.KindInvalid); strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("%v; want only the reason", err)
	}

	r := home.CompactRequest{Session: id, FirstKept: said[2], DryRun: true}
	plan := must[*home.CompactResult](t)(h.Entries.Compact(ctx, r))
	if plan.Entry != "" || plan.StandsFor != 2 || len(plan.Summarise) != 2 || len(plan.Kept) != 1 || plan.Summarise[0].Text != "one" {
		t.Errorf("the plan is %+v", plan)
	}
	r.DryRun, r.Summary = false, "one and two"
	done := must[*home.CompactResult](t)(h.Entries.Compact(ctx, r))
	now := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	if want := []string{done.Entry, said[2]}; !slices.Equal(idsOf(now.Entries), want) || now.Compaction != done.Entry {
		t.Errorf("the context has %q, want %q", idsOf(now.Entries), want)
	}
	must[*home.RevertResult](t)(h.Entries.Revert(ctx, home.RevertRequest{Session: id}))
	now = must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	if !slices.Equal(idsOf(now.Entries), said) {
		t.Errorf("the context has %q, want %q", idsOf(now.Entries), said)
	}
}

func TestCompareTellsWhereTwoBranchesPart(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: said[0]}))
	third := say(t, h, id, "three")
	got := must[*home.CompareResult](t)(h.Entries.Compare(t.Context(), home.CompareRequest{Session: id, A: said[1], B: home.Leaf}))
	if got.Ancestor != said[0] || got.Shared != 1 ||
		!slices.Equal(idsOf(got.OnlyA), said[1:]) || !slices.Equal(idsOf(got.OnlyB), []string{third}) {
		t.Errorf("%+v", got)
	}
}

func TestContextTellsWhatFitsAWindow(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	long := string(slices.Repeat([]byte("word "), 400))
	id, said := begin(t, h, long, long, "short")
	ctx := t.Context()
	whole := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	if whole.Window != nil || len(whole.Entries) != 3 || len(whole.Costs) != 3 || whole.Leaf != said[2] {
		t.Errorf("the whole context is %+v", whole)
	}
	r := home.ContextRequest{Session: id, Window: &home.WindowRequest{Tokens: whole.Measured.Tokens / 2}}
	fits := must[*home.ContextResult](t)(h.Entries.Context(ctx, r))
	if fits.Window == nil || fits.Window.Tokens > r.Window.Tokens || fits.Window.LeftOutTokens == 0 || fits.Measured.Tokens != whole.Measured.Tokens {
		t.Errorf("what fits is %+v", fits.Window)
	}
	for _, w := range []home.WindowRequest{{}, {Tokens: -1}, {Tokens: 10, CutTo: 101}, {Tokens: 10, Counter: "abacus"}} {
		_, err := h.Entries.Context(ctx, home.ContextRequest{Session: id, Window: &w})
		wantKind(t, err, home.KindInvalid)
	}
}

// A conversation may span several sessions. A new entry goes to the last of them, or
// to the one that holds the entry it refers to. Tags and pins apply to all of them.
func TestWritesGoToTheRightSessionOfAConversation(t *testing.T) {
	t.Parallel()
	house := newHouse(t)
	h, ctx := house.Home, t.Context()
	first := house.say(session.Header{}, "one")
	early := first.LeafID()
	second, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	tagged := func(s *session.Session) []string {
		t.Helper()
		if _, err := s.Refresh(); err != nil {
			t.Fatal(err)
		}
		return must[session.Remarks](t)(s.Remarks()).Tags
	}

	said := must[*home.AppendResult](t)(h.Entries.Append(ctx, home.AppendRequest{Session: first.ID(), Message: userSays("two")}))
	if said.Session != second.ID() {
		t.Errorf("the message went to %s, want %s", said.Session, second.ID())
	}
	label := must[*home.LabelResult](t)(h.Entries.Label(ctx, home.LabelRequest{Session: second.ID(), Entry: early, Label: "start"}))
	if label.Session != first.ID() {
		t.Errorf("the label went to %s, want %s, which has the entry", label.Session, first.ID())
	}
	if _, err := first.AppendEntry(session.Tags("old")); err != nil {
		t.Fatal(err)
	}
	must[*home.TagResult](t)(h.Sessions.Tag(ctx, home.TagRequest{Session: first.ID(), Add: []string{"new"}}))
	if a, b := tagged(first), tagged(second); slices.Contains(a, "new") || !slices.Contains(b, "new") {
		t.Errorf("the tags of the sessions are %q and %q, want the new one at the end", a, b)
	}
	got := must[*home.TagResult](t)(h.Sessions.Tag(ctx, home.TagRequest{Session: second.ID(), Remove: []string{"old", "new"}}))
	if a, b := tagged(first), tagged(second); len(got.Tags)+len(a)+len(b) != 0 {
		t.Errorf("the tags are %q, %q and %q, want none", got.Tags, a, b)
	}
	must[*home.PinResult](t)(h.Sessions.Pin(ctx, home.PinRequest{Session: first.ID(), Pinned: true}))
	for _, s := range []*session.Session{first, second} {
		if _, err := s.Refresh(); err != nil || !must[session.Remarks](t)(s.Remarks()).Pinned {
			t.Errorf("session %s is not pinned, %v", s.ID(), err)
		}
	}

	_, err = h.Entries.Branch(ctx, home.BranchRequest{Session: second.ID(), Entry: early})
	if e, ok := errors.AsType[*home.EarlierError](err); !ok || e.Session != first.ID() || e.Last != second.ID() || home.KindOf(err) != home.KindInvalid {
		t.Errorf("%v, want an EarlierError that names both sessions", err)
	}
	forked := must[*home.ForkResult](t)(h.Sessions.Fork(ctx, home.ForkRequest{Session: second.ID()}))
	now := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: forked.Session}))
	if want := []string{early, said.Entry}; !slices.Equal(idsOf(now.Entries), want) {
		t.Errorf("the fork has %q, want %q", idsOf(now.Entries), want)
	}
}

// A fork has the ids of its original, so two sessions can be compared, too.
func TestCompareTellsWhereTwoSessionsPart(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	fork := must[*home.ForkResult](t)(h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id, At: said[0]})).Session
	third := say(t, h, fork, "three")
	got := must[*home.CompareResult](t)(h.Entries.Compare(t.Context(), home.CompareRequest{Session: id, Other: fork}))
	if got.Session != id || got.Other != fork || got.Ancestor != said[0] || got.Shared != 1 ||
		!slices.Equal(idsOf(got.OnlyA), said[1:]) || !slices.Equal(idsOf(got.OnlyB), []string{third}) {
		t.Errorf("%+v", got)
	}
}

// A fork repeats the labels, the name and the tags of its original. What both sessions say
// is no difference; what only one of them says is.
func TestCompareListsNoRemarkThatBothSessionsHave(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two", "three")
	label := func(session, entry, text string) string {
		return must[*home.LabelResult](t)(h.Entries.Label(t.Context(), home.LabelRequest{Session: session, Entry: entry, Label: text})).Entry
	}
	label(id, said[0], "start")
	fork := must[*home.ForkResult](t)(h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id, At: said[1]})).Session
	label(id, said[1], "turn")
	label(fork, said[1], "turn")
	other := label(fork, said[0], "the very start")
	mine := say(t, h, id, "four")
	theirs := say(t, h, fork, "five")
	got := must[*home.CompareResult](t)(h.Entries.Compare(t.Context(), home.CompareRequest{Session: id, Other: fork}))
	if want := []string{"three", "start", "four"}; !slices.Equal(saidOrLabelled(got.OnlyA), want) || got.OnlyA[len(got.OnlyA)-1].ID != mine {
		t.Errorf("only in the original: %q, want %q", saidOrLabelled(got.OnlyA), want)
	}
	// The fork's own copy of the first label is about the same entry, and was replaced.
	if want := []string{"start", "the very start", "five"}; !slices.Equal(saidOrLabelled(got.OnlyB), want) || got.OnlyB[1].ID != other || got.OnlyB[2].ID != theirs {
		t.Errorf("only in the fork: %q, want %q", saidOrLabelled(got.OnlyB), want)
	}
	if got.Ancestor != said[1] || got.Shared != 2 {
		t.Errorf("they part at %s after %d entries", got.Ancestor, got.Shared)
	}
}

func saidOrLabelled(entries []session.Entry) (texts []string) {
	for _, e := range entries {
		if e.Label != nil {
			texts = append(texts, e.Label.Label)
		} else {
			texts = append(texts, e.Message.Content[0].Text.Content)
		}
	}
	return texts
}
