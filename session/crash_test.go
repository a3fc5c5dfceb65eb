package session_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const (
	crashDir     = "/sessions"
	crashPoints  = 2000 // at least so many power cuts, all different
	crashWorkers = 8
)

// TestPowerCuts cuts the power before every operation that changes the disk, of
// random work on sessions, and looks at what is left. Some worlds go on from
// what a cut left, and some from what a killed process left in a page cache
// that was never synced, so that cuts also meet repairs.
func TestPowerCuts(t *testing.T) {
	want := int64(soak.N(crashPoints))
	var points, kills, cuts atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for worker := range crashWorkers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				rng := soak.Rand(t)
				for done, world := int64(0), 0; done*crashWorkers < want && !t.Failed(); world++ {
					w := newCrashWorld(rng, nil)
					w.live(45)
					for _, fault := range w.faults[:min(len(w.faults), 5)] {
						t.Errorf("world %d: %s", world, fault)
					}
					done += w.points
					points.Add(w.points)
					kills.Add(w.kills)
					cuts.Add(w.cuts)
				}
			})
		}
	})
	t.Logf("%d crash points; work went on after %d kills and %d cuts", points.Load(), kills.Load(), cuts.Load())
	if points.Load() < want && !t.Failed() {
		t.Errorf("%d crash points, want at least %d", points.Load(), want)
	}
}

// TestPowerCutsAreNoticed shows that the check above can fail: a store that
// leaves out one kind of sync loses something, and the check says so.
func TestPowerCutsAreNoticed(t *testing.T) {
	for name, forget := range map[string]func(*forgetful){
		"no file sync":              func(f *forgetful) { f.files = func(string) bool { return true } },
		"no directory sync":         func(f *forgetful) { f.dirs = true },
		"rename without file sync":  func(f *forgetful) { f.files = isCrashTmp },
		"append without file sync":  func(f *forgetful) { f.files = func(name string) bool { return !isCrashTmp(name) } },
		"blob directory not synced": func(f *forgetful) { f.onlyDir = "blobs" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var points int64
			faults := 0
			for seed := uint64(0); seed < 4; seed++ {
				w := newCrashWorld(rand.New(rand.NewPCG(99, seed)), func(inner vfs.FS) vfs.FS {
					f := &forgetful{FS: inner}
					forget(f)
					return f
				})
				w.live(40)
				points += w.points
				faults += len(w.faults)
			}
			t.Logf("%d faults noticed at %d crash points", faults, points)
			if faults == 0 {
				t.Error("the check noticed nothing")
			}
		})
	}
}

func isCrashTmp(name string) bool {
	return strings.Contains(filepath.ToSlash(name), "/.coppice/tmp/")
}

// forgetful is a file system on which some syncs do nothing.
type forgetful struct {
	vfs.FS
	files   func(name string) bool // whose Sync does nothing
	dirs    bool                   // SyncDir does nothing
	onlyDir string                 // SyncDir does nothing in paths with this in them
}

func (f *forgetful) SyncDir(name string) error {
	if f.dirs || f.onlyDir != "" && strings.Contains(name, f.onlyDir) {
		return nil
	}
	return f.FS.SyncDir(name)
}

func (f *forgetful) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	inner, err := f.FS.OpenFile(name, flag, perm)
	if err != nil || f.files == nil || !f.files(name) {
		return inner, err
	}
	return forgetfulFile{inner}, nil
}

type forgetfulFile struct{ vfs.File }

func (forgetfulFile) Sync() error { return nil }

// crashPlace is a set of places where a log may be.
type crashPlace uint8

const (
	crashInStore crashPlace = 1 << iota
	crashInTrash
	crashNowhere
)

// crashLog is what is known of a session's log. The lines that were acknowledged
// must survive; those that are in it beyond them may.
type crashLog struct {
	acked, lines []string
	place        crashPlace
}

// crashWorld is random work on sessions on a disk that can lose power.
type crashWorld struct {
	rng   *rand.Rand
	wrap  func(vfs.FS) vfs.FS // makes the disk forgetful, or nil
	mem   *vfstest.Memory
	store *file.Store
	open  map[string]*session.Session
	logs  map[string]crashLog
	heads map[string]crashHead // of lines, so that each is parsed once
	ids   int

	op                  string       // what is being done
	images              []crashImage // the disk as cuts during it would have left it
	killIn              int          // so many operations of the disk until the process dies
	dead                bool         // it has died: no operation of the disk happens any more
	faults              []string     // what a check found
	points, kills, cuts int64
}

// crashImage is a disk after a power cut.
type crashImage struct {
	disk *vfstest.Memory
	when vfstest.Op
}

// crashHead is what the test reads of a line.
type crashHead struct {
	Type   session.EntryType `json:"type"`
	ID     string            `json:"id"`
	Parent *string           `json:"parent_id"`

	whole bool // the line is an entry or a header, not what a crash left of one
	head  bool // if not whole: its beginning says which entry it was
	blobs []store.Ref
}

var (
	errCrashKilled = errors.New("the process was killed")
	crashBlobRef   = regexp.MustCompile(`"blob":"(sha256:[0-9a-f]{64})"`)
	crashBeginning = regexp.MustCompile(`^\{"type":"[a-z_]+","id":"[^"\x00]+","parent_id":(null|"[^"\x00]*"),`)
)

func newCrashWorld(rng *rand.Rand, wrap func(vfs.FS) vfs.FS) *crashWorld {
	w := &crashWorld{
		rng: rng, wrap: wrap, mem: vfstest.NewMemory(),
		logs: make(map[string]crashLog), heads: make(map[string]crashHead),
	}
	w.start()
	return w
}

// start is the beginning of a process.
func (w *crashWorld) start() {
	w.dead, w.killIn = false, 0
	disk := vfs.FS(&vfstest.Faulty{FS: w.mem, Before: w.before})
	if w.wrap != nil {
		disk = w.wrap(disk)
	}
	w.store = openCrashStore(disk)
	w.open = make(map[string]*session.Session)
}

func openCrashStore(disk vfs.FS) *file.Store {
	st, err := file.Open(crashDir, &file.Options{FS: disk})
	if err != nil {
		panic(err) // nothing is read or written yet that could fail
	}
	return st
}

// before keeps an image of the disk ahead of each operation that changes it.
func (w *crashWorld) before(op vfstest.Op) error {
	if w.dead {
		return errCrashKilled
	}
	if !op.Kind.Mutates() {
		return nil
	}
	loss := []vfstest.Loss{vfstest.LoseSome, vfstest.LoseSome, vfstest.LoseSome, vfstest.LoseAll, vfstest.LoseNothing}[w.rng.IntN(5)]
	w.images = append(w.images, crashImage{w.mem.CrashClone(w.rng, loss), op})
	if w.killIn > 0 {
		w.killIn--
		w.dead = w.killIn == 0
	}
	if w.dead {
		return errCrashKilled
	}
	return nil
}

// options gives sessions small blobs, and ids and times that a seed repeats.
func (w *crashWorld) options() *session.Options {
	return &session.Options{
		BlobThreshold: 256,
		NewID: func(session.EntryType) string {
			w.ids++
			return fmt.Sprintf("id-%06d", w.ids)
		},
		Now: func() time.Time { return time.Unix(1_700_000_000+int64(w.ids), 0) },
	}
}

// live does some work and checks what cuts during it would have left.
func (w *crashWorld) live(steps int) {
	for range steps {
		w.step()
		if len(w.faults) > 20 {
			return
		}
	}
	w.store.Close()
}

func (w *crashWorld) step() {
	before := maps.Clone(w.logs)
	w.images = nil
	if w.rng.IntN(8) == 0 {
		w.killIn = 1 + w.rng.IntN(10)
	}
	touched, err := w.act()
	w.killIn = 0
	killed := w.dead
	if killed {
		w.kills++
		w.store.Close() // releases the locks, as the end of the process does; writes nothing
		w.start()
	} else if err != nil && !crashMayRefuse(err) {
		w.fault(nil, "%v", err)
	}
	w.observe(before, touched, err != nil || killed)
	next := w.pickImage()
	for i := range w.images {
		w.points++
		w.check(&w.images[i], before)
	}
	if next != nil {
		w.goOn(next)
	}
}

// crashMayRefuse reports whether a random operation may end so: there was
// nothing to undo, no legal cut, or a repair completed a line.
func crashMayRefuse(err error) bool {
	return errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotExist) || errors.Is(err, store.ErrConflict)
}

func (w *crashWorld) fault(image *crashImage, format string, args ...any) {
	where := w.op
	if image != nil {
		where = fmt.Sprintf("%s, cut before %v of %s", w.op, image.when.Kind, filepath.Base(image.when.Name))
	}
	w.faults = append(w.faults, where+": "+fmt.Sprintf(format, args...))
}

// observe learns what an operation did. Only what it acknowledged is promised.
func (w *crashWorld) observe(before map[string]crashLog, touched string, failed bool) {
	st := openCrashStore(w.mem)
	defer st.Close()
	for name, now := range w.look(st) {
		was, known := before[name]
		switch {
		case !known && failed:
			now.place |= crashNowhere
		case !known:
		case failed || name != touched:
			now.acked, now.place = was.acked, was.place|now.place
			if name != touched {
				now.place = was.place
			}
		case len(now.lines) == len(was.lines) && now.place&was.place != 0:
			now.acked, now.place = was.acked, was.place // it found nothing to do
		case now.place == crashInTrash || was.place == crashInTrash:
			now.acked = was.acked // moving a log is no promise about its end
		}
		w.logs[name] = now
	}
}

// look reads all logs, those in the trash too.
func (w *crashWorld) look(st *file.Store) map[string]crashLog {
	logs := make(map[string]crashLog)
	for stat, err := range st.List(context.Background()) {
		if err != nil {
			w.fault(nil, "list: %v", err)
			break
		}
		lines, err := crashLines(st, stat.Name)
		if err != nil {
			w.fault(nil, "read: %v", err)
		}
		logs[stat.Name] = crashLog{lines, lines, crashInStore}
	}
	trash, _ := st.Trash().List(context.Background())
	for _, item := range trash {
		if _, restored := logs[item.Name]; !restored {
			was := w.logs[item.Name]
			logs[item.Name] = crashLog{was.acked, was.lines, crashInTrash}
		}
	}
	return logs
}

func crashLines(st *file.Store, name string) ([]string, error) {
	log, err := st.Open(context.Background(), name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var lines []string
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line.Data))
	}
	return lines, nil
}

// pickImage sometimes returns a copy of an image to go on from.
func (w *crashWorld) pickImage() *vfstest.Memory {
	if len(w.images) == 0 || w.rng.IntN(12) > 0 {
		return nil
	}
	return w.images[w.rng.IntN(len(w.images))].disk.CrashClone(nil, vfstest.LoseNothing)
}

// goOn puts the world onto a disk that a cut left. All that is there is durable.
func (w *crashWorld) goOn(disk *vfstest.Memory) {
	w.cuts++
	w.dead = true // the old process must not write any more
	w.store.Close()
	w.mem = disk
	w.start()
	st := openCrashStore(disk)
	defer st.Close()
	w.logs = w.look(st)
}

// check looks at a disk after a cut.
func (w *crashWorld) check(image *crashImage, before map[string]crashLog) {
	st := openCrashStore(image.disk)
	defer st.Close()
	present := make(map[string]bool)
	for stat, err := range st.List(context.Background()) {
		if err != nil {
			w.fault(image, "list: %v", err)
			return
		}
		if _, known := w.logs[stat.Name]; !known {
			w.fault(image, "a log %q that nobody made", stat.Name)
		}
		present[stat.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.logs)) {
		now := w.logs[name]
		was, known := before[name]
		if !known {
			was = crashLog{acked: now.acked, place: crashNowhere}
		}
		touched := len(was.lines) != len(now.lines) || was.place != now.place
		now.acked, now.place = was.acked, was.place|now.place
		if w.checkPlace(image, st, name, present[name], now.place) {
			w.checkLog(image, st, name, now, touched || w.rng.IntN(5) == 0)
		}
	}
}

// checkPlace makes sure that a log is where it may be, and reports whether there
// is anything of it to check.
func (w *crashWorld) checkPlace(image *crashImage, st *file.Store, name string, present bool, may crashPlace) bool {
	if present {
		if may&crashInStore == 0 {
			w.fault(image, "%s is in the store again", name)
		}
		return true
	}
	trash, err := st.Trash().List(context.Background())
	if err != nil {
		w.fault(image, "trash: %v", err)
	}
	for _, item := range trash {
		if item.Name == name && may&crashInTrash != 0 {
			if err := st.Trash().Restore(context.Background(), item.ID); err != nil {
				w.fault(image, "restore %s: %v", name, err)
				return false
			}
			return true
		}
	}
	if may&crashNowhere == 0 {
		w.fault(image, "%s is lost", name)
	}
	return false
}

// checkLog makes sure that a log has the lines it must have and, if it is to be
// thorough, that they still are a session.
func (w *crashWorld) checkLog(image *crashImage, st *file.Store, name string, want crashLog, thorough bool) {
	lines, err := crashLines(st, name)
	if err != nil {
		w.fault(image, "read %s: %v", name, err)
		return
	}
	if !w.checkLines(image, name, lines, want) {
		return
	}
	w.checkBlobs(image, st, name, want.acked)
	if thorough {
		w.checkSession(image, st, name, lines, want.lines)
	}
}

// checkLines makes sure that all acknowledged lines are there, and beyond them
// only such as were written, or what was torn of them.
func (w *crashWorld) checkLines(image *crashImage, name string, lines []string, want crashLog) bool {
	if n := len(want.acked); crashCommon(lines, want.acked) < n {
		w.fault(image, "%s: of %d acknowledged lines %d are left", name, n, crashCommon(lines, want.acked))
		return false
	}
	rest := want.lines[len(want.acked):]
	for _, line := range lines[len(want.acked):] {
		at := slices.Index(rest, line)
		switch {
		case at >= 0:
			rest = rest[at+1:]
		case !strings.Contains(line, "\x00") || len(rest) == 0:
			w.fault(image, "%s: a line that nobody wrote: %.80q", name, line)
			return false
		}
	}
	return true
}

// crashCommon returns how many of the acknowledged lines are left. The last may have grown: if a
// cut lost its newline, the next cut can lose that of the line after it, too.
func crashCommon(lines, acked []string) int {
	n := 0
	for n < min(len(lines), len(acked)) && lines[n] == acked[n] {
		n++
	}
	if last := len(acked) - 1; n == last && len(lines) == len(acked) && strings.HasSuffix(acked[n], "\x00") && strings.HasPrefix(lines[n], acked[n]) {
		n++
	}
	return n
}

func (w *crashWorld) checkBlobs(image *crashImage, st *file.Store, name string, acked []string) {
	for _, line := range acked {
		for _, ref := range w.head(line).blobs {
			if _, err := st.Blobs().Get(context.Background(), ref); err != nil {
				w.fault(image, "%s: %v", name, err)
			}
		}
	}
}

// head returns what a line says.
func (w *crashWorld) head(line string) crashHead {
	h, ok := w.heads[line]
	if ok {
		return h
	}
	h.whole = json.Unmarshal([]byte(line), &h) == nil
	if begin := crashBeginning.FindString(line); begin != "" && !h.whole {
		h.head = json.Unmarshal([]byte(begin[:len(begin)-1]+"}"), &h) == nil
	}
	for _, match := range crashBlobRef.FindAllStringSubmatch(line, -1) {
		h.blobs = append(h.blobs, store.Ref(match[1]))
	}
	w.heads[line] = h
	return h
}

// checkSession makes sure that the session reads as its lines say, that its leaf
// is where the last of them puts it, and that it can be continued.
func (w *crashWorld) checkSession(image *crashImage, st *file.Store, name string, lines, written []string) {
	s, err := session.Open(context.Background(), st, name, w.options())
	if err != nil {
		w.fault(image, "open %s: %v", name, err)
		return
	}
	defer s.Close()
	if !w.checkEntries(image, s, lines) {
		return
	}
	parent, id, err := w.appendAfter(s)
	if err != nil {
		w.fault(image, "append to %s: %v", name, err)
		return
	}
	st2 := openCrashStore(image.disk.CrashClone(nil, vfstest.LoseAll))
	defer st2.Close()
	after, err := crashLines(st2, name)
	if err != nil || len(after) == 0 {
		w.fault(image, "read %s again: %v", name, err)
		return
	}
	last := w.head(after[len(after)-1])
	delete(w.heads, after[len(after)-1]) // another check may get the same id
	if last.ID != id || crashText(last.Parent) != parent {
		w.fault(image, "%s: the entry %s under %q reads back as %s under %q", name, id, parent, last.ID, crashText(last.Parent))
	}
	rest := after[:len(after)-1]
	completed := len(rest) == len(lines)+1 && slices.Contains(written, rest[len(lines)])
	if !slices.Equal(rest, lines) && !(completed && slices.Equal(rest[:len(lines)], lines)) {
		w.fault(image, "%s: appending changed the %d lines before, now %d", name, len(lines), len(rest))
	}
}

// appendAfter appends a message and returns the leaf it was put under. No crash
// makes the first append after it fail.
func (w *crashWorld) appendAfter(s *session.Session) (parent, id string, err error) {
	ids := w.ids
	defer func() { w.ids = ids }() // what checks do is not part of the work
	parent = s.LeafID()
	id, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("after the cut")})
	return parent, id, err
}

func (w *crashWorld) checkEntries(image *crashImage, s *session.Session, lines []string) bool {
	leaves := []string{""} // the last whole entry's, and those of torn entries after it
	var want []crashHead
	for _, line := range lines {
		h := w.head(line)
		if h.Type == session.TypeSession || !h.whole && !h.head {
			continue
		}
		if h.whole {
			leaves = nil
			want = append(want, h)
		}
		if h.Type == session.TypeLeaf {
			h.ID = crashText(h.Parent)
		}
		leaves = append(leaves, h.ID)
	}
	if at := s.LeafID(); !slices.Contains(leaves, at) {
		w.fault(image, "%s: the leaf is %q, want one of %q", s.ID(), at, leaves)
		return false
	}
	for e, err := range s.Entries() {
		if err != nil {
			w.fault(image, "entries of %s: %v", s.ID(), err)
			return false
		}
		if e.Type == session.TypeGap {
			continue // stands for what was torn
		}
		if len(want) == 0 || e.ID != want[0].ID || e.Type != want[0].Type || crashText(e.ParentID) != crashText(want[0].Parent) {
			w.fault(image, "%s: entry %s (%s) does not read as its line", s.ID(), e.ID, e.Type)
			return false
		}
		want = want[1:]
	}
	if len(want) > 0 {
		w.fault(image, "%s: the last %d entries are not read", s.ID(), len(want))
	}
	return len(want) == 0
}

func crashText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// act does one random thing, and returns the log it was done to.
func (w *crashWorld) act() (name string, err error) {
	names := w.named(crashInStore)
	if len(names) == 0 || len(w.logs) < 3 && w.rng.IntN(8) == 0 {
		w.op = "create"
		s, err := session.Create(context.Background(), w.store, session.Header{}, w.options())
		if err == nil {
			w.open[s.ID()] = s
		}
		return "", err
	}
	name = names[w.rng.IntN(len(names))]
	if w.rng.IntN(6) == 0 {
		return w.house(name)
	}
	s, err := w.session(name)
	if err != nil {
		return name, err
	}
	return name, w.converse(s)
}

// named returns the logs that are in a place for certain, sorted.
func (w *crashWorld) named(place crashPlace) []string {
	var names []string
	for name, log := range w.logs {
		if log.place&place != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *crashWorld) session(name string) (*session.Session, error) {
	if s := w.open[name]; s != nil {
		return s, nil
	}
	w.op = "open"
	s, err := session.Open(context.Background(), w.store, name, w.options())
	if err == nil {
		w.open[name] = s
	}
	return s, err
}

// house does something to a log as a whole.
func (w *crashWorld) house(name string) (string, error) {
	ctx := context.Background()
	switch w.rng.IntN(9) {
	case 8:
		return "", w.collect()
	case 0, 1:
		w.op = "archive " + name
		return name, w.store.Archive(ctx, name)
	case 2:
		w.op = "unarchive " + name
		return name, w.store.Unarchive(ctx, name)
	case 3:
		return name, w.remove(name)
	case 4:
		return w.restore(name)
	case 5:
		w.op = "close " + name
		return name, w.close(name)
	case 6:
		w.op = "close the store"
		err := w.store.Close()
		w.start()
		return "", err
	}
	if len(w.logs) > 5 {
		return name, nil
	}
	s, err := w.session(name)
	if err != nil {
		return name, err
	}
	return "", w.fork(s)
}

// collect deletes the blobs that nothing names: those of appends that were cut
// short, and one more.
func (w *crashWorld) collect() error {
	w.op = "collect"
	ctx := context.Background()
	if _, err := w.store.Blobs().Put(ctx, fmt.Append(nil, "litter ", w.rng.IntN(3))); err != nil {
		return err
	}
	var refs []store.Ref
	for ref, err := range w.store.Blobs().All(ctx) {
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	removal, err := w.store.Blobs().Collect(ctx, refs...)
	if err == nil && len(removal.Deleted) == 0 {
		err = errors.New("nothing was deleted")
	}
	return err
}

func (w *crashWorld) fork(s *session.Session) error {
	if w.rng.IntN(2) == 0 {
		w.op = "branched session of " + s.ID()
		_, err := s.CreateBranchedSession(s.LeafID())
		return err
	}
	w.op = "fork " + s.ID()
	forked, err := s.Fork(context.Background(), w.store, &session.ForkOptions{Options: w.options()})
	if err == nil {
		w.open[forked.ID()] = forked
	}
	return err
}

func (w *crashWorld) close(name string) error {
	s := w.open[name]
	if s == nil {
		return nil
	}
	delete(w.open, name)
	return s.Close()
}

func (w *crashWorld) remove(name string) error {
	if err := w.close(name); err != nil {
		return err
	}
	w.op = "remove " + name
	return w.store.Remove(context.Background(), name)
}

func (w *crashWorld) restore(name string) (string, error) {
	trash, err := w.store.Trash().List(context.Background())
	if err != nil || len(trash) == 0 {
		return name, err
	}
	item := trash[w.rng.IntN(len(trash))]
	w.op = "restore " + item.Name
	return item.Name, w.store.Trash().Restore(context.Background(), item.ID)
}

// converse appends something to a session.
func (w *crashWorld) converse(s *session.Session) error {
	ids := w.entries(s.ID())
	choice := w.rng.IntN(16)
	if len(ids) == 0 {
		choice = w.rng.IntN(6)
	}
	pick := func() string { return ids[w.rng.IntN(len(ids))] }
	var err error
	switch choice {
	case 0, 1:
		w.op = "append to " + s.ID()
		_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(w.prose(1600))})
	case 2, 3:
		w.op = "append a batch to " + s.ID()
		_, err = s.AppendAll(w.batch()...)
	case 4, 5:
		w.op = "append blobs to " + s.ID()
		_, err = s.AppendAll(w.toolTurn()...)
	case 6, 7:
		w.op = "branch in " + s.ID()
		err = s.Branch(pick())
	case 8:
		w.op = "branch with summary in " + s.ID()
		_, err = s.BranchWithSummary(pick(), w.prose(600))
	case 9:
		w.op = "reset the leaf of " + s.ID()
		err = s.ResetLeaf()
	case 10:
		w.op = "label in " + s.ID()
		_, err = s.SetLabel(pick(), "here")
	case 11, 12:
		err = w.compact(s)
	case 13:
		w.op = "undo in " + s.ID()
		_, err = s.Undo()
	case 14:
		w.op = "merge in " + s.ID()
		_, err = s.AppendEntry(session.Merge(pick(), w.prose(300)))
	case 15:
		w.op = "edit the context of " + s.ID()
		_, err = s.AppendEntry(session.ContextEdit(pick(), session.ToolResult("t", w.prose(500), false)))
	}
	return err
}

func (w *crashWorld) compact(s *session.Session) error {
	w.op = "compact " + s.ID()
	plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 3, Count: func(session.Entry) int { return 1 }})
	if err != nil {
		return err
	}
	_, err = s.AppendCompaction(w.prose(400), plan.FirstKept, plan.TokensBefore)
	return err
}

// entries returns the ids of a session's entries that can be branched to.
func (w *crashWorld) entries(name string) []string {
	var ids []string
	for _, line := range w.logs[name].lines {
		if h := w.head(line); h.whole && h.Type != session.TypeSession && h.Type != session.TypeLeaf {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// prose is text of some length up to max, different each time.
func (w *crashWorld) prose(max int) string {
	w.ids++
	text := fmt.Sprintf("%d and more ", w.ids)
	return strings.Repeat(text, 1+w.rng.IntN(max)/len(text))
}

func (w *crashWorld) batch() []session.Entry {
	entries := make([]session.Entry, 2+w.rng.IntN(3))
	for i := range entries {
		entries[i] = session.Message(session.RoleUser, session.Text(w.prose(900)))
	}
	return entries
}

// toolTurn is a call, and an answer with an image, large enough for blobs. Some
// content comes again and again, as it does in life.
func (w *crashWorld) toolTurn() []session.Entry {
	call := fmt.Sprint("call-", w.ids)
	image := bytes.Repeat([]byte{byte(w.rng.IntN(4))}, 400)
	return []session.Entry{
		session.Message(session.RoleAssistant, session.ToolUse(call, "look", map[string]any{"at": call})),
		session.Message(session.RoleTool, session.ToolResult(call, strings.Repeat("found ", 50+w.rng.IntN(4)), false)),
		session.Message(session.RoleUser, session.Image("image/png", base64.StdEncoding.EncodeToString(image))),
	}
}
