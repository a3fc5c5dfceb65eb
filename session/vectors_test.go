package session_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// vector is the expected.json beside a session: what a reader must make of the
// file. docs/vectors.md describes it for readers in other languages.
type vector struct {
	About    string            `json:"about"`
	Error    string            `json:"error"` // "corrupt" or "version": the file cannot be opened
	Leaf     string            `json:"leaf"`
	Path     []string          `json:"path"`
	Tree     []vectorNode      `json:"tree"`
	Name     string            `json:"name"`
	Tags     []string          `json:"tags"`
	Labels   map[string]string `json:"labels"`
	Context  vectorContext     `json:"context"`
	Problems []vectorProblem   `json:"problems"`
}

type vectorNode struct {
	ID     string  `json:"id"`
	Parent *string `json:"parent"`
	Type   string  `json:"type"`
}

type vectorContext struct {
	Provider      string        `json:"provider"`
	Model         string        `json:"model"`
	ThinkingLevel string        `json:"thinking_level"`
	Compaction    string        `json:"compaction"`
	Entries       []vectorEntry `json:"entries"`
}

type vectorEntry struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Role    string `json:"role,omitempty"`
	Content []any  `json:"content,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type vectorProblem struct {
	Kind  string `json:"kind"`
	Entry string `json:"entry,omitempty"`
}

const vectorDir = "testdata/vectors"

// vectorNames returns the directories of the vectors.
func vectorNames(t *testing.T) []string {
	t.Helper()
	dirs, err := os.ReadDir(vectorDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() {
			names = append(names, d.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("there are no vectors")
	}
	return names
}

func readVector(t *testing.T, name string) vector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectorDir, name, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v vector
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// openVector opens a copy of a vector's session, with its blobs.
func openVector(t *testing.T, name string) (*session.Session, error) {
	t.Helper()
	dir := t.TempDir()
	from := filepath.Join(vectorDir, name)
	text, err := os.ReadFile(filepath.Join(from, "session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if blobs := filepath.Join(from, "blobs"); isDir(blobs) {
		if err := os.CopyFS(filepath.Join(dir, ".coppice", "blobs"), os.DirFS(blobs)); err != nil {
			t.Fatal(err)
		}
	}
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	s, err := session.Open(context.Background(), st, name, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Close() })
	return s, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// TestVectors holds the reader to the sessions in testdata/vectors, which are
// what docs/format.md says in the form of examples.
func TestVectors(t *testing.T) {
	for _, name := range vectorNames(t) {
		t.Run(name, func(t *testing.T) {
			want := readVector(t, name)
			s, err := openVector(t, name)
			if want.Error != "" {
				if got := openError(err); got != want.Error {
					t.Fatalf("opening it gives %q (%v), want %q", got, err, want.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkVector(t, s, &want)
		})
	}
}

// openError names the error as the vectors do.
func openError(err error) string {
	switch {
	case errors.Is(err, session.ErrCorrupt):
		return "corrupt"
	case errors.Is(err, session.ErrInvalid):
		return "version"
	}
	return ""
}

func checkVector(t *testing.T, s *session.Session, want *vector) {
	t.Helper()
	checkReading(t, s, want)
	diff(t, "problems", want.Problems, problemsOf(t, s))
}

// checkReading compares all but the problems.
func checkReading(t *testing.T, s *session.Session, want *vector) {
	t.Helper()
	// A session is opened by its end; the context must be the same before and
	// after the whole of it was read.
	diff(t, "context", want.Context, vectorContextOf(t, s))
	diff(t, "leaf", want.Leaf, s.LeafID())
	diff(t, "path", want.Path, pathOf(t, s))
	checkVectorTree(t, s, want.Tree)
	diff(t, "context after the whole tree was read", want.Context, vectorContextOf(t, s))
	name, err := s.Name()
	mustVector(t, err)
	diff(t, "name", want.Name, name)
	remarks, err := s.Remarks()
	mustVector(t, err)
	diff(t, "tags", want.Tags, remarks.Tags)
	labels, err := s.Labels()
	mustVector(t, err)
	diff(t, "labels", want.Labels, labels)
}

func mustVector(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := gocmp.Diff(want, got, emptyIsNil); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// emptyIsNil compares lists and maps by what is in them.
var emptyIsNil = gocmp.FilterPath(func(p gocmp.Path) bool {
	return len(p) > 0
}, gocmp.Options{
	gocmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, gocmp.Ignore()),
	gocmp.FilterValues(func(a, b map[string]string) bool { return len(a)+len(b) == 0 }, gocmp.Ignore()),
	gocmp.FilterValues(func(a, b []any) bool { return len(a)+len(b) == 0 }, gocmp.Ignore()),
	gocmp.FilterValues(func(a, b []vectorEntry) bool { return len(a)+len(b) == 0 }, gocmp.Ignore()),
	gocmp.FilterValues(func(a, b []vectorProblem) bool { return len(a)+len(b) == 0 }, gocmp.Ignore()),
})

func pathOf(t *testing.T, s *session.Session) []string {
	t.Helper()
	if s.LeafID() == "" {
		return nil
	}
	entries, err := s.Forward("")
	mustVector(t, err)
	var path []string
	for _, e := range entries {
		path = append(path, e.ID)
	}
	return path
}

// branches is a tree: what each entry is, and the children of each in order. The
// roots are the children of "".
type branches struct {
	Type     map[string]string
	Children map[string][]string
}

func newBranches() branches {
	return branches{make(map[string]string), make(map[string][]string)}
}

func (b branches) add(id, parent, entryType string) {
	b.Type[id] = entryType
	b.Children[parent] = append(b.Children[parent], id)
}

// checkVectorTree compares the trees. The session leaves out what only moves the
// leaf, unless something hangs on it.
func checkVectorTree(t *testing.T, s *session.Session, want []vectorNode) {
	t.Helper()
	shape, err := s.Shape()
	mustVector(t, err)
	ids := shape.IDs()
	var wantIDs []string
	for _, n := range want {
		wantIDs = append(wantIDs, n.ID)
	}
	slices.Sort(ids)
	slices.Sort(wantIDs)
	diff(t, "ids of the entries", wantIDs, ids)

	forest, err := s.GetTree()
	mustVector(t, err)
	got := newBranches()
	for _, root := range forest {
		got.grow("", root)
	}
	diff(t, "tree", wantedBranches(want), got)
}

func (b branches) grow(parent string, n session.TreeNode) {
	b.add(n.Entry.ID, parent, string(n.Entry.Type))
	for _, child := range n.Children {
		b.grow(n.Entry.ID, child)
	}
}

func wantedBranches(want []vectorNode) branches {
	parent := make(map[string]string)
	for _, n := range want {
		if n.Parent != nil {
			parent[n.ID] = *n.Parent
		}
	}
	shown := make(map[string]bool) // entries that are more than moves of the leaf, and what they hang on
	for _, n := range want {
		if n.Type == string(session.TypeLeaf) {
			continue
		}
		for id := n.ID; id != "" && !shown[id]; id = parent[id] {
			shown[id] = true
		}
	}
	b := newBranches()
	for _, n := range want {
		if shown[n.ID] {
			b.add(n.ID, parent[n.ID], n.Type)
		}
	}
	return b
}

func vectorContextOf(t *testing.T, s *session.Session) vectorContext {
	t.Helper()
	c, err := s.Context(session.ContextOptions{})
	mustVector(t, err)
	got := vectorContext{Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel, Compaction: c.Compaction}
	for i := range c.Entries {
		got.Entries = append(got.Entries, entryOf(t, &c.Entries[i]))
	}
	return got
}

func entryOf(t *testing.T, e *session.Entry) vectorEntry {
	t.Helper()
	v := vectorEntry{ID: e.ID, Type: string(e.Type), Summary: e.Summary()}
	if e.Message == nil {
		return v
	}
	v.Role = e.Message.Role
	for i := range e.Message.Content {
		text, err := json.Marshal(e.Message.Content[i])
		mustVector(t, err)
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var block any
		mustVector(t, dec.Decode(&block))
		v.Content = append(v.Content, block)
	}
	return v
}

// problemsOf returns what is wrong with a session, by kind.
func problemsOf(t *testing.T, s *session.Session) []vectorProblem {
	t.Helper()
	problems, err := s.Problems()
	mustVector(t, err)
	var got []vectorProblem
	for _, p := range problems {
		got = append(got, vectorProblem{string(p.Kind), p.EntryID})
	}
	slices.SortFunc(got, func(a, b vectorProblem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Entry, b.Entry))
	})
	return slices.Compact(got)
}
