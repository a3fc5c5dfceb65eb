package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/upkeep"
)

// someLines are those of a session x with branches, tools and labels.
func someLines(t *testing.T) []byte {
	t.Helper()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{ID: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	must := func(id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	say := func(role session.MessageRole, c session.Content) string {
		return must(s.AppendMessage(role, []session.Content{c}))
	}
	first := say(session.RoleUser, session.Text("plan a garden"))
	say(session.RoleAssistant, session.ToolUse("c1", "ls", map[string]any{"path": "."}))
	say(session.RoleTool, session.ToolResult("c1", "a.txt", false))
	last := say(session.RoleAssistant, session.Text("roses"))
	must("", s.Branch(first))
	say(session.RoleUser, session.Text("rather not"))
	must(s.SetLabel(last, "roses"))
	must(s.AppendEntry(session.Tags("garden")))
	say(session.RoleAssistant, session.Text("beans"))
	content, err := os.ReadFile(s.File())
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// hurt damages a file as crashes, disks and editors do.
func hurt(rng *rand.Rand, content []byte) []byte {
	lines := bytes.SplitAfter(bytes.Clone(content), []byte("\n"))
	lines = lines[:len(lines)-1]
	at := rng.IntN(len(lines))
	line := lines[at]
	switch rng.IntN(7) {
	case 0: // cut off
		lines[at] = append(line[:rng.IntN(len(line))], '\n')
	case 1: // its line end is missing: the next is joined to it
		lines[at] = line[:rng.IntN(len(line))]
	case 2: // a lost block
		from := rng.IntN(len(line))
		clear(line[from : len(line)-1])
	case 3: // repeated
		lines = append(lines, line)
	case 4: // deleted
		lines[at] = nil
	case 5: // moved to the end
		lines[at] = nil
		lines = append(lines, line)
	case 6: // a flipped bit
		line[rng.IntN(len(line))] ^= 1 << rng.IntN(7)
	}
	hurt := bytes.Join(lines, nil)
	if rng.IntN(4) == 0 {
		hurt = hurt[:len(hurt)-rng.IntN(len(hurt)/4)]
	}
	return hurt
}

// readable is what can be read of a session: its entries, and the path to its
// leaf.
type readable struct {
	Entries map[string]string
	Leaf    string
	Path    []string
}

func readSession(t *testing.T, dir, name string) (r readable, ok bool) {
	t.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Open(t.Context(), st, name, nil)
	if errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrInvalid) {
		return readable{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r = readable{Entries: make(map[string]string), Leaf: s.LeafID()}
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if line, err := e.MarshalJSON(); err == nil && e.Type != session.TypeGap {
			r.Entries[e.ID] = string(line)
		}
	}
	path, err := s.Forward(r.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range path {
		r.Path = append(r.Path, e.ID)
	}
	return r, true
}

// Whatever the damage, repair loses nothing that could be read, leaves the leaf
// and its path where they were, keeps the file as it was, and has nothing more
// to do afterwards.
func TestRepairLosesNothing(t *testing.T) {
	t.Parallel()
	content := someLines(t)
	for seed := range soak.Seeds(t, 25) {
		rng := rand.New(rand.NewPCG(seed, 0))
		damaged := content
		for range 1 + rng.IntN(3) {
			damaged = hurt(rng, damaged)
		}
		repairDamaged(t, seed, damaged)
	}
}

func repairDamaged(t *testing.T, seed uint64, damaged []byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	path := filepath.Join(dir, "x.jsonl")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, damaged, 0o600)); err != nil {
		t.Fatal(err)
	}
	before, ok := readSession(t, dir, "x")
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	result, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	if !ok && (errors.Is(err, upkeep.ErrBeyondRepair) || errors.Is(err, session.ErrInvalid)) {
		return // there is nothing to be saved, or it seems to be of a later version
	}
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, damaged)
	}
	after, _ := readSession(t, dir, "x")
	for id, line := range before.Entries {
		if after.Entries[id] != line {
			t.Errorf("seed %d: entry %s was\n%s and is\n%s", seed, id, line, after.Entries[id])
		}
	}
	// What was saved from the end is the new leaf. Where a path ended at damage, it
	// may go on to what stands before it.
	saved := slices.ContainsFunc(result.Actions, func(act upkeep.Action) bool {
		return act.Action == "glued line" || act.Action == "torn end" && act.Entry != ""
	})
	missing := len(after.Path) - len(before.Path)
	if !saved && (before.Leaf != after.Leaf || missing < 0 || !slices.Equal(before.Path, after.Path[missing:])) {
		t.Errorf("seed %d: the path was\n%v and is\n%v\n%s\n%v", seed, before.Path, after.Path, damaged, result.Actions)
	}
	checkKept(t, dir, damaged)
	again, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	if err != nil || len(again.Actions) > 0 {
		t.Errorf("seed %d: repairing again: %v, %v", seed, again, err)
	}
}

// checkKept makes sure that the file as it was is in quarantine, if it changed.
func checkKept(t *testing.T, dir string, damaged []byte) {
	t.Helper()
	now, err := os.ReadFile(filepath.Join(dir, "x.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(now, damaged) {
		return
	}
	kept, err := filepath.Glob(filepath.Join(dir, ".coppice", "quarantine", "x.*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("in quarantine: %v, %v", kept, err)
	}
	if was, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(was, damaged) {
		t.Errorf("what was kept is not what was there: %v", err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "x", message("a", "null", "user", hello, ""), `{"type":"message","id":"b","par`, message("c", "b", "user", hello, ""))
	must(t, os.Chmod(st.Path("x"), 0o644))
	before, err := os.ReadFile(st.Path("x"))
	must(t, err)
	planned, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x", DryRun: true})
	must(t, err)
	now, err := os.ReadFile(st.Path("x"))
	must(t, err)
	info, err := os.Stat(st.Path("x"))
	must(t, err)
	if !bytes.Equal(now, before) || planned.Kept != "" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("something has changed: %v, mode %v", planned, info.Mode())
	}
	done, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	must(t, err)
	if !slices.Equal(done.Actions, planned.Actions) || done.Kept == "" || len(done.Left) > 0 {
		t.Errorf("planned %v, done %v", planned.Actions, done)
	}
}

// NULs at the end are an entry that was lost, not a torn end: a placeholder takes its place.
func TestRepairMarksALostEnd(t *testing.T) {
	t.Parallel()
	st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "x", message("a", "null", "user", hello, ""))
	content, err := os.ReadFile(st.Path("x"))
	must(t, err)
	must(t, os.WriteFile(st.Path("x"), append(content, `{"type":"message","id":"b","parent_id":"a","timesta`+"\x00\x00\x00"...), 0o600))
	result, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	must(t, err)
	var got []string
	for _, act := range result.Actions {
		got = append(got, act.Action+" "+act.Entry)
	}
	if want := []string{"damaged line b", "gap b", "leaf a"}; !slices.Equal(got, want) {
		t.Errorf("repairing did %q, want %q", got, want)
	}
}

// What nobody can put right without guessing is left, and listed.
func TestRepairListsWhatIsLeft(t *testing.T) {
	t.Parallel()
	st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "x", message("a", "a", "user", hello, ""))
	result, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	must(t, err)
	if len(result.Actions) != 0 || len(result.Left) != 1 || result.Left[0].Kind != string(session.ProblemSelfParent) {
		t.Errorf("%+v", result)
	}
}

// The header of a session that continues another is lost. The other one still names it.
func TestRepairKeepsTheChain(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	first, err := session.Create(t.Context(), st, session.Header{ID: "first"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := first.AppendMessage(session.RoleUser, []session.Content{session.Text("one")}); err != nil {
		t.Fatal(err)
	}
	second, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.AppendMessage(session.RoleUser, []session.Content{session.Text("two")})
	want := second.Header()
	if err := errors.Join(err, second.Close()); err != nil {
		t.Fatal(err)
	}
	path := st.Path(want.ID)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(content[:bytes.IndexByte(content, '\n')])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: want.ID}); err != nil {
		t.Fatal(err)
	}
	repaired, err := session.Open(t.Context(), st, want.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer repaired.Close()
	got := repaired.Header()
	if got.ParentSession != want.ParentSession || got.Relation != want.Relation || got.Continuation != want.Continuation {
		t.Errorf("the header is %+v, and was %+v", got, want)
	}
}

// The record that names the continuation of a session is lost. The continuation still says what it
// continues.
func TestRepairNamesTheContinuationAgain(t *testing.T) {
	t.Parallel()
	garble := func(name string) func([]byte) []byte { // a line keeps its beginning
		return func(line []byte) []byte { return bytes.Replace(line, []byte(`"`+name+`":`), []byte(`"`+name+`\":`), 1) }
	}
	zero := func(line []byte) []byte { return append(make([]byte, len(line)-1), '\n') }
	tear := func(line []byte) []byte { return line[:len(line)/2] } // the next line is joined to it
	for name, c := range map[string]struct {
		harm   map[int]func([]byte) []byte // by line
		claims int
		joins  bool
	}{
		"the end of the record":         {map[int]func([]byte) []byte{2: garble("custom_type")}, 1, true},
		"all of the record":             {map[int]func([]byte) []byte{2: zero}, 1, true},
		"the record is torn":            {map[int]func([]byte) []byte{2: tear}, 1, true},
		"the record and the header":     {map[int]func([]byte) []byte{0: zero, 2: zero}, 1, true},
		"all that is not glued":         {map[int]func([]byte) []byte{0: tear, 2: zero}, 1, true},
		"two sessions claim to be next": {map[int]func([]byte) []byte{2: zero}, 2, false},
		"another line":                  {map[int]func([]byte) []byte{1: zero}, 1, true},
		"another line, and no record":   {map[int]func([]byte) []byte{1: garble("role"), 2: func([]byte) []byte { return nil }}, 1, false},
		"a record and another line":     {map[int]func([]byte) []byte{1: zero, 2: zero}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
			must(t, err)
			defer st.Close()
			first, err := session.Create(t.Context(), st, session.Header{ID: "first"}, nil)
			must(t, err)
			must(t, first.Append(session.Message(session.RoleUser, session.Text("one"))))
			second, err := first.Continue()
			must(t, err)
			must(t, second.Append(session.Message(session.RoleUser, session.Text("two"))))
			if c.claims > 1 {
				other, err := session.Create(t.Context(), st, session.Header{ID: "other", ParentSession: "first", Relation: session.RelationContinuation}, nil)
				must(t, err)
				must(t, other.Close())
			}
			must(t, errors.Join(first.Close(), second.Close()))
			path := st.Path("first")
			content, err := os.ReadFile(path)
			must(t, err)
			lines := bytes.SplitAfter(content, []byte("\n"))
			for i, harm := range c.harm {
				lines[i] = harm(lines[i])
			}
			must(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))

			for range 2 {
				_, err = upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "first"})
				must(t, err)
			}
			chain, err := session.FindChain(t.Context(), st, "first", nil)
			must(t, err)
			if joined := slices.Equal(chain.Links, []string{"first", second.ID()}); joined != c.joins {
				t.Errorf("the conversation is %+v", chain)
			}
			repaired, err := os.ReadFile(path)
			must(t, err)
			if n := bytes.Count(repaired, []byte(session.CustomContinuedTo)); n > 1 {
				t.Errorf("there are %d records:\n%s", n, repaired)
			}
		})
	}
}

// A session that cannot be read now may be the one that continues this one, or another that says so.
func TestRepairDoesNotGuessTheContinuation(t *testing.T) {
	t.Parallel()
	errDisk := errors.New("the disk does not answer")
	for name, c := range map[string]struct {
		fail error
		want error
	}{
		"a disk that fails":     {errDisk, errDisk},
		"a damaged session":     {session.ErrCorrupt, nil},
		"a session that left":   {session.ErrNotExist, nil},
		"a header that is lost": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
			must(t, err)
			defer files.Close()
			first, err := session.Create(t.Context(), files, session.Header{ID: "first"}, nil)
			must(t, err)
			must(t, first.Append(session.Message(session.RoleUser, session.Text("one"))))
			second, err := first.Continue()
			must(t, err)
			must(t, errors.Join(first.Close(), second.Close()))
			content, err := os.ReadFile(files.Path("first"))
			must(t, err)
			record := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
			clear(content[record : len(content)-1])
			must(t, os.WriteFile(files.Path("first"), content, 0o600))
			must(t, os.WriteFile(files.Path("third"), []byte(message("a", "null", "user", hello, "")+"\n"), 0o600))

			st := &unopened{files, "third", c.fail}
			_, err = upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "first"})
			if !errors.Is(err, c.want) {
				t.Errorf("the repair says %v", err)
			}
			got, err := os.ReadFile(files.Path("first"))
			must(t, err)
			if isThere := bytes.Contains(got, []byte(session.CustomContinuedTo)); isThere != (c.fail == session.ErrNotExist) {
				t.Errorf("the session names its continuation: %v", isThere)
			}
			if rewritten := !bytes.Equal(got, content); rewritten == (c.want != nil) {
				t.Errorf("the session was rewritten: %v", rewritten)
			}
		})
	}
}

// unopened is a store in which a session cannot be opened.
type unopened struct {
	*file.Store
	name string
	err  error
}

func (s *unopened) Open(ctx context.Context, name string) (store.Log, error) {
	if name == s.name && s.err != nil {
		return nil, s.err
	}
	return s.Store.Open(ctx, name)
}

// The marker of a session that continues another is damaged, but one can see that it is one.
func TestRepairKeepsTheMarker(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	first, err := session.Create(t.Context(), st, session.Header{ID: "first"}, nil)
	must(t, err)
	defer first.Close()
	spend := session.Message(session.RoleAssistant, session.Text("one"))
	spend.Message.Usage = &session.Usage{Input: 10}
	must(t, first.Append(spend))
	answer := session.Entry{ID: first.LeafID()}
	second, err := first.Continue(answer)
	must(t, err)
	third, err := second.Continue(answer)
	must(t, err)
	must(t, third.Append(session.Message(session.RoleUser, session.Text("two"))))
	must(t, errors.Join(second.Close(), third.Close()))
	want, err := session.ReadLink(t.Context(), st, third.ID())
	must(t, err)
	path := st.Path(third.ID())
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(content, []byte(`"continues":{`), []byte(`"continues":[`), 1), 0o600))
	_, err = upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: third.ID()})
	must(t, err)
	if got, err := session.ReadLink(t.Context(), st, third.ID()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("its place is %+v, %v; it was %+v", got, err, want)
	}
	repaired, err := session.Open(t.Context(), st, third.ID(), nil)
	must(t, err)
	defer repaired.Close()
	if spent, err := session.SpentIn(repaired); err != nil || spent.Reported > 0 {
		t.Errorf("it has spent %+v, %v", spent, err)
	}
}

func TestRepairTakesTheBackup(t *testing.T) {
	t.Parallel()
	st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "x", message("a", "null", "user", hello, ""))
	good, err := os.ReadFile(st.Path("x"))
	must(t, err)
	must(t, os.WriteFile(st.Path("x"), []byte("junk\n"), 0o600))
	if _, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"}); !errors.Is(err, upkeep.ErrBeyondRepair) || !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("without a backup: %v", err)
	}
	must(t, os.WriteFile(st.Path("x")+".bak", good, 0o600))
	result, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"})
	must(t, err)
	now, err := os.ReadFile(st.Path("x"))
	must(t, err)
	if len(result.Actions) != 1 || result.Actions[0].Action != "backup" || !bytes.Equal(now, good) {
		t.Errorf("%+v", result)
	}
}

func TestRepairNeedsAStoreThatCanRewrite(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	write(t, st, "x", message("a", "null", "user", hello, ""))
	if _, err := upkeep.Repair(t.Context(), st, upkeep.RepairRequest{Session: "x"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func TestTidyDeletesWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	st, err := file.Open(filepath.Join(t.TempDir(), "s"), &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	needed, err := st.Blobs().Put(t.Context(), []byte("needed"))
	must(t, err)
	unneeded, err := st.Blobs().Put(t.Context(), []byte("not needed"))
	must(t, err)
	write(t, st, "x", message("a", "null", "user", `{"type":"text","text":{"content":"`+string(needed)+`"}}`, ""))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(st.IndexPath()), "locks", "gone"+".lock"), nil, 0o600))
	for _, dryRun := range []bool{true, false} {
		stale, err := upkeep.RemoveStale(t.Context(), st, dryRun)
		must(t, err)
		blobs, err := upkeep.RemoveBlobs(t.Context(), st, dryRun)
		must(t, err)
		if len(stale) != 1 || stale[0].Session != "gone" || len(blobs) != 1 || blobs[0].Path != st.Parts().Where(store.PartBlob, string(unneeded)) {
			t.Errorf("dry run %v: %+v, %+v", dryRun, stale, blobs)
		}
		_, staleErr := os.Stat(filepath.Join(filepath.Dir(st.IndexPath()), "locks", "gone"+".lock"))
		_, blobErr := os.Stat(st.Parts().Where(store.PartBlob, string(unneeded)))
		if (staleErr == nil) != dryRun || (blobErr == nil) != dryRun {
			t.Errorf("dry run %v: %v, %v", dryRun, staleErr, blobErr)
		}
	}
	if _, err := os.Stat(st.Parts().Where(store.PartBlob, string(needed))); err != nil {
		t.Error(err)
	}
}
