package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// DamagedError means that a backup is damaged. It matches store.ErrCorrupt.
type DamagedError struct {
	Backup  string
	Damaged []Fault
}

func (e *DamagedError) Error() string {
	const most = 5
	var list []string
	for _, d := range e.Damaged[:min(most, len(e.Damaged))] {
		list = append(list, d.Path+": "+d.Why)
	}
	if more := len(e.Damaged) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the backup %s is damaged: %s", e.Backup, strings.Join(list, "; "))
}

// Is makes a DamagedError match store.ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == store.ErrCorrupt }

// noManifest says what a directory without a manifest is.
func noManifest(fsys vfs.FS, dir string) error {
	why := "the directory is not a backup: it has no " + manifestName
	e := &store.Error{Op: "open backup", Path: dir}
	_, err := fsys.Lstat(filepath.Join(dir, objectsName))
	switch {
	case file.IsStore(dir):
		e.Hint = "it is a home, not a backup of one: open it as it is"
	case err == nil:
		why = "its " + manifestName + " is missing, which says which file is which"
		e.Hint = "back the home up again; if the home is lost, objects still has the content of every file"
	default:
		e.Hint = "name the directory of a backup"
	}
	e.Err = &refusal{errors.New(why), store.ErrNotExist}
	return e
}

// VerifyRequest says which backup to check.
type VerifyRequest struct {
	Path     string
	Progress func(done, total int64) // may be nil
	FS       vfs.FS                  // default: the operating system's
}

// Contents is what a backup holds.
type Contents struct {
	Created  time.Time `json:"created"`
	Sessions int       `json:"sessions"`
	Files    int       `json:"files"`
	Size     int64     `json:"size"`
	// Damaged are the files that are not what they were when the backup was made.
	Damaged []Fault `json:"damaged"`
	// Unreadable are the files with lines that cannot be read, and Missing is the content
	// that sessions refer to and the backup lacks. Both were already so in the home. If the list
	// of files is damaged, this is not known, and both are empty.
	Unreadable []Unreadable `json:"unreadable"`
	Missing    []store.Ref  `json:"missing"`
}

func (c *Contents) count(below string, size int64) {
	c.Files++
	c.Size += size
	if file.KeptLog(below) != "" {
		c.Sessions++
	}
}

// Unreadable counts the lines of a file that cannot be read.
type Unreadable struct {
	Path  string `json:"path"`
	Lines int    `json:"lines"`
}

// Verify reads all of a backup and compares it with its manifest. Damage is in the
// result, not in the error.
func Verify(ctx context.Context, r VerifyRequest) (*Contents, error) {
	if r.FS == nil {
		r.FS = vfs.OS{}
	}
	src, err := openSource(r.FS, r.Path)
	if err != nil {
		return nil, err
	}
	v := newReading(src, r.Progress)
	texts := make(map[string]*text)
	err = v.run(ctx, func(e *entry, r io.Reader) error {
		texts[e.Path] = textOf(e.Path, r, nil)
		return nil
	})
	if err = errors.Join(err, src.close()); err != nil {
		return nil, err
	}
	if _, err := src.list(); err == nil {
		v.noteFaultsOfHome(texts)
	}
	return &v.Contents, nil
}

// text describes the lines of a file.
type text struct {
	good, bad int  // lines that can be read, and those that cannot
	torn      bool // there is one without an end
	secret    bool // there may be something that was redacted
	unseen    bool // not all of it was looked at
	names     map[store.Ref]bool
	head      string // the header, if it can be read
}

// isDamaged reports whether a log that is not being written to cannot be like that.
func (t *text) isDamaged() bool { return t.good == 0 || t.bad > 0 || t.torn }

// textOf reads the lines of a file. A guard, which may be nil, looks in them for redacted secrets.
// What it cannot look at as a whole counts as secret.
func textOf(below string, r io.Reader, guard *clean.Guard) *text {
	t := &text{names: make(map[store.Ref]bool)}
	err := file.KeptLines(below, r, func(line []byte, whole bool) error {
		line = bytes.TrimSpace(line)
		switch {
		case !whole:
			t.torn = true
		case len(line) > 0 && !rawjson.Valid(line):
			t.bad++
		case len(line) > 0:
			t.good++
			if h, ok := rawjson.ScanHead(line); ok && t.head == "" && string(h.Type) == string(session.TypeSession) {
				t.head = string(line)
			}
		}
		has, err := guard.Has(line)
		t.secret = t.secret || has || err != nil
		eachBlob(line, func(ref store.Ref) { t.names[ref] = true })
		return nil
	})
	switch {
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrTooLarge):
		t.bad++ // an archive of which a part cannot be unpacked
	case err != nil:
		t.unseen = true
	}
	t.secret = t.secret || guard != nil && (t.unseen || t.isDamaged())
	return t
}

// noteFaultsOfHome notes faults that are older than the backup: in files that are as they
// were then, lines that cannot be read, and names of blobs that are not there.
func (v *reading) noteFaultsOfHome(texts map[string]*text) {
	for _, d := range v.Damaged {
		delete(texts, d.Path)
	}
	lost := make(map[store.Ref]bool)
	for _, below := range slices.Sorted(maps.Keys(texts)) {
		if bad := texts[below].bad; bad > 0 {
			v.Unreadable = append(v.Unreadable, Unreadable{below, bad})
		}
		maps.Copy(lost, texts[below].names)
	}
	m, _ := v.src.list()
	for _, e := range m.files {
		// A blob that is not what its name says was damaged in the home.
		if room, _ := file.IsKept(e.Path); room == file.AreaBlob && e.SHA256 == path.Base(e.Path) {
			delete(lost, store.Ref("sha256:"+e.SHA256))
		}
	}
	v.Missing = slices.AppendSeq(v.Missing, maps.Keys(lost))
	slices.Sort(v.Missing)
}

// eachBlob calls each with the blobs that a line refers to, as our writers write it. A
// digest that a message mentions is not a reference.
func eachBlob(line []byte, each func(store.Ref)) {
	member := []byte(`"blob":"`)
	for {
		_, after, ok := bytes.Cut(line, member)
		if !ok {
			return
		}
		value, _, _ := bytes.Cut(after, []byte(`"`))
		if ref := store.Ref(value); len(value) < 100 {
			if _, ok := ref.Hex(); ok {
				each(ref)
			}
		}
		line = after
	}
}

// reading reads a whole backup, and collects what it holds and what is wrong with it.
type reading struct {
	Contents
	src      source
	progress func(done, total int64)
}

func newReading(src source, progress func(done, total int64)) *reading {
	return &reading{src: src, progress: progress, Contents: Contents{Damaged: []Fault{}, Unreadable: []Unreadable{}, Missing: []store.Ref{}}}
}

// run calls use with every file of the backup. What use leaves unread is read after it. An error
// of use ends the run.
func (v *reading) run(ctx context.Context, use func(e *entry, r io.Reader) error) error {
	m, err := v.src.list()
	if _, other := errors.AsType[*store.Error](err); other {
		return err // it is of a later version
	}
	if err != nil {
		v.Damaged = append(v.Damaged, Fault{Path: manifestName, Why: err.Error()})
	}
	if m == nil {
		m = &manifest{}
	}
	v.Created = m.created
	total, done := m.size(), int64(0)
	for i := range m.files {
		e := &m.files[i]
		if v.progress != nil && total > 0 {
			v.progress(done, total)
		}
		size, wrong, err := v.one(ctx, e, use)
		if err != nil {
			return err
		}
		if wrong != nil {
			v.Damaged = append(v.Damaged, Fault{e.Path, wrong.Error(), file.KeptLog(e.Path), isLost(e.Path, size)})
		}
		v.count(e.Path, e.Size)
		done += e.Size
	}
	v.Damaged = append(v.Damaged, v.src.rest()...)
	slices.SortStableFunc(v.Damaged, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return ctx.Err()
}

// one reads a file, and returns how much of it there is and what is wrong with it.
func (v *reading) one(ctx context.Context, e *entry, use func(e *entry, r io.Reader) error) (size int64, wrong, err error) {
	r, err := v.src.open(e)
	if err != nil {
		return 0, err, ctx.Err()
	}
	sum := sha256.New()
	from := &reader{ctx: ctx, at: r, sum: sum}
	if err := use(e, from); err != nil {
		return from.n, nil, err
	}
	if from.failed == nil {
		_, _ = io.Copy(io.Discard, from) // from keeps the error
	}
	switch {
	case from.failed != nil:
		wrong = from.failed
	case from.n != e.Size:
		wrong = fmt.Errorf("its size is %d and should be %d", from.n, e.Size)
	case hex.EncodeToString(sum.Sum(nil)) != e.SHA256:
		wrong = errors.New("its content has changed")
	}
	return from.n, wrong, ctx.Err()
}

// isLost reports whether no part of a damaged file is usable. In a session, or a copy of
// one, most lines are good, and readers skip the others.
func isLost(below string, size int64) bool {
	switch room, _ := file.IsKept(below); room {
	case file.AreaLog, file.AreaArchive, file.AreaTrash, file.AreaQuarantine:
		return size == 0
	}
	return true
}
