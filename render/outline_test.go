package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// talk is a session in memory to which a test appends.
type talk struct {
	t *testing.T
	render.Conversation
}

func newTalk(t *testing.T) talk {
	t.Helper()
	st := memory.New(nil)
	s, err := session.Create(context.Background(), st, session.Header{ID: "talk"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return talk{t, render.Conversation{Session: s, Blobs: st.Blobs()}}
}

// say appends a message and returns its id.
func (k talk) say(role, text string) string {
	k.t.Helper()
	id, err := k.AppendMessage(session.MessageRole(role), []session.Content{session.Text(text)})
	return k.must(id, err)
}

func (k talk) must(id string, err error) string {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k talk) outline(o render.OutlineOptions) *render.Outline {
	k.t.Helper()
	out, err := render.NewOutline(k.Conversation, o)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// said is what nodes say, once they are read.
func (k talk) said(nodes []*render.Node) []string {
	k.t.Helper()
	if err := k.Read(context.Background(), nodes, render.MaxOutput); err != nil {
		k.t.Fatal(err)
	}
	var texts []string
	for _, n := range nodes {
		texts = append(texts, render.Gist(&n.Entry, 0))
	}
	return texts
}

func TestOutlineLeavesOutWhatIsAboutTheSession(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.say("user", "one")
	k.must(k.AppendSessionInfo("a name"))
	k.must(k.AppendEntry(session.Tags("x")))
	k.must(k.AppendEntry(session.Pinned(true)))
	k.must(k.AppendCustomEntry(session.CustomImport, nil))
	fidelity := k.must(k.AppendCustomEntry(session.CustomFidelity, nil))
	k.must(k.AppendCustomEntry("extension", map[string]any{"n": 1}))
	two := k.say("assistant", "two")

	out := k.outline(render.OutlineOptions{Leaf: two})
	want := []string{"one", "extension n=1", "two"}
	if diff := cmp.Diff(want, k.said(out.Path())); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	if got := out.Node(fidelity); got != out.Roots[0] {
		t.Errorf("an entry that is left out is %v, want the entry before it", got)
	}
	if all := k.outline(render.OutlineOptions{Leaf: two, All: true}); len(all.Order) != 8 {
		t.Errorf("%d entries in all, want 8", len(all.Order))
	}
}

func TestOutlineGoesOnWithTheLiveBranchElseTheNewest(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	root := k.say("user", "root")
	old := k.say("assistant", "old")
	oldEnd := k.say("user", "old end")
	if err := k.Branch(root); err != nil {
		t.Fatal(err)
	}
	k.say("assistant", "new")

	out := k.outline(render.OutlineOptions{Leaf: oldEnd})
	if diff := cmp.Diff([]string{"root", "old", "old end"}, k.said(out.Path())); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new"}, k.said(out.Node(root).Others())); diff != "" {
		t.Errorf("other branches (-want +got):\n%s", diff)
	}
	if n := out.Node(root); n.Length != 3 || n.Tip() != out.Node(oldEnd) || !n.Live {
		t.Errorf("from the root on: %d entries, live %v", n.Length, n.Live)
	}
	out = k.outline(render.OutlineOptions{})
	if diff := cmp.Diff([]string{"new"}, k.said([]*render.Node{out.Node(root).Tip()})); diff != "" {
		t.Errorf("with no leaf it goes on to (-want +got):\n%s", diff)
	}
	if out.Node(old).Live || len(out.OtherRoots()) != 1 || out.Path() != nil {
		t.Error("something is live although there is no leaf")
	}
}

func TestOutlineCountsALongConversationInProportion(t *testing.T) {
	t.Parallel()
	const n = 5000
	k := newTalk(t)
	entries := make([]session.Entry, n)
	for i := range entries {
		entries[i] = session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: "user", Content: []session.Content{session.Text(fmt.Sprint(i))},
		}}
	}
	if _, err := k.AppendAll(entries...); err != nil {
		t.Fatal(err)
	}
	out := k.outline(render.OutlineOptions{Leaf: k.LeafID()})
	for i, node := range out.Order {
		if node.Length != n-i {
			t.Fatalf("entry %d: %d entries from it on", i, node.Length)
		}
	}
}

func TestReadChunksLetsGoOfWhatWasShown(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	for i := range render.ReadAtOnce + 1 {
		k.say("user", fmt.Sprint(i))
	}
	out := k.outline(render.OutlineOptions{Leaf: k.LeafID()})
	var sizes []int
	for nodes, err := range k.ReadChunks(context.Background(), out.Order, render.MaxOutput) {
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Entry.Message == nil {
				t.Fatal("an entry is not read")
			}
		}
		sizes = append(sizes, len(nodes))
	}
	if diff := cmp.Diff([]int{render.ReadAtOnce, 1}, sizes); diff != "" {
		t.Errorf("chunks (-want +got):\n%s", diff)
	}
	if n := out.Roots[0]; n.Entry.Message != nil || n.Entry.ID == "" || n.Entry.Type != session.TypeMessage {
		t.Errorf("what is left of an entry that was shown: %+v", n.Entry)
	}
	for n, err := range k.EachNode(out.Order[:1]) {
		if err != nil || render.Gist(&n.Entry, 0) != "0" {
			t.Errorf("read again: %v, %v", n.Entry, err)
		}
	}
}

func TestOutputInABlobIsFetchedUpToALimit(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	output := strings.Repeat("a line of output\n", 20_000)
	k.must(k.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c1", "Bash", nil)}))
	id := k.must(k.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c1", output, false)}))
	out := k.outline(render.OutlineOptions{Leaf: id})
	for limit, want := range map[int64]string{100: "[340 kB of output: too long to show here]", render.MaxOutput: output} {
		if err := k.Read(context.Background(), []*render.Node{out.Leaf}, limit); err != nil {
			t.Fatal(err)
		}
		r := out.Leaf.Entry.Message.Content[0].ToolResult
		if r.Blob == "" {
			t.Fatal("the output is not in a blob: the test says nothing")
		}
		if r.Content != want {
			t.Errorf("limit %d: %.60q", limit, r.Content)
		}
	}
}

// TestOutlineShowsDrafts: what arrived of an answer is shown as one message as long as the
// answer is not complete, on any branch, and not after that.
func TestOutlineShowsDrafts(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	draft := func(text string) string {
		t.Helper()
		if err := k.Append(session.NewDraft(text)); err != nil {
			t.Fatal(err)
		}
		return k.LeafID()
	}
	asked := k.say("user", "one")
	draft("half ")
	last := draft("an answer")
	k.must(k.AppendEntry(session.Tags("x")))
	out := k.outline(render.OutlineOptions{Leaf: k.LeafID()})
	if diff := cmp.Diff([]string{"one", "half an answer [not complete]"}, k.said(out.Path())); diff != "" {
		t.Error(diff)
	}
	if n := out.Node(last); n == nil || n.Entry.Message.Role != session.RoleAssistant || render.StopWords(n.Entry.Message) != "not complete" {
		t.Errorf("the draft is %+v", n)
	}
	for n, err := range k.EachNode(out.Path()[1:]) {
		if err != nil || session.TextOf(n.Entry.Message.Content) != "half an answer" {
			t.Errorf("the whole entry is %+v, %v", n.Entry, err)
		}
	}
	if err := k.Branch(asked); err != nil {
		t.Fatal(err)
	}
	draft("a whole ")
	k.say("assistant", "a whole answer")
	draft("and ")
	draft("more")
	k.say("user", "two")
	out = k.outline(render.OutlineOptions{Leaf: k.LeafID()})
	if diff := cmp.Diff([]string{"one", "half an answer [not complete]", "a whole answer", "and more [not complete]", "two"}, k.said(out.Order)); diff != "" {
		t.Error(diff)
	}
}
