package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Damage is what is wrong with a file of a backup.
type Damage struct {
	Path    string
	Why     string
	Session string // whose file it is, or ""
	Lost    bool   // a restore leaves it out: no part of it is usable
}

// DamagedError means that a backup is damaged. It matches store.ErrCorrupt.
type DamagedError struct {
	Backup string
	Damage []Damage
}

func (e *DamagedError) Error() string {
	const most = 5
	var list []string
	for _, d := range e.Damage[:min(most, len(e.Damage))] {
		list = append(list, d.Path+": "+d.Why)
	}
	if more := len(e.Damage) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("the backup %s is damaged: %s", e.Backup, strings.Join(list, "; "))
}

// Is makes a DamagedError match store.ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == store.ErrCorrupt }

// source reads a backup.
type source interface {
	// each calls do with every file of the backup. If a file cannot be read, its reader
	// returns the error. An error of each itself means that nothing more can be read.
	each(ctx context.Context, do func(below string, r io.Reader) error) error
	// manifest and odd are called after each. odd returns files that should not be
	// there at all.
	manifest() (*manifest, error)
	odd() []Damage
	// size is about how much there is to read, and at how much of it was read.
	size() int64
	at() int64
	close() error
}

func openSource(fsys vfs.FS, path string) (source, error) {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &store.Error{
			Op: "open backup", Path: path, Kind: store.ErrNotExist,
			Hint: "name the directory, or the " + Ending + " file, of a backup",
		}
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openDirSource(fsys, path)
	}
	return openTarSource(fsys, path)
}

// dirSource is a backup in a directory.
type dirSource struct {
	fs   vfs.FS
	dir  string
	lock vfs.File // nil if it cannot be locked, as on a medium that cannot be written to
	m    *manifest
	err  error
	done int64
}

func openDirSource(fsys vfs.FS, dir string) (*dirSource, error) {
	d := &dirSource{fs: fsys, dir: dir}
	if lock, err := fsys.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY, 0); err == nil {
		ok, err := lock.TryRLock()
		if err == nil && !ok {
			return nil, errors.Join(locked(dir), lock.Close())
		}
		d.lock = lock
	}
	d.m, d.err = readManifestIn(fsys, dir)
	if errors.Is(d.err, fs.ErrNotExist) {
		return nil, errors.Join(noManifest(fsys, dir), d.close())
	}
	return d, nil
}

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

func (d *dirSource) each(ctx context.Context, do func(string, io.Reader) error) error {
	if d.m == nil {
		return nil
	}
	for _, e := range d.m.files {
		if err := d.one(e, do); err != nil {
			return err
		}
		d.done += e.Size
	}
	return ctx.Err()
}

func (d *dirSource) one(e entry, do func(string, io.Reader) error) error {
	f, err := d.fs.OpenFile(objectPath(d.dir, e.SHA256), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = errMissing
	}
	if err != nil {
		return do(e.Path, &failing{err})
	}
	defer f.Close()
	r, err := whole(f)
	if err != nil {
		r = &failing{err}
	}
	return do(e.Path, r)
}

func (d *dirSource) odd() []Damage { return nil }

func (d *dirSource) manifest() (*manifest, error) { return d.m, d.err }

func (d *dirSource) size() (size int64) {
	if d.m != nil {
		for i := range d.m.files {
			size += d.m.files[i].Size
		}
	}
	return size
}

func (d *dirSource) at() int64 { return d.done }

func (d *dirSource) close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

var errMissing = errors.New("it is missing")

// failing is a file that cannot be read.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// tarSource is a backup in a file.
type tarSource struct {
	file   vfs.File
	packed *io.SectionReader
	zstd   *zstd.Decoder
	m      *manifest
	err    error
	extra  []Damage
}

func openTarSource(fsys vfs.FS, path string) (*tarSource, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !strings.HasSuffix(path, Ending) && !isPacked(f) {
		return nil, errors.Join(&store.Error{
			Op: "open backup", Path: path, Err: &refusal{errors.New("the file is not a backup"), store.ErrInvalid},
			Hint: "name the directory, or the " + Ending + " file, of a backup",
		}, f.Close())
	}
	t := &tarSource{file: f, packed: io.NewSectionReader(f, 0, stat.Size), err: errMissing}
	// One decoder, so that it reads only on demand, and at can ask how far it is.
	if t.zstd, err = zstd.NewReader(t.packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// isPacked reports whether a file begins like zstd.
func isPacked(f vfs.File) bool {
	magic := make([]byte, 4)
	_, err := f.ReadAt(magic, 0)
	return err == nil && string(magic) == "\x28\xb5\x2f\xfd"
}

func (t *tarSource) each(ctx context.Context, do func(string, io.Reader) error) error {
	for entries := tar.NewReader(t.zstd); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("it cannot be read any further: %w", err)
		}
		below, inHome := strings.CutPrefix(h.Name, homePrefix)
		switch {
		case h.Typeflag == tar.TypeDir:
		case h.Typeflag != tar.TypeReg:
			t.extra = append(t.extra, Damage{Path: plainPath(h.Name), Why: "it is not a regular file", Lost: true})
		case h.Name == manifestName:
			if t.m, t.err = readManifest(entries); t.err != nil {
				t.m = nil // every file is in the archive itself
			}
		case inHome:
			err = do(below, entries)
		default:
			t.extra = append(t.extra, Damage{Path: plainPath(h.Name), Why: "a backup has no such file", Lost: true})
		}
		if err != nil {
			return err
		}
	}
}

func (t *tarSource) odd() []Damage { return t.extra }

func (t *tarSource) manifest() (*manifest, error) { return t.m, t.err }

func (t *tarSource) size() int64 { return t.packed.Size() }

func (t *tarSource) at() int64 {
	at, _ := t.packed.Seek(0, io.SeekCurrent)
	return at
}

func (t *tarSource) close() error {
	t.zstd.Close()
	return t.file.Close()
}

// VerifyRequest says which backup to check.
type VerifyRequest struct {
	Path     string
	Progress func(done, total int64) // may be nil
	FS       vfs.FS                  // default: the operating system's
}

// Contents is what a backup holds.
type Contents struct {
	Created  time.Time
	Sessions int
	Files    int
	Size     int64
	Damage   []Damage
	// BadLines are the files with lines that were already unreadable when the backup was
	// made, and Lost is content that sessions refer to but that the home had already lost.
	// They do not include damage of the backup itself; if its list of files is damaged,
	// they are not known, and empty.
	BadLines []BadLines
	Lost     []store.Ref
}

func (c *Contents) count(below string, size int64) {
	c.Files++
	c.Size += size
	if file.KeptLog(below) != "" {
		c.Sessions++
	}
}

// BadLines counts the lines of a file that cannot be read.
type BadLines struct {
	Path  string
	Lines int
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
	v := &reading{src: src, progress: r.Progress, found: make(map[string]found)}
	bad, named := make(map[string]int), make(map[store.Ref][]string)
	err = v.run(ctx, func(below string, r io.Reader) error {
		err := file.KeptLines(below, r, func(line []byte, whole bool) error {
			if line = bytes.TrimSpace(line); whole && len(line) > 0 && !json.Valid(line) {
				bad[below]++
			}
			eachBlob(line, func(ref store.Ref) {
				if in := named[ref]; len(in) == 0 || in[len(in)-1] != below {
					named[ref] = append(in, below)
				}
			})
			return nil
		})
		if err != nil {
			bad[below]++ // an archive that cannot be unpacked to its end
		}
		return nil
	})
	if err = errors.Join(err, src.close()); err != nil {
		return nil, err
	}
	c := v.contents()
	if v.mErr == nil {
		v.blameHome(c, bad, named)
	}
	return c, nil
}

// blameHome notes what was wrong before the backup was made: in files that are as they
// were then, lines that cannot be read, and names of blobs that are not there.
func (v *reading) blameHome(c *Contents, bad map[string]int, named map[store.Ref][]string) {
	damaged := make(map[string]bool)
	for _, d := range c.Damage {
		damaged[d.Path] = true
	}
	for _, below := range slices.Sorted(maps.Keys(bad)) {
		if !damaged[below] {
			c.BadLines = append(c.BadLines, BadLines{below, bad[below]})
		}
	}
	for _, e := range v.files() {
		// A blob that is not what its name says was damaged in the home.
		if room, _ := file.IsKept(e.Path); room == file.RoomBlob && e.SHA256 == path.Base(e.Path) {
			delete(named, store.Ref("sha256:"+e.SHA256))
		}
	}
	for ref, in := range named {
		if !slices.ContainsFunc(in, func(below string) bool { return !damaged[below] }) {
			delete(named, ref)
		}
	}
	c.Lost = slices.Sorted(maps.Keys(named))
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

// found is a file that was read.
type found struct {
	size int64
	sum  string
	err  error
}

// reading reads a whole backup.
type reading struct {
	src      source
	progress func(done, total int64)
	found    map[string]found
	ended    error // why the rest could not be read
	m        *manifest
	mErr     error
	odd      []Damage // what should not be there at all
}

// run calls use with every file that a home may have. What use leaves unread is read
// after it. An error of use ends the run.
func (v *reading) run(ctx context.Context, use func(below string, r io.Reader) error) error {
	total := v.src.size()
	err := v.src.each(ctx, func(below string, r io.Reader) error {
		if v.progress != nil && total > 0 {
			v.progress(min(v.src.at(), total), total)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := file.IsKept(below); !ok {
			v.odd = append(v.odd, Damage{Path: plainPath(below), Why: "a backup has no such file", Lost: true})
			return nil
		}
		if _, twice := v.found[below]; twice {
			v.odd = append(v.odd, Damage{Path: below, Why: "it is there twice"})
			return nil
		}
		f, err := v.one(ctx, below, r, use)
		v.found[below] = f
		return err
	})
	var used *useError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &used):
		return used.error
	}
	v.ended = err
	v.m, v.mErr = v.src.manifest()
	v.odd = append(v.odd, v.src.odd()...)
	if _, other := errors.AsType[*store.Error](v.mErr); other {
		return v.mErr // it is of a later version
	}
	return nil
}

func (v *reading) one(ctx context.Context, below string, r io.Reader, use func(string, io.Reader) error) (found, error) {
	sum := sha256.New()
	counted := &counter{w: sum}
	from := &reader{ctx: ctx, at: r, sum: counted}
	if err := use(below, from); err != nil {
		return found{}, &useError{err}
	}
	if from.failed == nil {
		_, _ = io.Copy(io.Discard, from) // from keeps the error
	}
	return found{counted.n, hex.EncodeToString(sum.Sum(nil)), from.failed}, ctx.Err()
}

// useError is an error of the function that uses a file: the backup is not to blame.
type useError struct{ error }

// files returns the files of the manifest.
func (v *reading) files() []entry {
	if v.m == nil {
		return nil
	}
	return v.m.files
}

// contents compares what was read with the manifest.
func (v *reading) contents() *Contents {
	c := &Contents{Damage: v.odd}
	if v.mErr != nil {
		c.Damage = append(c.Damage, Damage{Path: manifestName, Why: v.mErr.Error()})
	}
	if v.ended != nil {
		c.Damage = append(c.Damage, Damage{Path: "the archive", Why: v.ended.Error()})
	}
	add := func(below, why string) {
		c.Damage = append(c.Damage, Damage{below, why, file.KeptLog(below), v.lost(below)})
	}
	listed := make(map[string]bool)
	for _, e := range v.files() {
		listed[e.Path] = true
		c.count(e.Path, e.Size)
		if why := v.wrong(e); why != "" {
			add(e.Path, why)
		}
	}
	if v.m != nil {
		c.Created = v.m.created
	}
	if v.mErr == nil {
		for below := range v.found {
			if !listed[below] {
				add(below, "it is not in the list of files")
			}
		}
	}
	slices.SortStableFunc(c.Damage, func(a, b Damage) int { return strings.Compare(a.Path, b.Path) })
	return c
}

// lost reports whether no part of a damaged file is usable. In a session, or a copy of
// one, most lines are good, and readers skip the others.
func (v *reading) lost(below string) bool {
	switch room, _ := file.IsKept(below); room {
	case file.RoomLog, file.RoomArchive, file.RoomTrash, file.RoomQuarantine:
		return v.found[below].size == 0
	}
	return true
}

// wrong says what is wrong with a file of the manifest, or nothing.
func (v *reading) wrong(e entry) string {
	f, there := v.found[e.Path]
	switch {
	case !there:
		return errMissing.Error()
	case f.err != nil:
		return f.err.Error()
	case f.size != e.Size:
		return fmt.Sprintf("its size is %d and should be %d", f.size, e.Size)
	case f.sum != e.SHA256:
		return "its content has changed"
	}
	return ""
}

// plainPath shortens a path that may be anything.
func plainPath(path string) string { return fmt.Sprintf("%.200q", path) }
