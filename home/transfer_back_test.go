package home_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/upkeep"
)

// backups are the requests that write what an import brings back.
var backups = []home.ExportRequest{{Format: home.ExportJSONL, Inline: true}, {Format: home.ExportJSON}}

// export writes a conversation to a file in a directory and returns the file.
func (h *house) export(name, dir string, r home.ExportRequest) string {
	h.Helper()
	r.Session, r.Path = name, filepath.Join(dir, "export."+r.Format)
	done, err := h.Transfer.Export(h.Context(), r, nil)
	if err != nil {
		h.Fatal(err)
	}
	return done.Paths[0]
}

// bring imports files of ours, of which nothing may be wrong.
func (h *house) bring(paths ...string) *bulk.Result {
	h.Helper()
	r, err := h.Transfer.Import(h.Context(), home.ImportRequest{Paths: paths}, nil, nil)
	if err != nil || r.IsPartial() || len(r.ByFormat) != 1 || r.ByFormat[0].Format != home.FormatCoppice {
		h.Fatalf("importing %v: %+v, %v", paths, r, err)
	}
	return r
}

// noise is text that cannot be compressed much.
func noise(random *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", random.Uint64())
	}
	return b.String()
}

// isLong reports whether a conversation has several sessions.
func (h *house) isLong(name string) bool {
	h.Helper()
	c, err := h.Conversation(h.Context(), home.OpenRequest{Session: name})
	if err != nil {
		h.Fatal(err)
	}
	defer c.Close()
	return len(c.Chain.Links) > 1
}

// sent is what a model would be sent of a conversation, and its tree. isLong says whether it had
// several sessions before it became one.
func (h *house) sent(name string, isLong bool) string {
	h.Helper()
	c, err := h.Conversation(h.Context(), home.OpenRequest{Session: name})
	if err != nil {
		h.Fatal(err)
	}
	defer c.Close()
	history, err := c.GetContext()
	if err != nil {
		h.Fatal(err)
	}
	for _, e := range history { // what a compaction kept is about one session, and no part of what is sent
		if isLong && e.Compaction != nil && e.Compaction.State != nil {
			e.Compaction.State.Kept = nil
		}
	}
	tree, err := c.GetTree()
	if err != nil {
		h.Fatal(err)
	}
	text, err := json.Marshal([]any{history, shapeOf(tree, isLong), c.LeafID()})
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

// shapeOf draws a tree. For a conversation of several sessions it leaves out the records of
// continuations: what is exported as one session has none.
func shapeOf(nodes []session.TreeNode, isLong bool) string {
	var b strings.Builder
	for _, n := range nodes {
		if isLong && n.Entry.Custom != nil && n.Entry.Custom.CustomType == session.CustomContinuedTo {
			b.WriteString(shapeOf(n.Children, isLong))
			continue
		}
		fmt.Fprintf(&b, "(%s %s%s)", n.Entry.ID, n.Label, shapeOf(n.Children, isLong))
	}
	return b.String()
}

// What was kept of an import's source is part of a backup, however large it is.
func TestABackupOfAnImportComesBack(t *testing.T) {
	t.Parallel()
	text := noise(rand.New(rand.NewPCG(1, 1)), 200_000)
	from := imported(t, text)
	id := "last"
	for _, r := range backups {
		file := from.export(id, t.TempDir(), r)
		to := newHouse(t)
		to.bring(file)
		each := func(f upkeep.Finding) error { return fmt.Errorf("%+v", f) }
		if _, err := to.Upkeep.Check(t.Context(), home.CheckRequest{}, each); err != nil {
			t.Fatalf("%s: %v", r.Format, err)
		}
		c, err := to.Conversation(t.Context(), home.OpenRequest{Session: "last"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		path, err := c.Forward("")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := transcript.Raw(t.Context(), to.Store(), c.Session, &path[0])
		if err != nil || string(raw) != claudeCode(0, text) {
			t.Errorf("%s: the source is %d bytes, %v", r.Format, len(raw), err)
		}
		if again := to.export("last", t.TempDir(), r); readText(t, again) != readText(t, file) {
			t.Errorf("%s: exported again, it is another file", r.Format)
		}
		for _, h := range []*house{to, from} { // where it came from, too
			if done := h.bring(file); done.Unchanged != 1 || done.Entries != 0 {
				t.Errorf("%s: the second import did %+v", r.Format, done)
			}
		}
	}
}

// Whatever a session consists of, it comes back from its backup.
func TestEveryBackupComesBack(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 2) {
		random := rand.New(rand.NewPCG(seed, 7))
		from := newHouse(t)
		first := from.grow(random)
		isLong := from.isLong(first)
		for _, r := range backups {
			file := from.export(first, t.TempDir(), r)
			to := newHouse(t)
			if done := to.bring(file); done.Sessions != 1 {
				t.Fatalf("seed %d, %s: %+v", seed, r.Format, done)
			}
			if diff := cmp.Diff(from.sent(first, isLong), to.sent(first, isLong)); diff != "" {
				t.Fatalf("seed %d, %s: (-before +after)\n%s", seed, r.Format, diff)
			}
			if again := to.export(first, t.TempDir(), r); readText(t, again) != readText(t, file) {
				t.Fatalf("seed %d, %s: exported again, it is\n%s\nnot\n%s", seed, r.Format, readText(t, again), readText(t, file))
			}
			if done := to.bring(file); done.Unchanged != 1 || done.Entries != 0 {
				t.Errorf("seed %d, %s: the second import did %+v", seed, r.Format, done)
			}
		}
	}
}

// grow makes a random conversation and returns its id: branches, content in blobs, labels,
// compactions, sessions that continue each other.
func (h *house) grow(random *rand.Rand) string {
	h.Helper()
	must := func(err error) {
		h.Helper()
		if err != nil {
			h.Fatal(err)
		}
	}
	s, err := session.Create(h.Context(), h.Store(), session.Header{}, &session.Options{BlobThreshold: 100})
	must(err)
	first := s.ID()
	var ids []string
	for range 5 + random.IntN(25) {
		switch random.IntN(9) {
		case 0:
			if len(ids) > 0 {
				must(s.Branch(ids[random.IntN(len(ids))]))
			}
		case 1:
			if len(ids) > 0 {
				_, err = s.SetLabel(ids[random.IntN(len(ids))], "here")
				must(err)
			}
		case 2:
			_, err = s.AppendSessionInfo("about " + noise(random, 10))
			must(err)
		case 3:
			call := fmt.Sprintf("call-%d", len(ids))
			_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse(call, "sh", map[string]any{"level": "info", "parts": []any{"x"}})})
			must(err)
			id, err := s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult(call, noise(random, random.IntN(400)), false)})
			must(err)
			ids = append(ids, id)
		case 4:
			if path, err := s.Forward(""); err == nil && len(path) > 0 {
				_, _ = s.AppendCompaction("so far", path[len(path)-1].ID, 5) // where that is allowed
			}
		case 5:
			if random.IntN(3) == 0 {
				next, err := s.Continue()
				must(err)
				must(s.Close())
				s, ids = next, nil
			}
		default:
			role := []string{session.RoleUser, session.RoleAssistant}[random.IntN(2)]
			id, err := s.AppendMessage(role, []session.Content{session.Text(noise(random, random.IntN(300)))})
			must(err)
			ids = append(ids, id)
		}
	}
	must(s.Close())
	return first
}

// A session that was continued has grown elsewhere, and the sessions after it have copies of what it
// had: they do not stand in the way. A whole conversation as one session does not come on top of
// them.
func TestASessionThatGrewIsImportedBesideItsContinuation(t *testing.T) {
	t.Parallel()
	zero := func(line string) string { return strings.Repeat("\x00", len(line)-1) + "\n" }
	for name, harm := range map[string]struct {
		line int // of the continuation: its header, two copies, its marker, its own message
		do   func(string) string
	}{
		"as it was":         {},
		"the marker's end":  {3, func(line string) string { return strings.Replace(line, `"continues":{`, `"continues":[`, 1) }},
		"the marker":        {3, zero},
		"a copy":            {2, zero},
		"the marker's line": {3, func(string) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouseInFiles(t)
			first := h.say(session.Header{ID: "first"}, "one", "two")
			path := must[[]session.Entry](t)(first.Forward(""))
			next := must[*session.Session](t)(first.Continue(path...))
			must[string](t)(next.AppendMessage(session.RoleUser, []session.Content{session.Text("three")}))
			link := next.ID()
			mustClose(t, next)
			small := readText(t, first.File())
			must[string](t)(first.AppendMessage(session.RoleUser, []session.Content{session.Text("a word more")}))
			grown := writeText(t, filepath.Join(t.TempDir(), "grown.jsonl"), readText(t, first.File()))
			mustClose(t, first)
			mustClose(t, h.Home)
			writeText(t, filepath.Join(h.dir, "first.jsonl"), small)
			h.Home = h.open(&home.Options{})
			whole := h.export("first", t.TempDir(), backups[0])

			if harm.do != nil {
				lines := strings.SplitAfter(readText(t, filepath.Join(h.dir, link+".jsonl")), "\n")
				lines[harm.line] = harm.do(lines[harm.line])
				writeText(t, filepath.Join(h.dir, link+".jsonl"), strings.Join(lines, ""))
				h.Home = h.open(&home.Options{})
			}
			_, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{whole}}, nil, func(e home.ImportEvent) error { return e.Error })
			if err == nil || !strings.Contains(err.Error(), link+", which continues it, has some of its entries") {
				t.Errorf("the whole conversation: %v", err)
			}
			if done := h.bring(grown); done.Entries != 1 {
				t.Errorf("the session that grew: %+v", done)
			}
			c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: "first"}))
			defer c.Close()
			texts := make(map[string]int)
			for e, err := range c.Entries() {
				if err == nil && e.Message != nil {
					texts[session.TextOf(e.Message.Content)]++
				}
			}
			if diff := cmp.Diff(map[string]int{"one": 1, "two": 1, "three": 1, "a word more": 1}, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A backup is complete or it is not written, and never takes the place of one that was.
func TestAnIncompleteBackupLeavesTheOlderOneAlone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*house, string){
		"content": func(h *house, _ string) { h.loseBlobs() },
		"a line":  func(h *house, id string) { h.breakLine(id) },
	} {
		for _, r := range backups {
			h := newHouseInFiles(t)
			id := h.result(strings.Repeat("output ", 100))
			dir := t.TempDir()
			file := h.export(id, dir, r)
			good := readText(t, file)
			lose(h, id)
			r.Session, r.Path, r.Force = id, file, true
			done, err := h.Transfer.Export(t.Context(), r, nil)
			if isCopied := name == "a line" && r.Format == home.ExportJSONL; isCopied {
				if err != nil || !strings.Contains(readText(t, file), "\x00") {
					t.Errorf("%s, %s: the log was not copied as it is: %v", name, r.Format, err)
				}
				continue
			}
			if !errors.Is(err, home.ErrIncomplete) || home.KindOf(err) != home.KindPartial || readText(t, file) != good {
				t.Errorf("%s, %s: %+v, %v", name, r.Format, done, err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("%s, %s: it left %v", name, r.Format, left)
			}
		}
	}
}

// loseBlobs removes all content that is not in the logs.
func (h *house) loseBlobs() {
	h.Helper()
	if err := os.RemoveAll(filepath.Join(filepath.Dir(indexPath(h.Home)), "blobs")); err != nil {
		h.Fatal(err)
	}
}

// breakLine makes the second line of a session unreadable.
func (h *house) breakLine(id string) {
	h.Helper()
	path := filepath.Join(h.dir, id+".jsonl")
	lines := strings.SplitAfter(readText(h.T, path), "\n")
	lines[1] = strings.Repeat("\x00", len(lines[1])-1) + "\n"
	writeText(h.T, path, strings.Join(lines, ""))
}

// result begins a session with a tool's output in a blob.
func (h *house) result(output string) string {
	h.Helper()
	s, err := session.Create(h.Context(), h.Store(), session.Header{}, &session.Options{BlobThreshold: 10})
	if err != nil {
		h.Fatal(err)
	}
	defer s.Close()
	for _, c := range []session.Content{session.ToolUse("c", "sh", nil), session.ToolResult("c", output, false)} {
		role := session.RoleAssistant
		if c.ToolResult != nil {
			role = session.RoleTool
		}
		if _, err := s.AppendMessage(role, []session.Content{c}); err != nil {
			h.Fatal(err)
		}
	}
	return s.ID()
}

// What people read says where content is missing, and so does the result.
func TestAPageSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	id := h.result(strings.Repeat("output ", 100))
	h.loseBlobs()
	for _, format := range []string{home.ExportMarkdown, home.ExportHTML, "openai"} {
		var out bytes.Buffer
		done, err := h.Transfer.Export(t.Context(), home.ExportRequest{
			OpenRequest: home.OpenRequest{Session: id}, Format: format, Path: "-",
		}, into(&out))
		if err != nil || len(done.Missing) != 1 || done.Missing[0].Blob == "" || !strings.Contains(out.String(), "missing") {
			t.Errorf("%s: %+v, %v\n%s", format, done, err, out.String())
		}
	}
	damaged := h.say(session.Header{}, "one", "two", "three").ID()
	h.breakLine(damaged)
	for _, format := range []string{home.ExportMarkdown, home.ExportHTML} {
		var out bytes.Buffer
		done, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: damaged}, Format: format}, into(&out))
		if err != nil || len(done.Missing) != 1 || !strings.Contains(out.String(), "missing or damaged") {
			t.Errorf("%s: %+v, %v\n%s", format, done, err, out.String())
		}
	}
}

// A file of ours is known by its header, whatever the conversation is about.
func TestAHeaderOfOursDecides(t *testing.T) {
	t.Parallel()
	from := newHouse(t)
	s := from.say(session.Header{}, `{"info":{},"parts":[],"projectID":"p","sessionId":"s","uuid":"u","parentUuid":null,"mapping":{},"current_node":1}`)
	call := session.ToolUse("c", "log", map[string]any{
		"level": "info", "info": map[string]any{}, "parts": []any{"x"}, "projectID": "p", "mapping": 1, "current_node": 2, "chat_messages": 3,
		"last_active": 1, "created_at": 2, "metadata": 3, "session_id": 4, "total_tokens": 5, "messages": []any{}, "id": "T-1",
	})
	if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{call}); err != nil {
		t.Fatal(err)
	}
	for _, r := range backups {
		file := from.export(s.ID(), t.TempDir(), r)
		for _, name := range []string{"session_20260102_030405_abcdef12.json", "chat_history.jsonl", "copy.txt"} {
			other := filepath.Join(t.TempDir(), name)
			writeText(t, other, readText(t, file))
			newHouse(t).bring(other)
		}
		to := newHouse(t)
		for _, format := range []string{"", home.FormatCoppice} {
			done, err := to.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{"-"}, Format: format}, strings.NewReader(readText(t, file)), nil)
			if err != nil || done.Failed > 0 || done.Files != 1 {
				t.Errorf("%s from standard input: %+v, %v", r.Format, done, err)
			}
		}
	}
	notOurs := writeText(t, filepath.Join(t.TempDir(), "a.jsonl"), claudeCode(1, "hello"))
	done, err := newHouse(t).Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{notOurs}, Format: home.FormatCoppice}, nil, func(e home.ImportEvent) error {
		if !errors.Is(e.Error, home.ErrNoFormat) {
			t.Errorf("a file of another program: %v", e.Error)
		}
		return nil
	})
	if err != nil || done.Failed != 1 {
		t.Errorf("a file of another program: %+v, %v", done, err)
	}
}

// A file that ends in the middle of an entry, or has a broken line, is read but for that.
func TestWhatIsLeftOfAFileOfOursIsImported(t *testing.T) {
	t.Parallel()
	from := newHouse(t)
	s := from.say(session.Header{}, "one", "two", "three")
	lines := strings.SplitAfter(readText(t, from.export(s.ID(), t.TempDir(), backups[0])), "\n")
	document := readText(t, from.export(s.ID(), t.TempDir(), backups[1]))
	for name, tt := range map[string]struct {
		text string
		left int // messages
		bad  int
	}{
		"torn":           {lines[0] + lines[1] + lines[2] + lines[3][:len(lines[3])/2], 2, 1},
		"no line end":    {strings.TrimSuffix(strings.Join(lines, ""), "\n"), 3, 0},
		"broken":         {lines[0] + lines[1] + lines[2][:20] + "\n" + lines[3], 2, 1},
		"twice":          {strings.Join(lines, "") + lines[2], 3, 0},
		"torn document":  {document[:strings.Index(document, "three")], 2, 1},
		"other spacing":  {strings.ReplaceAll(document, `":`, "\" :\n"), 3, 0},
		"second header":  {strings.Join(lines, "") + lines[0], 3, 1},
		"byte order":     {"\ufeff" + strings.Join(lines, ""), 3, 0},
		"byte order doc": {"\ufeff" + document, 3, 0},
	} {
		to := newHouse(t)
		file := writeText(t, filepath.Join(t.TempDir(), "a.jsonl"), tt.text)
		for range 2 {
			done, err := to.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{file}}, nil, nil)
			if err != nil || done.Failed > 0 || done.Problems != tt.bad {
				t.Errorf("%s: %+v, %v", name, done, err)
				break
			}
			c, err := to.Conversation(t.Context(), home.OpenRequest{Session: s.ID()})
			if err != nil {
				t.Fatal(err)
			}
			history, err := c.GetContext()
			if err != nil || len(history) != tt.left {
				t.Errorf("%s: %d messages, %v", name, len(history), err)
			}
			c.Close()
		}
	}
}

// A log that refers to content is imported if the content is at hand: in the home, or in the
// store that the log lies in.
func TestContentBesideAFileIsFound(t *testing.T) {
	t.Parallel()
	from := newHouseInFiles(t)
	id := from.result(strings.Repeat("output ", 100))
	bare := from.export(id, t.TempDir(), home.ExportRequest{Format: home.ExportJSONL})
	if done := from.bring(bare); done.Unchanged != 1 {
		t.Errorf("into the same home: %+v", done)
	}
	to := newHouseInFiles(t)
	done, err := to.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{bare}}, nil, nil)
	if err != nil || done.Failed != 1 || !strings.Contains(done.Failures[0].Error, "missing blob") {
		t.Errorf("without content: %+v, %v", done, err)
	}
	to.bring(filepath.Join(from.dir, id+".jsonl"))
	if from.sent(id, false) != to.sent(id, false) {
		t.Errorf("%s\nbecame\n%s", from.sent(id, false), to.sent(id, false))
	}
}

// What an import kept of its source is as clean as the rest: in a backup without secrets, and
// in a home from which they were taken out.
func TestNoSecretComesBackInWhatWasKept(t *testing.T) {
	t.Parallel()
	const secret = "ghp_q3RwT5yU7iOp9AsDf1GhJk2LzXcVbN4mQwEr"
	from := imported(t, "my token is "+secret+" "+noise(rand.New(rand.NewPCG(2, 2)), 20_000))
	kept := func(h *house) string {
		t.Helper()
		c, err := h.Conversation(t.Context(), home.OpenRequest{Session: "last"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		path, err := c.Forward("")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := transcript.Raw(t.Context(), h.Store(), c.Session, &path[0])
		if err != nil || len(raw) == 0 {
			t.Fatalf("%d bytes, %v", len(raw), err)
		}
		return string(raw)
	}
	var files []string
	for _, r := range backups {
		files = append(files, from.export("last", t.TempDir(), r))
		r.Redact = true
		to := newHouse(t)
		to.bring(from.export("last", t.TempDir(), r))
		if strings.Contains(kept(to), secret) {
			t.Errorf("%s: the secret is in the backup", r.Format)
		}
	}
	if !strings.Contains(kept(from), secret) {
		t.Fatal("the secret was not kept")
	}
	if _, err := from.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true}); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := from.Sessions.Remove(t.Context(), home.RemoveRequest{Session: "last"}); err != nil {
			t.Fatal(err)
		}
		from.bring(file)
		if strings.Contains(kept(from), secret) {
			t.Errorf("%s brought the secret back", file)
		}
	}
}
