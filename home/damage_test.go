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

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/chaingen"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

// TestDamageStaysLocal spoils the files of conversations in many ways. Whatever is still there
// of a conversation, each reader must have; and each must say that something is not there.
func TestDamageStaysLocal(t *testing.T) {
	t.Parallel()
	for seed := range soak.Seeds(t, 400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			newVictim(t, seed).run()
		})
	}
}

// victim is a conversation that is going to be damaged.
type victim struct {
	*testing.T
	rand  *rand.Rand
	dir   string
	home  string
	links []string
	whole []session.Entry // its path, as it was
	harm  string          // what was done to it
}

func newVictim(t *testing.T, seed uint64) *victim {
	v := &victim{T: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), home: t.TempDir()}
	st := must[*file.Store](t)(file.Open(v.dir, &file.Options{Sync: file.Never}))
	s := must[*session.Session](t)(session.Create(t.Context(), st, session.Header{ID: "s0"}, nil))
	v.links = []string{"s0"}
	for i := range 10 + v.rand.IntN(50) {
		text := strings.Repeat(fmt.Sprintf("message %d ", i), 1+v.rand.IntN(1+v.rand.IntN(300)))
		role := session.RoleUser
		if i%2 == 1 {
			role = session.RoleAssistant
		}
		if _, err := s.AppendMessage(role, []session.Content{session.Text(text)}); err != nil {
			t.Fatal(err)
		}
		if v.rand.IntN(60) == 0 && i > 4 {
			next := must[*session.Session](t)(s.Continue())
			mustClose(t, s)
			s = next
			v.links = append(v.links, s.ID())
		}
	}
	mustClose(t, s)
	mustClose(t, st)
	v.whole, _ = v.path(v.open(), "")
	return v
}

func mustClose(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func (v *victim) open() *home.Home {
	v.Helper()
	return (&house{T: v.T, dir: v.dir}).open(&home.Options{Settings: settings(v.T, env{"HOME": v.home})})
}

func (v *victim) run() {
	name := v.links[v.rand.IntN(len(v.links))]
	path := filepath.Join(v.dir, name+".jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		v.Fatal(err)
	}
	spoilt := v.spoil(data)
	if err := os.WriteFile(path, spoilt, 0o600); err != nil {
		v.Fatal(err)
	}
	there := make(map[string]bool) // the lines that are as they were
	for line := range bytes.Lines(spoilt) {
		there[string(bytes.TrimSuffix(line, []byte("\n")))] = true
	}
	want, hidden := make(map[string]bool), false
	for _, e := range v.whole {
		want[e.ID] = true
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	last := len(lines) // after the last line that is still there
	for last > 0 && !there[lines[last-1]] {
		last--
	}
	for i, line := range lines {
		if there[line] {
			continue
		}
		var e session.Entry
		if e.UnmarshalJSON([]byte(line)) == nil {
			delete(want, e.ID)
		}
		if e.Type == session.TypeSession && i == 0 && v.hasHeader(spoilt) {
			continue // without its id, which is the file's name
		}
		// Lines that are missing at the end, and changed letters, leave no trace.
		hidden = hidden || i < last && !v.reads(spoilt, e.ID)
	}
	if v.isForged(spoilt, data) {
		return
	}
	v.check("plain", want, hidden)
	h := v.open()
	if _, err := h.Sessions.Archive(v.Context(), home.ArchiveRequest{Session: v.links[0]}); err != nil {
		v.Fatalf("%s: archive: %v", v.harm, err)
	}
	v.check("archived", want, hidden)
	if _, err := h.Sessions.Unarchive(v.Context(), home.OpenRequest{Session: v.links[0]}); err != nil {
		v.Fatal(err)
	}
	if _, err := h.Upkeep.Repair(v.Context(), home.RepairRequest{Session: name}); err != nil {
		v.Fatalf("%s: repair: %v", v.harm, err)
	}
	v.check("repaired", want, false)
}

// isForged reports whether two torn lines make one that can be read and is at a place of the tree
// where no lost line was: its parent is that of a line that is still there, or it has the id of a
// line that comes later. Nobody can see this: the first of two lines counts (docs/format.md, 6.1),
// and what follows a missing parent follows the line before it.
func (v *victim) isForged(spoilt, data []byte) bool {
	read := func(data []byte) (entries []session.Entry) {
		for line := range bytes.Lines(data) {
			var e session.Entry
			if json.Valid(line) && e.UnmarshalJSON(line) == nil && e.ID != "" {
				entries = append(entries, e)
			}
		}
		return entries
	}
	parentOf := func(e session.Entry) string {
		if e.ParentID == nil {
			return ""
		}
		return *e.ParentID
	}
	known := make(map[string]bool)
	lost := make(map[[2]string]bool) // the ids and parents of lines that are gone
	for _, e := range read(data) {
		known[e.ID], lost[[2]string{e.ID, parentOf(e)}], lost[[2]string{"", parentOf(e)}] = true, true, true
	}
	there := read(spoilt)
	seen := make(map[string]int)
	for _, e := range there {
		if seen[e.ID]++; lost[[2]string{e.ID, parentOf(e)}] {
			delete(lost, [2]string{"", parentOf(e)})
		}
	}
	for _, e := range there {
		id := e.ID
		if !known[id] {
			id = ""
		}
		if seen[e.ID] > 1 && e.ParentID != nil && !known[parentOf(e)] || known[parentOf(e)] && !lost[[2]string{id, parentOf(e)}] {
			return true
		}
	}
	return false
}

// hasHeader reports whether the first line of a file can be read as a header.
func (v *victim) hasHeader(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var h session.Header
	return h.UnmarshalJSON(line) == nil
}

// reads reports whether a file has a line of an entry that can be read.
func (v *victim) reads(data []byte, id string) bool {
	for line := range bytes.Lines(data) {
		var e session.Entry
		if json.Valid(line) && e.UnmarshalJSON(line) == nil && e.ID == id {
			return true
		}
	}
	return false
}

// spoil damages a log.
func (v *victim) spoil(data []byte) (spoilt []byte) {
	from, to := 0, len(data)
	if len(v.links) > 1 { // these say that a session is part of a conversation
		from = bytes.IndexByte(data, '\n') + 1
		if record := bytes.Index(data, []byte(session.CustomContinuedTo)); record >= 0 {
			to = bytes.LastIndexByte(data[:record], '\n') + 1
		}
	}
	spoilt, v.harm = chaingen.Spoil(v.rand, data, from, to)
	return spoilt
}

// path returns the path of the conversation.
func (v *victim) path(h *home.Home, leaf string) (path []session.Entry, err error) {
	_, err = h.Entries.Path(v.Context(), home.PathRequest{Session: v.links[0], Leaf: leaf}, func(e session.Entry) error {
		path = append(path, e)
		return nil
	})
	return path, err
}

// check looks at the conversation with every reader.
func (v *victim) check(how string, want map[string]bool, hidden bool) {
	v.Helper()
	h := v.open()
	defer h.Close()
	path, err := v.path(h, "")
	if err != nil && !errors.Is(err, home.ErrIncomplete) {
		v.Fatalf("%s, %s: the path: %v", v.harm, how, err)
	}
	v.has(how+": the path", path, want)
	if hidden && err == nil {
		v.Errorf("%s, %s: the path hides something", v.harm, how)
	}
	now, err := h.Entries.Context(v.Context(), home.ContextRequest{Session: v.links[0]})
	if err != nil {
		v.Fatalf("%s, %s: the context: %v", v.harm, how, err)
	}
	v.has(how+": the context", now.Entries, want)
	if hidden && len(now.Missing) == 0 {
		v.Errorf("%s, %s: the context hides something", v.harm, how)
	}
	if !hidden {
		return
	}
	faults := 0
	_, err = h.Upkeep.Check(v.Context(), home.CheckRequest{}, func(f upkeep.Finding) error {
		if f.Severity == upkeep.Fault {
			faults++
		}
		return nil
	})
	if err != nil || faults == 0 {
		v.Errorf("%s, %s: fsck names %d faults; %v", v.harm, how, faults, err)
	}
}

func (v *victim) has(who string, entries []session.Entry, want map[string]bool) {
	v.Helper()
	got := make(map[string]bool)
	for _, e := range entries {
		got[e.ID] = true
	}
	lacks := 0
	for _, e := range v.whole {
		if want[e.ID] && !got[e.ID] && e.Message != nil {
			lacks++
		}
	}
	if lacks > 0 {
		v.Errorf("%s: %s lacks %d of %d messages that can be read", v.harm, who, lacks, len(want))
	}
}
