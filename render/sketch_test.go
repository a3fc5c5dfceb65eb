package render_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// TestASketchThatGrewIsAsGoodAsANewOne: other programs append whatever they like, and what is drawn
// of it is what somebody sees who opens the session now.
func TestASketchThatGrewIsAsGoodAsANewOne(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		st := memory.New(nil)
		writer := must(session.Create(t.Context(), st, session.Header{ID: "talk"}, nil))(t)
		reader := must(session.Open(t.Context(), st, "talk", nil))(t)
		c := render.Conversation{Session: reader, Blobs: st.Blobs()}
		kept := &render.Sketch{}
		var trail render.Trail
		charts := []*render.Chart{render.NewChart(kept, 0), render.NewChart(kept, 1), render.NewChart(kept, 3)}
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			for range rapid.IntRange(0, 6).Draw(t, "appends") {
				appendAny(t, writer)
			}
			must(reader.Refresh())(t)
			fresh := &render.Sketch{}
			for _, k := range []*render.Sketch{kept, fresh} {
				if err := k.Update(c); err != nil {
					t.Fatal(err)
				}
			}
			leaf := fresh.At(fresh.Shape().Leaf())
			if got := kept.At(kept.Shape().Leaf()); got != leaf {
				t.Fatalf("the leaf is %d, want %d", got, leaf)
			}
			var again render.Trail
			kept.Follow(&trail, leaf)
			fresh.Follow(&again, leaf)
			if !slices.Equal(trail.Entries, again.Entries) {
				t.Fatalf("the path is %v, want %v", trail.Entries, again.Entries)
			}
			checkTree(t, c, fresh, again.Entries)
			for i, fold := range []int{0, 1, 3} {
				want := render.NewChart(fresh, fold)
				for _, chart := range []*render.Chart{charts[i], want} {
					if err := chart.Update(t.Context(), c, leaf); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(linesOf(want), linesOf(charts[i])); diff != "" {
					t.Fatalf("with %d, the tree is drawn differently: %s", fold, diff)
				}
				checkChart(t, fresh, want)
			}
		}
	})
}

func must[T any](v T, err error) func(t *rapid.T) T {
	return func(t *rapid.T) T {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func appendAny(t *rapid.T, s *session.Session) {
	ids := must(s.Shape())(t).IDs()
	some := func() string { return rapid.SampledFrom(ids).Draw(t, "entry") }
	var err error
	kind := rapid.SampledFrom([]string{
		"user", "user", "assistant", "assistant", "tool", "draft", "draft", "queue", "take back", "use", "usage",
		"custom", "label", "branch", "root", "compaction",
	}).Draw(t, "kind")
	if len(ids) == 0 && slices.Contains([]string{"take back", "use", "label", "branch", "compaction"}, kind) {
		kind = "user"
	}
	switch kind {
	case "user", "assistant", "tool":
		_, err = s.AppendMessage(kind, []session.Content{session.Text(kind)})
	case "draft":
		_, err = s.AppendEntry(session.NewDraft("piece "))
	case "queue":
		q := session.Queued{Content: []session.Content{session.Text("queued")}, Session: s.ID()}
		_, err = s.AppendEntry(must(q.Entry())(t))
	case "take back":
		_, err = s.AppendEntry(session.NewTakenBack(some()))
	case "use":
		q := session.Queued{ID: some(), Content: []session.Content{session.Text("queued")}}
		_, err = s.AppendEntry(q.Message())
	case "usage":
		_, err = s.AppendCustomEntry(session.CustomUsage, map[string]any{"input": 1})
	case "custom":
		_, err = s.AppendCustomEntry("mine", map[string]any{"x": 1})
	case "label":
		_, err = s.SetLabel(some(), rapid.SampledFrom([]string{"", "here"}).Draw(t, "label"))
	case "branch":
		err = s.Branch(some())
	case "root":
		err = s.ResetLeaf()
	case "compaction":
		_, err = s.AppendCompaction("so far", "", 1)
	}
	if err != nil {
		t.Logf("%s: %v", kind, err) // such as a branch to a note
	}
}

func linesOf(d *render.Chart) (lines []string) {
	for i := range d.Len() {
		l := d.Line(i)
		lines = append(lines, fmt.Sprintf("%s%d folds %d live %v", l.Lanes, l.Entry, l.Folded, l.Live))
	}
	return lines
}

// checkChart: every entry is drawn or folded, once, and can be found.
func checkChart(t *rapid.T, k *render.Sketch, d *render.Chart) {
	drawn := make(map[int32]bool)
	for i := range d.Len() {
		l := d.Line(i)
		at := l.Entry
		for range max(l.Folded, 1) {
			if drawn[at] || d.Index(at) != i {
				t.Fatalf("entry %d is in line %d, and found in line %d", at, i, d.Index(at))
			}
			drawn[at] = true
			if children := k.Children(at); l.Folded > 0 {
				at = children[0]
			}
		}
	}
	for i := range int32(k.Shape().Len()) {
		if k.At(i) == i && !drawn[i] {
			t.Fatalf("entry %d is not drawn", i)
		}
	}
}

// checkTree compares a sketch with what the entries themselves say.
func checkTree(t *rapid.T, c render.Conversation, k *render.Sketch, path []int32) {
	shape := k.Shape()
	entries := must(c.Peek(shape.IDs()...))(t)
	isDraft := func(i int32) bool { _, ok := entries[i].DraftText(); return ok }
	below := func(i, top int32) bool {
		for i = shape.Parent(i); i >= 0 && i != top; {
			i = shape.Parent(i)
		}
		return i == top
	}
	shown := make([]bool, len(entries))
	for i := range int32(len(entries)) {
		e := &entries[i]
		_, isQueued := e.Queued()
		switch {
		case isDraft(i):
			shown[i] = true
			for x := range int32(len(entries)) {
				if m := entries[x].Message; !isDraft(x) && (m == nil || m.Role != session.RoleAssistant) {
					continue
				}
				p := shape.Parent(x)
				for p >= 0 && entries[p].IsAside() && !isDraft(p) {
					p = shape.Parent(p)
				}
				shown[i] = shown[i] && p != i
			}
		case isQueued:
			shown[i] = !slices.ContainsFunc(entries, func(other session.Entry) bool {
				if other.Custom != nil {
					return slices.Contains(other.Unqueued(), e.ID)
				}
				return other.Message != nil && below(shape.Index(other.ID), i) && other.EndsWait(e.ID)
			})
		default:
			shown[i] = !e.IsAside()
		}
	}
	var want []int32
	for i := shape.Leaf(); i >= 0; i = shape.Parent(i) {
		if shown[i] {
			want = append(want, i)
		}
	}
	slices.Reverse(want)
	if !slices.Equal(path, want) {
		t.Fatalf("the path is %v, want %v", path, want)
	}
	newest := make([]int32, len(entries)) // at or below an entry that is shown
	for i := range int32(len(entries)) {
		at := i
		for at >= 0 && !shown[at] {
			at = shape.Parent(at)
		}
		if k.At(i) != at {
			t.Fatalf("entry %d counts as %d, want %d", i, k.At(i), at)
		}
		for ; at >= 0; at = shape.Parent(at) {
			newest[at] = i
		}
	}
	for i := range int32(len(entries)) {
		if !shown[i] {
			continue
		}
		tip := i
		for children := k.Children(tip); len(children) > 0; children = k.Children(tip) {
			tip = slices.MaxFunc(children, func(a, b int32) int { return int(newest[a] - newest[b]) })
		}
		if got, _ := k.Tip(i); got != tip {
			t.Fatalf("entry %d goes on to %d, want %d", i, got, tip)
		}
	}
}

// The entries of a chain get other numbers when an earlier session gets another entry.
func TestASketchOfAChainThatIsJoinedAgain(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	st := memory.New(nil)
	first, err := session.Create(t.Context(), st, session.Header{ID: "s0"}, nil)
	must(err)
	one, err := first.AppendMessage(session.RoleUser, []session.Content{session.Text("one")})
	must(err)
	found, err := session.FindChain(t.Context(), st, "s0", nil)
	must(err)
	chain, err := session.OpenChain(t.Context(), st, found, nil)
	must(err)
	_, err = chain.Continue()
	must(err)
	for range 3 {
		_, err = chain.AppendMessage(session.RoleUser, []session.Content{session.Text("more")})
		must(err)
	}
	c := render.Conversation{Session: chain}
	k, err := render.NewSketch(c, false)
	must(err)
	must(first.Branch(one))
	_, err = first.AppendMessage(session.RoleUser, []session.Content{session.Text("late")})
	must(err)
	_, err = chain.Refresh()
	must(err)
	must(k.Update(c))
	fresh, err := render.NewSketch(c, false)
	must(err)
	draw := func(k *render.Sketch) (lines []string) {
		for i := range int32(k.Shape().Len()) {
			if k.At(i) == i {
				lines = append(lines, fmt.Sprint(i, " ", k.Shape().Type(i), " -> ", k.Children(i)))
			}
		}
		return lines
	}
	if got, want := draw(k), draw(fresh); !slices.Equal(got, want) {
		t.Errorf("updated %v, drawn again %v", got, want)
	}
}
