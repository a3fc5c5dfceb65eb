package keyed_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// step is something done to a session, and what the history and the summary are
// then.
type step struct {
	name    string
	do      func(m manager)
	history []string
	summary string
}

// long makes a message of several sectors, so that a crash can tear a write.
func long(word string) keyed.Message {
	m := message(word)
	if m.Content != "" {
		m.Content += strings.Repeat(" ", 600) // brief is compared by its words
	}
	return m
}

func longTalk(m manager, words ...string) {
	for _, word := range words {
		m.AddFullMessage(key, long(word))
	}
}

func longHistory(words ...string) []keyed.Message {
	var list []keyed.Message
	for _, word := range words {
		list = append(list, long(word))
	}
	return list
}

var steps = []step{
	{"create", func(m manager) { m.GetOrCreate(key) }, nil, ""},
	{"first", func(m manager) { longTalk(m, "u1") }, []string{"u1"}, ""},
	{"call", func(m manager) { longTalk(m, "+x") }, []string{"u1", "+x"}, ""},
	{"result", func(m manager) { longTalk(m, "=x") }, []string{"u1", "+x", "=x"}, ""},
	{"answer", func(m manager) { longTalk(m, "a1") }, []string{"u1", "+x", "=x", "a1"}, ""},
	{"summarise", func(m manager) { m.SetSummary(key, "one"); m.TruncateHistory(key, 1) }, []string{"a1"}, "one"},
	{"more", func(m manager) { longTalk(m, "u2") }, []string{"a1", "u2"}, "one"},
	{"replace", func(m manager) { m.SetHistory(key, longHistory("s", "u3", "a3", "u4")) }, []string{"s", "u3", "a3", "u4"}, "one"},
	{"go on", func(m manager) { longTalk(m, "a4") }, []string{"s", "u3", "a3", "u4", "a4"}, "one"},
	{"replace with its end", func(m manager) { m.SetHistory(key, longHistory("u4", "a4", "u5", "a5")) }, []string{"u4", "a4", "u5", "a5"}, "one"},
	{"clear", func(m manager) { m.TruncateHistory(key, 0) }, nil, "one"},
	{"again", func(m manager) { longTalk(m, "u6") }, []string{"u6"}, "one"},
}

// shows reports whether a manager shows what a step leaves.
func shows(m manager, s step) bool {
	got := strings.Join(strings.Fields(strings.Join(brief(m.GetHistory(key)), " ")), " ")
	return got == strings.Join(s.history, " ") && m.GetSummary(key) == s.summary
}

func state(m manager) string {
	return fmt.Sprintf("%v, summary %q", strings.Fields(strings.Join(brief(m.GetHistory(key)), " ")), m.GetSummary(key))
}

func storeOn(t testing.TB, fs vfs.FS) store.Store {
	t.Helper()
	st, err := file.Open("/sessions", &file.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// Whatever operation fails, once, the manager shows what it was told, Save says
// so or makes it good, and in the end all of it is on the disk.
func TestOneFault(t *testing.T) {
	t.Parallel()
	for _, kinds := range []vfstest.OpKind{vfstest.OpMutating, vfstest.OpOpen | vfstest.OpRead | vfstest.OpStat | vfstest.OpLock} {
		total := int64(1)
		for n := int64(1); n <= total; n++ {
			disk := vfstest.NewMemory()
			faulty := &vfstest.Faulty{FS: disk}
			st := storeOn(t, faulty) // opening it is the caller's affair
			faulty.Before = vfstest.FailAt(n, kinds, errors.New("a fault"))
			m := manager{keyed.New(&keyed.Options{Store: st}), t}
			for _, s := range steps {
				s.do(m)
				if !shows(m, s) {
					t.Fatalf("fault at %d: after %q the manager shows %s", n, s.name, state(m))
				}
			}
			if err := m.Save(key); err != nil {
				m.save(key)
			}
			m.close()
			total = max(total, faulty.Count(kinds))
			again := open(t, keyed.Options{Store: storeOn(t, disk)})
			if last := steps[len(steps)-1]; !shows(again, last) {
				t.Fatalf("fault at %d: the disk has %s", n, state(again))
			}
		}
		if total < 20 {
			t.Errorf("only %d operations", total)
		}
	}
}

// While the disk is full everything goes on in memory, and Save says why it is
// only there. When there is room again, all of it is written.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for from := range len(steps) {
		disk := vfstest.NewMemory()
		var isFull atomic.Bool
		faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
			if isFull.Load() && op.Kind&(vfstest.OpWrite|vfstest.OpCreate|vfstest.OpMkdir) != 0 {
				return full
			}
			return nil
		}}
		m := manager{keyed.New(&keyed.Options{Store: storeOn(t, faulty), MaxOpen: 1}), t}
		for i, s := range steps {
			isFull.Store(i >= from)
			s.do(m)
			m.GetOrCreate("another") // which would like to take its place
			if !shows(m, s) {
				t.Fatalf("full from %d on: after %q the manager shows %s", from, s.name, state(m))
			}
			if err := m.Save(key); errors.Is(err, full) != (i >= from) {
				t.Fatalf("full from %d on: after %q Save returns %v", from, s.name, err)
			}
		}
		all, err := m.History(key, keyed.All)
		if len(all) == 0 && from > 1 {
			t.Errorf("full from %d on: all messages: %v, %v", from, all, err)
		}
		isFull.Store(false)
		m.save(key)
		m.close()
		again := open(t, keyed.Options{Store: storeOn(t, disk)})
		if !shows(again, steps[len(steps)-1]) {
			t.Fatalf("full from %d on: the disk has %s", from, state(again))
		}
	}
}

// What a reader has got does not change when what was only in memory is written.
func TestReadersWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	var isFull atomic.Bool
	faulty := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if isFull.Load() && op.Kind == vfstest.OpWrite {
			return errors.New("no space left")
		}
		return nil
	}}
	m := manager{keyed.New(&keyed.Options{Store: storeOn(t, faulty)}), t}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				history := brief(m.GetHistory(key))
				sameText(t, "history", history, numbered("u", len(history)))
			}
		}
	})
	for i, word := range numbered("u", 200) {
		isFull.Store(i%5 > 1)
		m.talk(word)
	}
	close(stop)
	wait.Wait()
	isFull.Store(false)
	m.save(key)
	m.sees(numbered("u", 200)...)
	m.close()
}

// Whenever the power fails, what comes back is the state after the last step
// that returned, or after the one that was under way: never something between.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	rng := soak.Rand(t)
	for range soak.N(8) {
		powerCut(t, rng)
	}
}

func powerCut(t *testing.T, rng *rand.Rand) {
	t.Helper()
	disk := vfstest.NewMemory()
	done := -1 // the last step that returned
	cuts := 0
	cut := func(vfstest.Op) error {
		for range 3 {
			cuts++
			after := manager{keyed.New(&keyed.Options{Store: storeOn(t, disk.CrashClone(rng))}), t}
			old := done >= 0 && shows(after, steps[done]) || done < 0 && shows(after, step{})
			if !old && !shows(after, steps[done+1]) {
				t.Errorf("a power cut in %q leaves %s", steps[done+1].name, state(after))
				return nil // not Fatal: we are inside the store, which holds locks
			}
			// Whoever goes on from there loses nothing and gains nothing.
			before := brief(after.GetHistory(key))
			after.talk("next")
			after.sees(append(before, "next")...)
			after.save(key)
			after.close()
		}
		return nil
	}
	m := manager{keyed.New(&keyed.Options{Store: storeOn(t, &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
		if op.Kind.Mutates() {
			return cut(op)
		}
		return nil
	}})}), t}
	for i, s := range steps {
		s.do(m)
		done = i
	}
	m.close()
	if cuts < 60 {
		t.Errorf("only %d power cuts", cuts)
	}
}

// Of a replacement or truncation that was cut short nothing is seen, and the next
// message goes to where the conversation was before. (TestPowerCut meets this only
// by chance.)
func TestReplacementCutShort(t *testing.T) {
	t.Parallel()
	replace := func(m manager) { m.SetHistory(key, messages("s", "u2", "a2")) }
	for _, tt := range []struct {
		name, before, want string
		do                 func(m manager)
	}{
		{"nothing replaced", "", "s u2 a2", replace},
		{"replaced", "u1 a1", "s u2 a2", replace},
		{"a system message replaced", "s0 u1 a1", "s u2 a2", replace},
		{"a call that waits replaced", "s0 u1 +x", "s u2 a2", replace},
		{"cleared", "s0 u1 a1", "", func(m manager) { m.TruncateHistory(key, 0) }},
		{"a call that waits cleared", "u1 +x", "", func(m manager) { m.TruncateHistory(key, 0) }},
		{"an answer kept alone", "u1 a1", "a1", func(m manager) { m.TruncateHistory(key, 1) }},
	} {
		t.Run(tt.name, func(t *testing.T) { cutShort(t, strings.Fields(tt.before), strings.Fields(tt.want), tt.do) })
	}
}

func cutShort(t *testing.T, before, then []string, do func(m manager)) {
	whole := vfstest.NewMemory()
	m := manager{keyed.New(&keyed.Options{Store: storeOn(t, whole)}), t}
	m.GetOrCreate(key)
	m.talk(before...)
	m.close()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	name := "/sessions/" + id + ".jsonl"
	intact := sizeOn(t, whole, name)
	m = manager{keyed.New(&keyed.Options{Store: storeOn(t, whole)}), t}
	do(m)
	m.close()
	end := sizeOn(t, whole, name)
	for size := intact; size <= end; size++ {
		if size%37 != 0 && size < end-2 {
			continue // so many are in every line
		}
		disk := whole.CrashClone(nil, vfstest.LoseNothing)
		truncateOn(t, disk, name, size)
		after := open(t, keyed.Options{Store: storeOn(t, disk)})
		want := before
		if size >= end-1 { // all but the last line end: the line is whole
			want = then
		}
		if size == end-1 {
			after.talk("unext") // which completes the line
			after.sees(append(want, "unext")...)
			continue
		}
		after.sees(want...)
		context, err := after.BuildContext(key, "prompt", "now")
		if waits := len(want) > 0 && want[len(want)-1] == "+x"; err != nil || !waits && len(context) != len(want)+2 {
			t.Fatalf("context %v, %v", brief(context), err)
		}
		after.talk("unext")
		after.sees(append(want, "unext")...)
		open(t, keyed.Options{Store: storeOn(t, disk)}).sees(append(want, "unext")...)
	}
}

// Whichever lines of a change a power cut damages or takes out, nothing of the change is
// seen, and the next message goes to where the conversation was before.
func TestLinesLostFromAChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, before, want string
		do                 func(m manager)
	}{
		{"the first history", "", "u1 a1", func(m manager) { m.SetHistory(key, messages("u1", "a1")) }},
		{"replaced", "u1 a1", "u2 a2", func(m manager) { m.SetHistory(key, messages("u2", "a2")) }},
		{"gone on from its end", "u1 a1 u2", "u2 a2 u3", func(m manager) { m.SetHistory(key, messages("u2", "a2", "u3")) }},
		{"cleared", "s0 u1 a1", "", func(m manager) { m.TruncateHistory(key, 0) }},
		{"an answer kept alone", "u1 a1", "a1", func(m manager) { m.TruncateHistory(key, 1) }},
	} {
		t.Run(tt.name, func(t *testing.T) { loseLines(t, strings.Fields(tt.before), strings.Fields(tt.want), tt.do) })
	}
}

func loseLines(t *testing.T, before, then []string, do func(m manager)) {
	disk := vfstest.NewMemory()
	m := manager{keyed.New(&keyed.Options{Store: storeOn(t, disk)}), t}
	m.GetOrCreate(key)
	m.talk(before...)
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	name := "/sessions/" + id + ".jsonl"
	intact := sizeOn(t, disk, name)
	do(m)
	m.close()
	text := readOn(t, disk, name)
	lines := strings.SplitAfter(strings.TrimSuffix(text[intact:], "\n"), "\n")
	damages := []func(line string) string{
		func(line string) string { return line },
		func(line string) string { return line[:len(line)/2] + "\x00\x00" + line[len(line)/2+2:] },
		func(line string) string { return line[:len(line)*3/4] + "\x00\x00\n" },
		func(line string) string { return "\x00\x00\n" },
		func(string) string { return "" },
	}
	ways := 1
	for range lines {
		ways *= len(damages)
	}
	for way := range ways {
		written, rest, want := text[:intact], way, then
		for _, line := range lines {
			how := rest % len(damages)
			written += damages[how](strings.TrimSuffix(line, "\n") + "\n")
			if rest /= len(damages); how > 0 && !strings.Contains(line, `"type":"leaf"`) { // the others do without it
				want = before
			}
		}
		disk := disk.CrashClone(nil, vfstest.LoseNothing)
		writeOn(t, disk, name, written)
		after := open(t, keyed.Options{Store: storeOn(t, disk)})
		after.sees(want...)
		after.talk("unext")
		after.sees(append(want, "unext")...)
		open(t, keyed.Options{Store: storeOn(t, disk)}).sees(append(want, "unext")...)
		if t.Failed() {
			t.Fatalf("of %q there is %q", text[intact:], written[intact:])
		}
	}
}

func readOn(t testing.TB, fs vfs.FS, name string) string {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, sizeOn(t, fs, name))
	if _, err := f.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeOn(t testing.TB, fs vfs.FS, name, text string) {
	t.Helper()
	truncateOn(t, fs, name, 0)
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func sizeOn(t testing.TB, fs vfs.FS, name string) int64 {
	t.Helper()
	info, err := fs.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func truncateOn(t testing.TB, fs vfs.FS, name string, size int64) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// TestForeseen: what readers see while nothing can be written is what they see once it is
// written.
func TestForeseen(t *testing.T) {
	t.Parallel()
	words := []string{"s1", "u1", "a1", "u2", "a2", "+x", "=x", "+y", "=y", "s2"}
	for seed := range soak.Seeds(t, 25) {
		rng := rand.New(rand.NewPCG(seed, 0))
		some := func(n int) (list []string) {
			for range n {
				list = append(list, words[rng.IntN(len(words))])
			}
			return list
		}
		var full atomic.Bool
		faulty := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
			if full.Load() && op.Kind&(vfstest.OpWrite|vfstest.OpCreate) != 0 {
				return errors.New("no space left")
			}
			return nil
		}}
		m := manager{keyed.New(&keyed.Options{Store: storeOn(t, faulty)}), t}
		var did []string
		for i := range 6 {
			full.Store(i > 2)
			switch what := some(1 + rng.IntN(5)); rng.IntN(4) {
			case 0, 1:
				m.talk(what...)
				did = append(did, fmt.Sprint("talk ", what))
			case 2:
				n := rng.IntN(4)
				m.SetSummary(key, "sum"+what[0])
				m.TruncateHistory(key, n)
				did = append(did, fmt.Sprint("truncate ", n))
			default:
				m.SetHistory(key, longHistory(what...))
				did = append(did, fmt.Sprint("set ", what))
			}
		}
		foreseen := state(m)
		full.Store(false)
		m.save(key)
		if got := state(m); got != foreseen {
			t.Errorf("seed %d: %q: foreseen %s, written %s", seed, did, foreseen, got)
		}
		m.close()
	}
}

// If a part of a change landed before its write failed, and could not be cut off again, the change is
// written once more as a whole. No id is in the log twice, and no message is said twice.
func TestAChangeThatLandedInPart(t *testing.T) {
	t.Parallel()
	landed := 0
	for n := 0; n < 1700; n += 41 {
		disk := vfstest.NewMemory()
		armed, failed := false, 0
		faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
			switch {
			case !armed || !strings.HasSuffix(op.Name, ".jsonl"):
			case op.Kind == vfstest.OpWrite && failed == 0 && op.Size > n:
				failed++
				return &vfstest.ShortWrite{N: n, Err: errors.New("no space")}
			case op.Kind == vfstest.OpTruncate && failed == 1:
				failed++
				return errors.New("no space")
			}
			return nil
		}}
		m := open(t, keyed.Options{Store: storeOn(t, faulty)})
		m.talk("u1", "a1")
		armed = true
		m.SetHistory(key, messages("u2", "a2", "u3"))
		m.sees("u2", "a2", "u3")
		m.talk("u4")
		m.save(key)
		m.close()
		if failed == 2 {
			landed++
		}
		st := storeOn(t, disk)
		after := open(t, keyed.Options{Store: st})
		after.sees("u2", "a2", "u3", "u4")
		after.hasAll("u1", "a1", "u2", "a2", "u3", "u4")
		id, err := session.KeyID(key)
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), st, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		problems, err := s.Problems()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.Kind == session.ProblemDuplicate {
				t.Errorf("after %d bytes: %+v", n, p)
			}
		}
	}
	if landed < 10 {
		t.Errorf("%d writes were cut short", landed)
	}
}

// Messages that another program adds after somebody saw an empty conversation are not dropped, even
// if the truncation is written after them.
func TestTruncatingAnEmptyViewKeepsLaterMessages(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	full := false
	faulty := &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
		if full && op.Kind&(vfstest.OpWrite|vfstest.OpCreate) != 0 {
			return errors.New("no space")
		}
		return nil
	}}
	m := open(t, keyed.Options{Store: storeOn(t, faulty)})
	m.talk("u0")
	m.SetSummary(key, "one")
	m.TruncateHistory(key, 0)
	m.save(key)
	full = true
	if _, err := m.Truncate(key, 0); err == nil { // it is to take the summary away
		t.Fatal("it was written to a full disk")
	}
	other := open(t, keyed.Options{Store: storeOn(t, disk)})
	other.talk("u2")
	other.save(key)
	full = false
	m.save(key)
	m.sees("u2")
	open(t, keyed.Options{Store: storeOn(t, disk)}).sees("u2")
}
