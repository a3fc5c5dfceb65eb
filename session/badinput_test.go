package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func TestBadEmptyFile(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"empty": "", "newlines": "\n\n \r\n", "garbage": "garbage\n", "NULs": strings.Repeat("\x00", 512), "half a header": `{"type":"session","id":"s","ver`} {
		path := writeBytes(t, []byte(data))
		_, err := session.Load(path)
		if !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		if string(readBytes(t, path)) != data {
			t.Errorf("%s: loading changed the file", name)
		}
	}
}

func TestBadHeaderOnly(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine)
	s := loadScribe(t, path)
	if s.LeafID() != "" {
		t.Errorf("leaf %q", s.LeafID())
	}
	s.sees()
	if tree := mustGet(s.GetTree())(t); len(tree) != 0 {
		t.Errorf("tree %v", tree)
	}
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	survives(t, path)
}

func TestBadNoHeader(t *testing.T) {
	t.Parallel()
	path := writeLog(t, messageLine("a", "", "user", "one"), messageLine("b", "a", "assistant", "two"))
	s := loadScribe(t, path)
	s.sees("user: one", "assistant: two")
	if s.ID() != "s" || s.Header().CreatedAt.IsZero() {
		t.Errorf("header %+v", s.Header())
	}
	if kinds := s.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemHeader}) {
		t.Errorf("problems %q", kinds)
	}
	survives(t, path)
}

func TestBadHeaderNotFirst(t *testing.T) {
	t.Parallel()
	path := writeLog(t, messageLine("a", "", "user", "one"), headerLine, messageLine("b", "a", "assistant", "two"), headerLine)
	s := loadScribe(t, path)
	s.sees("user: one", "assistant: two")
	if got := s.problems(); len(got) != 2 || got[0].Kind != session.ProblemHeader || got[1].Kind != session.ProblemHeader {
		t.Errorf("problems %v", got)
	}
	survives(t, path)
}

// The version is checked wherever the header is found.
func TestBadVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "99", "99999999999999999999999", "2.0", "1e3"} {
		header := `{"type":"session","id":"s","version":` + version + `,"timestamp":"2024-01-01T10:00:00.000Z"}`
		for _, lines := range [][]string{{header}, {header, messageLine("a", "", "user", "one")}, {messageLine("a", "", "user", "one"), header}} {
			path := writeLog(t, lines...)
			before := snapshotDir(t, filepath.Dir(path))
			_, err := session.Load(path)
			if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "version") {
				t.Errorf("version %s: %v, want a refusal", version, err)
			}
			if diff := cmp.Diff(before, snapshotDir(t, filepath.Dir(path))); diff != "" {
				t.Errorf("the refused session was touched:\n%s", diff)
			}
		}
	}
	for _, version := range []string{`1`, `0`, `null`} {
		loadScribe(t, writeLog(t, `{"type":"session","id":"s","version":`+version+`}`, messageLine("a", "", "user", "one"))).sees("user: one")
	}
}

func TestBadByteOrderMarkAndCRLF(t *testing.T) {
	t.Parallel()
	lines := []string{"\xef\xbb\xbf" + headerLine, messageLine("a", "", "user", "one"), messageLine("b", "a", "assistant", "two"), ""}
	path := writeBytes(t, []byte(strings.Join(lines, "\r\n")))
	s := loadScribe(t, path)
	s.sees("user: one", "assistant: two")
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	survives(t, path).sees("user: one", "assistant: two", "user: appended later")
}

// A crash can cut the last line anywhere. The next append must neither join on
// to what is left nor lose it.
func TestBadTornTailAtEveryByte(t *testing.T) {
	t.Parallel()
	last := messageLine("b", "a", "assistant", "tŵo")
	whole := headerLine + "\n" + messageLine("a", "", "user", "one") + "\n"
	for cut := 1; cut <= len(last); cut++ {
		data := whole + last[:cut]
		path := writeBytes(t, []byte(data))
		s := loadScribe(t, path)
		want := []string{"user: one"}
		if cut == len(last) { // only its line end is missing
			want = append(want, "assistant: tŵo")
		}
		s.sees(want...)
		if string(readBytes(t, path)) != data {
			t.Fatalf("cut at %d: reading changed the file", cut)
		}
		s.user("three")
		loadScribe(t, path).sees(append(want, "user: three")...)
		if cut == len(last) {
			continue
		}
		torn := mustGet(filepath.Glob(filepath.Join(filepath.Dir(path), ".coppice", "quarantine", "*")))(t)
		if len(torn) != 1 || string(readBytes(t, torn[0])) != last[:cut] {
			t.Fatalf("cut at %d: the torn end is not in quarantine: %v", cut, torn)
		}
	}
}

// Damage in the middle hides neither what stands before it nor what stands
// after it, whatever is left of the line.
func TestBadDamageInTheMiddle(t *testing.T) {
	t.Parallel()
	line := messageLine("b", "a", "assistant", "two")
	// A line that was torn, to which another writer's next line was joined.
	joined := line[:len(line)-20] + messageLine("c", "b", "user", "three")
	for name, test := range map[string]struct {
		damaged string
		gaps    []string
	}{
		"garbage":              {"#!garbage", []string{"b"}},
		"no id left":           {`{"type":"message","i`, []string{"b"}},
		"id left":              {line[:len(line)-20], []string{"b"}},
		"only the id left":     {`{"id":"b","type":"mess`, []string{"b"}},
		"NULs":                 {strings.Repeat("\x00", 300), []string{"b"}},
		"NULs at its end":      {line + strings.Repeat("\x00", 300), []string{"b"}},
		"NULs inside":          {strings.Replace(line, "two", "t\x00\x00", 1), []string{"b"}},
		"not an object":        {`["b"]`, []string{"b"}},
		"no id":                {`{"type":"message","parent_id":"a"}`, []string{"b"}},
		"id is a number":       {`{"type":"message","id":7,"parent_id":"a"}`, []string{"b"}},
		"bad JSON after head":  {strings.Replace(line, `"content":[`, `"content":[,`, 1), []string{"b"}},
		"invalid UTF-8 inside": {strings.Replace(line, "two", "t\xff\xfe", 1), nil},
		"glued":                {joined, []string{"b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := []string{headerLine, messageLine("a", "", "user", "one"), test.damaged}
			if name != "glued" {
				lines = append(lines, messageLine("c", "b", "user", "three"))
			}
			lines = append(lines, messageLine("d", "c", "assistant", "four"), messageLine("e", "d", "user", "five"))
			path := writeLog(t, lines...)
			s := loadScribe(t, path)
			got := view(mustGet(s.GetContext())(t))
			for _, want := range []string{"user: one", "assistant: four", "user: five"} {
				if !slices.Contains(got, want) {
					t.Errorf("the context lacks %q: %q", want, got)
				}
			}
			var gaps []string
			for _, e := range flatten(mustGet(s.GetTree())(t)) {
				if e.Type == session.TypeGap {
					gaps = append(gaps, e.ID)
				}
			}
			slices.Sort(gaps)
			if diff := cmp.Diff(test.gaps, gaps); diff != "" {
				t.Errorf("gaps (-want +got):\n%s", diff)
			}
			if kinds := s.problemKinds(); test.gaps != nil && !slices.Contains(kinds, session.ProblemDamaged) {
				t.Errorf("the damage is not reported: %q", kinds)
			}
			if tree := mustGet(s.GetTree())(t); len(tree) != 1 {
				t.Errorf("%d roots", len(tree))
			}
			path2 := mustGet(s.Forward(""))(t)
			if path2[0].ID != "a" || path2[len(path2)-1].ID != "e" {
				t.Errorf("path %q", entryIDs(path2))
			}
			for i := 1; i < len(path2); i++ {
				if path2[i].ParentID == nil || *path2[i].ParentID != path2[i-1].ID {
					t.Errorf("entry %s of the path names the parent %v, want %s", path2[i].ID, path2[i].ParentID, path2[i-1].ID)
				}
			}
			survives(t, path)
		})
	}
}

// A damaged line far from the root, on one branch of several: the path is
// shorter than the tree.
func TestBadDamageOnABranch(t *testing.T) {
	t.Parallel()
	lines := []string{headerLine, messageLine("a", "", "user", "one")}
	for i := range 20 {
		lines = append(lines, messageLine(fmt.Sprintf("x%d", i), "a", "assistant", "other"))
	}
	lines = append(lines, messageLine("b", "a", "assistant", "two"),
		strings.Replace(messageLine("c", "b", "user", "three"), "three", "th\x00ee", 1),
		`{"type":"message","id":"d","parent_id":"c","timest`,
		messageLine("e", "d", "user", "five"))
	path := writeLog(t, lines...)
	s := loadScribe(t, path)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, entryIDs(mustGet(s.Forward("e"))(t))); diff != "" {
		t.Error(diff)
	}
	if c := s.compare("x3", "e"); c.Ancestor != "a" || len(c.OnlyB) != 4 {
		t.Errorf("%+v", c)
	}
	s.sees("user: one", "assistant: two", "user: five")
	forked := mustGet(s.CreateBranchedSession("e"))(t)
	loadScribe(t, forked).sees("user: one", "assistant: two", "user: five")
	survives(t, path)
}

// A line that is damaged and an intact one of the same id, as a retry leaves
// them: the intact one counts.
func TestBadDamagedThenRetried(t *testing.T) {
	t.Parallel()
	line := messageLine("b", "a", "assistant", "two")
	for name, lines := range map[string][]string{
		"damaged first": {line[:len(line)-9], line},
		"damaged last":  {line, line[:len(line)-9]},
	} {
		path := writeLog(t, append([]string{headerLine, messageLine("a", "", "user", "one")}, lines...)...)
		s := loadScribe(t, path)
		mustGet(s.GetTree())(t)
		if s.LeafID() != "b" {
			t.Errorf("%s: leaf %q", name, s.LeafID())
		}
		s.sees("user: one", "assistant: two")
		if kinds := s.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemDamaged}) {
			t.Errorf("%s: problems %q", name, kinds)
		}
		survives(t, path).sees("user: one", "assistant: two", "user: appended later")
	}
}

func TestBadDamagedLastLine(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), `{"type":"message","id":"b","parent_id":"a","times`)
	s := loadScribe(t, path)
	if s.LeafID() != "a" {
		t.Errorf("leaf %q", s.LeafID())
	}
	s.sees("user: one")
	survives(t, path)
}

func TestBadInvalidUTF8(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), strings.Replace(messageLine("b", "a", "user", "two"), "two", "t\xffo", 1))
	s := loadScribe(t, path)
	s.sees("user: one", "user: t\ufffdo")
	survives(t, path)

	// What we are given may be invalid too; an id must come back as it was.
	if err := s.Append(session.Entry{Type: session.TypeMessage, ID: "bad\xff", Message: &session.MessageEntry{Role: "user"}}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an id that is not UTF-8: %v, want ErrInvalid", err)
	}
}

func TestBadHugeLine(t *testing.T) {
	t.Parallel()
	const size = 40 << 20
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"),
		strings.Replace(messageLine("b", "a", "assistant", "HUGE"), "HUGE", strings.Repeat("x", size), 1), messageLine("c", "b", "user", "three"))
	s := loadScribe(t, path)
	entries := mustGet(s.GetContext())(t)
	if len(entries) != 3 || len(entries[1].Message.Content[0].Text.Content) != size {
		t.Fatalf("%d entries", len(entries))
	}
	added := s.user("four")
	again := loadScribe(t, path)
	if again.LeafID() != added || mustGet(again.MessageCount())(t) != 4 {
		t.Errorf("leaf %s, %d messages", again.LeafID(), mustGet(again.MessageCount())(t))
	}
}

func TestBadLineOverTheLimit(t *testing.T) {
	t.Parallel()
	small := func(c *session.Config) { c.Files.MaxLine = 100_000 }
	long := messageLine("b", "a", "assistant", strings.Repeat("x", 3<<20))
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), long, messageLine("c", "b", "user", "three"))
	s := loadScribe(t, path, small)
	s.sees("user: one", "user: three")
	if kinds := s.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemDamaged}) {
		t.Errorf("problems %q", kinds)
	}
	tree := flatten(mustGet(s.GetTree())(t))
	if diff := cmp.Diff([]string{"a", "b", "c"}, entryIDs(tree)); diff != "" || tree[1].Type != session.TypeGap {
		t.Errorf("tree %q\n%s", view(tree), diff)
	}
	leaf := s.LeafID()
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(strings.Repeat("y", 200_000))}); !errors.Is(err, session.ErrTooLarge) || !strings.Contains(err.Error(), "100000") {
		t.Errorf("a message over the limit: %v, want ErrTooLarge that names it", err)
	}
	if s.LeafID() != leaf {
		t.Error("a refused message moved the leaf")
	}
	s.user("four")
	s.again(small).sees("user: one", "user: three", "user: four")
	// With a greater limit it is all there.
	if got := len(mustGet(s.again().GetContext())(t)); got != 4 {
		t.Errorf("%d entries with the usual limit", got)
	}
	// A fork must not pretend that it copied it.
	if _, err := s.Fork(t.Context(), mustGet(file.Open(t.TempDir(), nil))(t), nil); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("fork: %v, want ErrTooLarge", err)
	}
}

func TestBadDuplicateIDs(t *testing.T) {
	t.Parallel()
	a, b, c := messageLine("a", "", "user", "one"), messageLine("b", "a", "assistant", "two"), messageLine("c", "b", "user", "three")
	far := messageLine("far", "c", "user", strings.Repeat("long ", 10_000))
	for name, test := range map[string]struct {
		lines []string
		leaf  string
		sees  []string
	}{
		"the same line, last":     {[]string{a, b, c, a}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"the same line, parent's": {[]string{a, b, c, b}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"the leaf's own line":     {[]string{a, b, c, c}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"a line twice at once":    {[]string{a, b, b, c}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"other bytes":             {[]string{a, b, messageLine("b", "a", "assistant", "other"), c}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"other bytes, last":       {[]string{a, b, c, messageLine("a", "c", "user", "other")}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"two lines of the middle": {[]string{a, b, c, a, b}, "c", []string{"user: one", "assistant: two", "user: three"}},
		"everything, header too":  {[]string{a, b, c, headerLine, a, b, c}, "c", []string{"user: one", "assistant: two", "user: three"}},
		// The first of them is so far back that a resume does not meet it.
		"far from the first":       {[]string{a, b, c, far, a, b}, "far", []string{"user: one", "assistant: two", "user: three", "user: long long long long … (50000 bytes)"}},
		"everything but the start": {[]string{a, b, c, b, c}, "c", []string{"user: one", "assistant: two", "user: three"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := writeLog(t, append([]string{headerLine}, test.lines...)...)
			s := loadScribe(t, path)
			s.sees(test.sees...)
			if s.LeafID() != test.leaf {
				t.Errorf("leaf %q, want %q", s.LeafID(), test.leaf)
			}
			if kinds := s.problemKinds(); !slices.Contains(kinds, session.ProblemDuplicate) {
				t.Errorf("problems %q", kinds)
			}
			survives(t, path).sees(append(test.sees, "user: appended later")...)
		})
	}
}

func TestBadCycles(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			panic("a cycle hangs the process")
		}
	}()
	t.Cleanup(func() { close(done) })
	m := func(id, parent string) string { return messageLine(id, parent, "user", "text of "+id) }
	for name, test := range map[string]struct {
		lines []string
		kind  session.ProblemKind
	}{
		"self":                      {[]string{m("a", "a")}, session.ProblemSelfParent},
		"self in the middle":        {[]string{m("a", ""), m("b", "b"), m("c", "b")}, session.ProblemSelfParent},
		"two":                       {[]string{m("a", "b"), m("b", "a")}, session.ProblemCycle},
		"three":                     {[]string{m("a", "c"), m("b", "a"), m("c", "b")}, session.ProblemCycle},
		"three, backwards":          {[]string{m("c", "b"), m("b", "a"), m("a", "c")}, session.ProblemCycle},
		"with a tail":               {[]string{m("a", "b"), m("b", "a"), m("c", "b"), m("d", "c")}, session.ProblemCycle},
		"beside a root":             {[]string{m("r", ""), m("a", "b"), m("b", "a"), m("c", "r")}, session.ProblemCycle},
		"two of them":               {[]string{m("a", "b"), m("b", "a"), m("c", "d"), m("d", "c")}, session.ProblemCycle},
		"a compaction keeps itself": {[]string{m("a", "c"), m("b", "a"), `{"type":"compaction","id":"c","parent_id":"b","timestamp":"2024-01-01T10:00:02.000Z","compaction":{"summary":"s","first_kept_entry_id":"a","tokens_before":1}}`}, session.ProblemCycle},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeLog(t, append([]string{headerLine}, test.lines...)...)
			s := loadScribe(t, path)
			mustGet(s.GetContext())(t)
			if kinds := s.problemKinds(); !slices.Contains(kinds, test.kind) {
				t.Errorf("problems %q, want %q among them", kinds, test.kind)
			}
			if got := len(flatten(mustGet(s.GetTree())(t))); got != len(test.lines) {
				t.Errorf("the tree has %d entries, want %d", got, len(test.lines))
			}
			survives(t, path)
		})
	}
}

// Parents may come after their children, however many; what that costs, bench measures
// ("parents that come later").
// A disk writes a sector to the wrong place: a part of the log is a copy of later lines. What was
// there is lost, but nothing before it, and the leaf stays.
func TestBadCopyOfLaterLines(t *testing.T) {
	t.Parallel()
	lines := []string{headerLine}
	for i := range 16 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("id", i-1)
		}
		lines = append(lines, messageLine(fmt.Sprint("id", i), parent, "user", strings.Repeat("text ", 1+i*7%5)))
	}
	log := strings.Join(lines, "\n") + "\n"
	for at := len(headerLine) + 1; at < len(log); at += 29 {
		for source := at + 31; source < len(log); source += 67 {
			for _, n := range []int{200, 450} {
				if source+n > len(log) || source < at+n {
					continue
				}
				spoilt := log[:at] + log[source:source+n] + log[at+n:]
				if slices.ContainsFunc(strings.Split(spoilt, "\n"), func(line string) bool {
					head, _, _ := strings.Cut(line, `"timestamp"`)
					return json.Valid([]byte(line)) && !strings.Contains(log, head)
				}) {
					continue // it is another entry, and nothing shows that there was damage
				}
				s := loadScribe(t, writeBytes(t, []byte(spoilt)))
				path := make(map[string]bool)
				for _, e := range mustGet(s.Forward(""))(t) {
					path[e.ID] = true
				}
				noError(t, s.Close())
				for i, line := range lines[1:] {
					if strings.Contains(spoilt, "\n"+line+"\n") && !path[fmt.Sprint("id", i)] {
						t.Errorf("%d bytes at %d are those at %d: entry %d of 16 can be read, but is not on the path", n, at, source, i)
					}
				}
			}
		}
	}
}

func TestBadManyParentsThatComeLater(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var chain, children []string
	for i := range n {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("p", i-1)
		}
		chain = append(chain, messageLine(fmt.Sprint("p", i), parent, "user", ""))
		children = append(children, messageLine(fmt.Sprint("c", i), fmt.Sprint("p", n-1), "user", ""))
	}
	for order, lines := range map[string][]string{"in order": append(chain[:n:n], children...), "parents last": append(children[:n:n], chain...)} {
		s := loadScribe(t, writeLog(t, append([]string{headerLine}, lines...)...))
		leaves := mustGet(s.Leaves())(t)
		if count := mustGet(s.MessageCount())(t); count != 2*n || len(leaves) != n {
			t.Errorf("%s: %d messages, %d leaves", order, count, len(leaves))
		}
		mustDo(t, s.Close())
	}
}

func TestBadDanglingParents(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("b", "lost", "assistant", "two"), messageLine("c", "lost", "assistant", "three"), messageLine("d", "c", "user", "four"))
	s := loadScribe(t, path)
	s.sees("user: one", "assistant: three", "user: four")
	tree := mustGet(s.GetTree())(t)
	if diff := cmp.Diff([]string{"a", "lost", "b", "c", "d"}, entryIDs(flatten(tree))); diff != "" {
		t.Error(diff)
	}
	if kinds := s.problemKinds(); !slices.Contains(kinds, session.ProblemDangling) {
		t.Errorf("problems %q", kinds)
	}
	// A gap can be branched from, labelled and shown, but it has no content.
	s.branch("lost")
	mustGet(s.SetLabel("lost", "what was here?"))(t)
	if _, err := s.Entry("lost"); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("the entry of a gap: %v", err)
	}
	survives(t, path)
}

// An empty parent_id is what a writer leaves that has no null.
func TestBadEmptyParent(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, strings.Replace(messageLine("a", "", "user", "one"), `"parent_id":null`, `"parent_id":""`, 1), messageLine("b", "a", "user", "two"))
	s := loadScribe(t, path)
	s.sees("user: one", "user: two")
	if diff := cmp.Diff([]string{"a", "b"}, s.ids()); diff != "" {
		t.Error(diff)
	}
	if kinds := s.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	mustDo(t, s.ResetLeaf())
	s.sees()
	survives(t, path)
}

func TestBadSeveralRoots(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("b", "", "user", "two"), messageLine("c", "b", "user", "three"))
	s := loadScribe(t, path)
	s.sees("user: two", "user: three")
	if tree := mustGet(s.GetTree())(t); len(tree) != 2 {
		t.Errorf("%d roots", len(tree))
	}
	if kinds := s.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemRoots}) {
		t.Errorf("problems %q", kinds)
	}
	survives(t, path)
}

// A leaf that was moved to a move stands where that one moved it: so the path that
// goes on is one that is shown.
func TestBadLeafOnLeaf(t *testing.T) {
	t.Parallel()
	move := func(id, parent string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		return `{"type":"leaf","id":"` + id + `","parent_id":` + parent + `,"timestamp":"2024-01-01T10:00:02.000Z","leaf":{"from_id":"b"}}`
	}
	a, b := messageLine("a", "", "user", "one"), messageLine("b", "a", "user", "two")
	far := strings.Repeat("x", 20<<10)
	for name, test := range map[string]struct {
		lines []string
		leaf  string
	}{
		"once":                {[]string{a, b, move("l1", "a"), move("l2", "l1")}, "a"},
		"twice":               {[]string{a, b, move("l1", "a"), move("l2", "l1"), move("l3", "l2")}, "a"},
		"to none":             {[]string{a, b, move("l1", "null"), move("l2", "l1")}, ""},
		"far away":            {[]string{a, b, move("l1", "a"), messageLine("c", "a", "user", far), messageLine("d", "c", "user", far), move("l2", "l1")}, "a"},
		"far away, no move":   {[]string{a, b, messageLine("c", "b", "user", far), messageLine("d", "c", "user", far), move("l2", "a")}, "a"},
		"to what comes later": {[]string{a, b, move("l2", "l1"), move("l1", "a")}, "a"},
	} {
		path := writeLog(t, append([]string{headerLine}, test.lines...)...)
		s := loadScribe(t, path)
		if got := s.LeafID(); got != test.leaf {
			t.Errorf("%s: the leaf is %q, want %q", name, got, test.leaf)
		}
		mustGet(s.GetTree())(t)
		if got := s.LeafID(); got != test.leaf {
			t.Errorf("%s: the leaf is %q when all is read, want %q", name, got, test.leaf)
		}
		followed := loadScribe(t, writeLog(t, headerLine, a, b))
		log := readBytes(t, path)
		mustDo(t, os.WriteFile(followed.File(), log, 0o600))
		mustGet(followed.Refresh())(t)
		if got := followed.LeafID(); got != test.leaf {
			t.Errorf("%s: the leaf is %q after Refresh, want %q", name, got, test.leaf)
		}
		id := s.user("on")
		if e := mustGet(s.again().Entry(id))(t); test.leaf == "" && e.ParentID != nil || test.leaf != "" && (e.ParentID == nil || *e.ParentID != test.leaf) {
			t.Errorf("%s: the next entry follows %v, want %q", name, e.ParentID, test.leaf)
		}
	}
	s := newScribe(t)
	u := s.user("one")
	s.say("two")
	s.branch(u)
	ids := s.ids()
	s.branch(ids[len(ids)-1]) // which is the move
	if s.LeafID() != u || s.again().LeafID() != u {
		t.Errorf("the leaf stands on %q, and after a restart on %q", s.LeafID(), s.again().LeafID())
	}
}

// A renamed file goes by its name wherever an id is shown.
func TestBadHeaderID(t *testing.T) {
	t.Parallel()
	path := writeLog(t, strings.Replace(headerLine, `"id":"`, `"id":"old-`, 1), messageLine("a", "", "user", "one"))
	s := loadScribe(t, path)
	name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if s.ID() != name || s.Header().ID != name {
		t.Errorf("id %q, header %q, want %q", s.ID(), s.Header().ID, name)
	}
	infos := mustGet(session.List(filepath.Dir(path)))(t)
	if len(infos) != 1 || infos[0].ID != name {
		t.Errorf("listed as %+v", infos)
	}
	problems := mustGet(s.Problems())(t)
	if len(problems) != 1 || problems[0].Kind != session.ProblemHeader || !strings.HasPrefix(problems[0].EntryID, "old-") {
		t.Errorf("problems %v", problems)
	}
	f := loadScribe(t, mustGet(s.CreateBranchedSession("a"))(t))
	if got := f.Header().ParentSession; got != name {
		t.Errorf("a copy names %q as its parent", got)
	}
	next := mustGet(s.Continue())(t)
	defer next.Close()
	if got := mustGet(s.again().Continuation())(t); got != next.ID() || next.Header().ParentSession != name {
		t.Errorf("continued by %q, which continues %q", got, next.Header().ParentSession)
	}
}

// A line whose id is empty is as bad as one whose id is no string.
func TestBadEmptyID(t *testing.T) {
	t.Parallel()
	a, c := messageLine("a", "", "user", "one"), messageLine("c", "a", "user", "three")
	var told []string
	for _, id := range []string{`""`, `5`, `null`} {
		bad := `{"type":"message","id":` + id + `,"parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","message":{"role":"user","content":"two"}}`
		s := loadScribe(t, writeLog(t, headerLine, a, bad, c))
		told = append(told, fmt.Sprint(s.ids(), s.problemKinds(), view(mustGet(s.GetContext())(t))))
	}
	if told[0] != told[1] || told[0] != told[2] {
		t.Errorf("they differ: %q", told)
	}
}

func TestBadFirstKept(t *testing.T) {
	t.Parallel()
	compaction := func(first string) string {
		return `{"type":"compaction","id":"k","parent_id":"b","timestamp":"2024-01-01T10:00:02.000Z","compaction":{"summary":"s","first_kept_entry_id":"` + first + `","tokens_before":1,"state":{}}}`
	}
	for _, first := range []string{"nowhere", "later", "x"} { // x is on another branch
		path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("x", "a", "user", "other"), messageLine("b", "a", "assistant", "two"), compaction(first), messageLine("later", "k", "user", "three"))
		s := loadScribe(t, path)
		s.sees("user: one", "assistant: two", "user: three")
		if kinds := s.problemKinds(); !slices.Contains(kinds, session.ProblemFirstKept) {
			t.Errorf("%s: problems %q", first, kinds)
		}
		if c := s.at(""); c.Compaction != "" || len(c.Problems) != 1 || c.Problems[0].Kind != session.ProblemFirstKept {
			t.Errorf("%s: compaction %q, problems %v", first, c.Compaction, c.Problems)
		}
		survives(t, path)
	}
	for _, first := range []string{"", "k"} { // nothing is kept
		loadScribe(t, writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("b", "a", "assistant", "two"), compaction(first), messageLine("later", "k", "user", "three"))).sees("summary: s", "user: three")
	}

	s := newScribe(t)
	s.user("one")
	leaf := s.LeafID()
	var cut *session.CutError
	if _, err := s.AppendCompaction("s", "nowhere", 1); !errors.As(err, &cut) || cut.EntryID != "nowhere" || !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a compaction that keeps nothing known: %v, want a CutError", err)
	}
	if s.LeafID() != leaf || len(s.again().ids()) != 1 {
		t.Error("the refused compaction was written")
	}
}

func TestBadTargets(t *testing.T) {
	t.Parallel()
	const base = `"parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z",`
	for _, line := range []string{
		`{"type":"label","id":"x",` + base + `"label":{"target_id":"nowhere","label":"l"}}`,
		`{"type":"context_edit","id":"x",` + base + `"context_edit":{"target_id":"nowhere","replacement":null}}`,
		`{"type":"revert","id":"x",` + base + `"revert":{"target_id":"nowhere"}}`,
		`{"type":"merge","id":"x",` + base + `"merge":{"from_id":"nowhere","summary":"m","entry_ids":["gone"]}}`,
	} {
		path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), line, messageLine("b", "x", "user", "two"))
		s := loadScribe(t, path)
		if got := view(mustGet(s.GetContext())(t)); got[0] != "user: one" || got[len(got)-1] != "user: two" {
			t.Errorf("%s: %q", line, got)
		}
		if kinds := s.problemKinds(); !slices.Equal(kinds, []session.ProblemKind{session.ProblemTarget}) {
			t.Errorf("%s: problems %q", line, kinds)
		}
		survives(t, path)
	}
	s := newScribe(t)
	s.user("one")
	for name, use := range map[string]func() error{
		"SetLabel":          func() error { _, err := s.SetLabel("nowhere", "l"); return err },
		"Branch":            func() error { return s.Branch("nowhere") },
		"BranchWithSummary": func() error { _, err := s.BranchWithSummary("nowhere", "s"); return err },
		"EditContext":       func() error { _, err := s.AppendEntry(session.ContextEdit("nowhere")); return err },
		"Revert":            func() error { _, err := s.AppendEntry(session.Revert("nowhere")); return err },
		"Merge":             func() error { _, err := s.AppendEntry(session.Merge("nowhere", "s")); return err },
		"Merge, empty":      func() error { _, err := s.AppendEntry(session.Merge("", "s")); return err },
		"Entry":             func() error { _, err := s.Entry("nowhere"); return err },
		"Forward":           func() error { _, err := s.Forward("nowhere"); return err },
		"Context":           func() error { _, err := s.Context(session.ContextOptions{Leaf: "nowhere"}); return err },
		"CreateBranched":    func() error { _, err := s.CreateBranchedSession("nowhere"); return err },
		"Undo":              func() error { _, err := s.Undo(); return err },
	} {
		if err := use(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of what is not there: %v, want fs.ErrNotExist", name, err)
		}
	}
	if got := len(s.again().ids()); got != 1 {
		t.Errorf("refused operations left %d entries", got)
	}
}

// What cannot be appended is refused before anything is written.
func TestBadEntries(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	first := s.user("one")
	nowhere := "nowhere"
	for name, test := range map[string]struct {
		entry session.Entry
		want  error
	}{
		"no type":             {session.Entry{}, session.ErrInvalid},
		"header":              {session.Entry{Type: session.TypeSession}, session.ErrInvalid},
		"gap":                 {session.Entry{Type: session.TypeGap}, session.ErrInvalid},
		"id taken":            {session.Entry{Type: session.TypeMessage, ID: first, Message: &session.MessageEntry{Role: "user"}}, session.ErrExist},
		"leaf to nowhere":     {session.Entry{Type: session.TypeLeaf, ParentID: &nowhere, Leaf: &session.LeafEntry{}}, session.ErrNotExist},
		"id not UTF-8":        {session.Entry{Type: session.TypeMessage, ID: "\xff"}, session.ErrInvalid},
		"payload of another":  {session.Entry{Type: session.TypeLabel, Message: &session.MessageEntry{Role: "user"}}, session.ErrInvalid},
		"two payloads":        {session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{}, Revert: &session.RevertEntry{}}, session.ErrInvalid},
		"unknown with a pay.": {session.Entry{Type: "odd", Message: &session.MessageEntry{}}, session.ErrInvalid},
	} {
		if err := s.Append(test.entry); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if _, err := s.AppendAll(session.Entry{Type: "x", ID: "twice"}, session.Entry{Type: "x", ID: "twice"}); !errors.Is(err, session.ErrExist) {
		t.Errorf("one id twice in a batch: %v", err)
	}
	if s.LeafID() != first || len(s.again().ids()) != 1 {
		t.Error("something was written")
	}
	if ids, err := s.AppendAll(); err != nil || len(ids) != 0 {
		t.Errorf("nothing appended: %v, %v", ids, err)
	}
	// An id of the caller's own is taken as it is.
	mustDo(t, s.Append(session.Entry{Type: session.TypeMessage, ID: "mine", Message: &session.MessageEntry{Role: "user"}}))
	if s.again().LeafID() != "mine" {
		t.Error("the caller's id was not used")
	}
}

// Names from outside cannot lead out of the directory.
func TestBadNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "sessions")
	mustDo(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	outside := filepath.Join(root, "x.jsonl")
	mustDo(t, os.WriteFile(outside, []byte(headerLine+"\n"), 0o600))
	mustDo(t, os.WriteFile(filepath.Join(dir, "sub", "y.jsonl"), []byte(headerLine+"\n"), 0o600))
	mgr := session.NewManager(dir)
	for _, name := range []string{
		"../x", "../x.jsonl", "..", ".", "", "/etc/passwd", "/etc/passwd.jsonl", outside, "sub/y", "sub/y.jsonl", filepath.Join(dir, "sub", "y.jsonl"),
		filepath.Join(dir, "..", "x.jsonl"), `..\x`, `..\x.jsonl`, "a\x00b", "a\nb", "\u202ex", "nul", "CON.jsonl", ".coppice", ".jsonl", strings.Repeat("n", 300), "C:x", "bad\xff",
	} {
		_, err := mgr.Load(name)
		if err == nil {
			t.Errorf("Load(%q) left the directory", name)
		} else if !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Load(%q): %v, want ErrInvalid", name, err)
		}
	}
	if _, err := mgr.Load("not-there"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that is not taken: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "none.jsonl"), filepath.Join(root, "no", "dir", "x.jsonl")} {
		if _, err := session.Load(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load(%s): %v, want fs.ErrNotExist", path, err)
		}
	}
	for _, path := range []string{"/etc/passwd", filepath.Join(dir, "sub"), ""} {
		if _, err := session.Load(path); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Load(%q): %v, want ErrInvalid", path, err)
		}
	}
	if diff := cmp.Diff([]string{"sessions", "sessions/sub", "sessions/sub/y.jsonl", "x.jsonl"}, namesUnder(t, root)); diff != "" {
		t.Errorf("something was made:\n%s", diff)
	}
}

func TestBadSymlinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "sessions")
	mustDo(t, os.Mkdir(dir, 0o700))
	secret := filepath.Join(root, "secret.jsonl")
	mustDo(t, os.WriteFile(secret, []byte(headerLine+"\n"+messageLine("a", "", "user", "secret")+"\n"), 0o600))
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink(secret, link); err != nil {
		t.Skip(err)
	}
	before := readBytes(t, secret)
	if _, err := session.Load(link); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Load of a symlink: %v, want ErrInvalid", err)
	}
	if _, err := session.NewManager(dir).Load("link"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("mgr.Load of a symlink: %v, want ErrInvalid", err)
	}
	if _, err := session.LoadOrRecover(link); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("LoadOrRecover of a symlink: %v, want ErrInvalid", err)
	}
	if infos := mustGet(session.List(dir))(t); len(infos) != 0 {
		t.Errorf("List follows the symlink: %+v", infos)
	}
	if !bytes.Equal(before, readBytes(t, secret)) {
		t.Error("the file behind the symlink was changed")
	}
}

// What vanishes while it is open is reported, and not made again without its
// beginning.
func TestBadFileVanishes(t *testing.T) {
	t.Parallel()
	for name, vanish := range map[string]func(path string) error{
		"file":      os.Remove,
		"directory": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		s := newScribe(t)
		s.user("one")
		if err := vanish(s.File()); err != nil {
			t.Fatal(err)
		}
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want fs.ErrNotExist", name, err)
		}
		if _, err := os.Stat(s.File()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made again: %v", name, err)
		}
		// What was read stays readable.
		s.sees("user: one")
	}
}

// Another file of the same name is not ours.
func TestBadFileReplaced(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	mustDo(t, os.Remove(s.File()))
	mustDo(t, os.WriteFile(s.File(), []byte(headerLine+"\n"), 0o600))
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}); err == nil {
		t.Error("appended to another session")
	}
	if got := string(readBytes(t, s.File())); got != headerLine+"\n" {
		t.Errorf("the other session became %q", got)
	}
}

// Somebody cut the file back, with an editor or a restored backup.
func TestBadFileCutBack(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	size := mustGet(os.Stat(s.File()))(t).Size()
	s.user("two")
	mustDo(t, os.Truncate(s.File(), size))
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("three")}); !errors.Is(err, session.ErrReplaced) {
		t.Errorf("%v, want ErrReplaced", err)
	}
	s.again().sees("user: one")
}

// snapshotDir describes every file of a directory: content, mode and time.
func snapshotDir(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	mustDo(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info := mustGet(d.Info())(t)
		content := ""
		if info.Mode().IsRegular() {
			content = string(readBytes(t, path))
		}
		files[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	}))
	return files
}

func namesUnder(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	for path := range snapshotDir(t, dir) {
		if rel := mustGet(filepath.Rel(dir, path))(t); rel != "." {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	slices.Sort(names)
	return names
}

// Opening and reading write nothing, whatever state the session is in.
func TestReadingNeverWrites(t *testing.T) {
	t.Parallel()
	long := newScribe(t)
	u := long.user("one")
	long.message(session.RoleTool, session.ToolResult("c", strings.Repeat("x", 100_000), false))
	long.compact("s", "")
	mustGet(long.SetLabel(u, "l"))(t)
	long.branch(u)
	mustDo(t, long.Close())
	for name, path := range map[string]string{
		"healthy":  long.File(),
		"torn":     writeBytes(t, []byte(headerLine+"\n"+messageLine("a", "", "user", "one")+"\n"+`{"type":"mess`)),
		"unended":  writeBytes(t, []byte(headerLine+"\n"+messageLine("a", "", "user", "one"))),
		"damaged":  writeLog(t, "x", messageLine("a", "", "user", "one"), "y", messageLine("b", "z", "user", "two")),
		"empty":    writeBytes(t, nil),
		"with bak": writeBytes(t, []byte("garbage")),
	} {
		dir := filepath.Dir(path)
		if name == "with bak" {
			mustDo(t, os.WriteFile(path+".bak", []byte(headerLine+"\n"), 0o600))
		}
		before := snapshotDir(t, dir)
		s, err := session.Load(path)
		if err == nil {
			_, _ = s.GetContext()
			_, _ = s.GetTree()
			_, _ = s.Problems()
			_, _ = s.Labels()
			_, _ = s.Name()
			_, _ = s.Forward("")
			_, _ = s.Refresh()
			_, _ = s.Continuation()
			_, _ = s.PlanCompaction(session.PlanOptions{KeepTokens: 1, Count: func(session.Entry) int { return 1 }})
			for range s.Entries() {
				continue
			}
			_ = s.Branch(s.LeafID()) // it is there already
			mustDo(t, s.Close())
		}
		mustGet(session.List(dir))(t)
		if c, err := session.ContinueRecent(dir); err == nil {
			c.Close()
		}
		if diff := cmp.Diff(before, snapshotDir(t, dir)); diff != "" {
			t.Errorf("%s: reading wrote:\n%s", name, diff)
		}
	}
	if runtime.GOOS == "windows" {
		t.Log("modes are not compared in earnest here")
	}
}

// A line whose rest is lost does not hide the same line in whole from those who only read the
// end of a log either.
func TestBadRepetitionInTheContext(t *testing.T) {
	t.Parallel()
	const header = `{"type":"session","id":"s","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}` + "\n"
	long := strings.Repeat("x", 20_000) // or the end is all of it
	line := func(id, parent string) string {
		return `{"type":"message","id":"` + id + `","parent_id":` + parent + `,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":"` + id + long + `"}}]}}` + "\n"
	}
	whole := line("a", "null")
	head := strings.Index(whole, `"message":{`)
	lost := whole[:head] + strings.Repeat("#", len(whole)-head-2) + "}\n"
	for name, twice := range map[string]string{"before": lost + whole, "after": whole + lost} {
		s := closeWith(t, mustGet(session.Load(writeBytes(t, []byte(header+twice+line("b", `"a"`)+line("c", `"b"`)))))(t))
		if got := strings.ReplaceAll(contextTexts(t, s), long, ""); got != "a b c" {
			t.Errorf("the damaged line comes %s: the context is %q", name, got)
		}
	}
}
