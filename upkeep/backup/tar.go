package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// homePrefix is where the files of the home are in an archive. Unpacked with any other
// program, that directory is a home.
const homePrefix = "home/"

// pack writes an archive of a manifest and the objects that it names. The manifest comes first,
// and can be unpacked on its own, so that a reader of an archive that was cut off knows what is
// missing.
func (t *target) pack(ctx context.Context, m *manifest, progress func(done, total int64), w io.Writer) error {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	var list bytes.Buffer
	err = m.write(&list)
	if err == nil {
		err = add(archive, manifestName, &entry{Size: int64(list.Len()), Modified: m.created}, &list)
	}
	if err == nil {
		err = errors.Join(archive.Flush(), packed.Flush())
	}
	if err == nil {
		objects := &dirSource{fs: t.fs, dir: t.dir, m: m}
		r := newReading(objects, func(done, total int64) { progress(total+done, 2*total) })
		err = r.run(ctx, func(e *entry, r io.Reader) error { return add(archive, homePrefix+e.Path, e, r) })
		if err == nil && len(r.Damaged) > 0 {
			err = &DamagedError{t.dir, r.Damaged}
		}
		err = errors.Join(err, objects.close())
	}
	if err == nil {
		err = archive.Close()
	}
	return errors.Join(err, packed.Close())
}

func add(archive *tar.Writer, name string, e *entry, r io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: e.Size, Mode: int64(filePerm), ModTime: e.Modified, Format: tar.FormatPAX}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(archive, r)
	return err
}

// tarSource is a backup in a file. Its files come in the order of the manifest.
type tarSource struct {
	file    vfs.File
	zstd    *zstd.Decoder
	archive *tar.Reader
	m       *manifest
	err     error
	next    string // the file of the home that comes next; "" if that is not known
	ended   error  // why nothing more can be read; io.EOF at the end
	extra   []Fault
}

func openTar(fsys vfs.FS, path string) (*tarSource, error) {
	f, r, err := openWhole(fsys, path)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(path, Ending) && !isPacked(f) {
		return nil, errors.Join(&store.Error{
			Op: "open backup", Path: path, Err: &refusal{errors.New("the file is not a backup"), store.ErrInvalid},
			Hint: "name the directory, or the " + Ending + " file, of a backup",
		}, f.Close())
	}
	t := &tarSource{file: f}
	if t.zstd, err = zstd.NewReader(r, zstd.WithDecoderMaxWindow(64<<20)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t.archive = tar.NewReader(t.zstd)
	h, err := t.archive.Next()
	switch {
	case err != nil:
		t.ended, t.err = err, fmt.Errorf("%w: %w", errManifest, err)
	case h.Name == manifestName && h.Typeflag == tar.TypeReg:
		t.m, t.err = readManifest(path, t.archive)
	default:
		t.err = errMissing
		t.setNext(h)
	}
	return t, nil
}

// isPacked reports whether a file begins like zstd.
func isPacked(f vfs.File) bool {
	magic := make([]byte, 4)
	_, err := f.ReadAt(magic, 0)
	return err == nil && string(magic) == "\x28\xb5\x2f\xfd"
}

func (t *tarSource) list() (*manifest, error) { return t.m, t.err }

func (t *tarSource) open(e *entry) (io.Reader, error) {
	for t.ended == nil && t.next < e.Path {
		t.advance()
	}
	switch {
	case t.next == e.Path:
		t.next = ""
		return t.archive, nil
	case t.ended != nil && !errors.Is(t.ended, io.EOF):
		return nil, fmt.Errorf("the archive cannot be read so far: %w", t.ended)
	}
	return nil, errMissing
}

// advance goes to the next file. One that nobody opened is in no list.
func (t *tarSource) advance() {
	if t.next != "" {
		t.reject(homePrefix+t.next, "it is not in the list of files")
		t.next = ""
	}
	h, err := t.archive.Next()
	if errors.Is(err, io.EOF) { // what follows may be damaged
		if _, more := io.Copy(io.Discard, t.zstd); more != nil {
			err = more
		}
	}
	if t.ended = err; err == nil {
		t.setNext(h)
	}
}

// setNext notes which file comes next.
func (t *tarSource) setNext(h *tar.Header) {
	below, inHome := strings.CutPrefix(h.Name, homePrefix)
	switch {
	case h.Typeflag == tar.TypeDir:
	case h.Typeflag != tar.TypeReg:
		t.reject(h.Name, "it is not a regular file")
	case !inHome || below == "":
		t.reject(h.Name, "a backup has no such file")
	default:
		t.next = below
	}
}

func (t *tarSource) reject(name, why string) {
	t.extra = append(t.extra, Fault{Path: fmt.Sprintf("%.200q", name), Why: why, Lost: true})
}

func (t *tarSource) rest() []Fault {
	for t.ended == nil {
		t.advance()
	}
	if !errors.Is(t.ended, io.EOF) {
		t.extra = append(t.extra, Fault{Path: "the archive", Why: t.ended.Error()})
	}
	return t.extra
}

func (t *tarSource) close() error {
	t.zstd.Close()
	return t.file.Close()
}
