package transcript

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// File is a source: a file, standard input, or bytes from elsewhere. Compressed files
// (.zst, .gz) are unpacked on reading. A File is used by one goroutine.
type File struct {
	// Path is where the file is, as an absolute path. Bytes that are not a file have a
	// name here, such as "-".
	Path string

	open func() (io.ReadCloser, error) // the decompressed content from the beginning
	dir  string                        // the directory of files beside it; "" if it has none
	info fs.FileInfo                   // of the file, from when it was opened; nil if it is not a file
	data []byte                        // all of a small file that is not compressed, once it was read
	head []byte                        // its beginning, once it was asked for
	text string                        // the same
	seen map[reflect.Type]any          // see Seen
	tap  tap                           // nil: what is read is not kept

	// clean, if it is set, changes what Lines and ReadAll return and tap sees.
	clean func([]byte) []byte
}

// tap sees what is read of a file.
type tap interface {
	// part sees a piece of a file that is read by lines, the next one or, when
	// it is read a second time, one that was seen before.
	part(pos int64, b []byte)
	// line sees a piece that is one long line. The bytes do not change afterwards.
	line(pos int64, b []byte)
	// whole sees a file that is read at once. The bytes do not change afterwards.
	whole(b []byte)
}

const (
	headSize = 64 << 10
	// maxWhole is the size of the largest document that is read as a whole.
	maxWhole = 1 << 30
	// maxBeside is the size of the largest file beside a source that is read.
	maxBeside = 64 << 20
	// smallRatio is how many times larger than its compressed bytes the content may be, up to
	// smallUnpacked; beyond that, maxRatio is the limit. A small conversation may be very
	// repetitive, but a large one shrinks to between a third and a thirtieth.
	smallRatio    = 1000
	smallUnpacked = 64 << 20
	maxRatio      = 200
)

// OpenFile returns the file at a path. Its content is opened when it is read.
func OpenFile(path string) (*File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	probe, err := vfs.Open(abs) // otherwise an unreadable file would look like an unknown format
	if errors.Is(err, vfs.ErrNotRegular) {
		return nil, &session.Error{Op: "read", Path: abs, Kind: session.ErrInvalid, Err: vfs.ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := probe.Stat()
	if err := errors.Join(err, probe.Close()); err != nil {
		return nil, err
	}
	f := &File{Path: abs, dir: filepath.Dir(abs), info: info}
	f.open = func() (io.ReadCloser, error) {
		if err := f.load(); err != nil || f.data == nil {
			return openPlain(abs)
		}
		return io.NopCloser(bytes.NewReader(f.data)), nil
	}
	return f, nil
}

// smallFile is the size up to which a file is read once and then kept in memory: it is
// needed twice, to detect its format and to import it.
const smallFile = 1 << 20

// load reads a small file that is not compressed.
func (f *File) load() error {
	if f.data != nil || f.info == nil || f.info.Size() > smallFile {
		return nil
	}
	from, err := vfs.Open(f.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	// It may have grown since. The next import will see the rest, because the ledger
	// remembers the old size and time.
	data := make([]byte, f.info.Size())
	n, err := io.ReadFull(from, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if data = data[:n]; !isCompressed(data) {
		f.data = data
	}
	return nil
}

func isCompressed(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) || bytes.HasPrefix(data, []byte{0x1f, 0x8b})
}

// FileOf returns bytes as a source. The name is used like a path to detect what they
// are.
func FileOf(name string, data []byte) *File {
	return &File{
		Path: name,
		open: func() (io.ReadCloser, error) { return decompress(name, io.NopCloser(bytes.NewReader(data))) },
	}
}

// begin opens the content. The zero File has none.
func (f *File) begin() (io.ReadCloser, error) {
	if f == nil || f.open == nil {
		return nil, errMissing("read", "a file, as OpenFile or FileOf returns it")
	}
	return f.open()
}

func openPlain(path string) (io.ReadCloser, error) {
	f, err := vfs.Open(path)
	if err != nil {
		return nil, err
	}
	return decompress(path, f)
}

// openAt returns the content from a position on.
func (f *File) openAt(pos int64) (io.ReadCloser, error) {
	r, err := f.begin()
	if err != nil || pos <= 0 {
		return r, err
	}
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data[min(pos, int64(len(f.data))):])), nil
	}
	if plain, ok := r.(*plainFile); ok {
		if _, err := plain.f.Seek(pos, io.SeekStart); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		plain.rest = plain.f
		return r, nil
	}
	if _, err := io.CopyN(io.Discard, r, pos); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// plainFile is a file that is not compressed.
type plainFile struct {
	rest io.Reader
	f    *os.File
}

func (p *plainFile) Read(b []byte) (int, error) { return p.rest.Read(b) }
func (p *plainFile) Close() error               { return p.f.Close() }

// decompress looks at the first bytes of a stream, not at its name: some programs
// compress old files without renaming them.
func decompress(path string, from io.ReadCloser) (io.ReadCloser, error) {
	var magic [4]byte
	n, err := io.ReadFull(from, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.Join(err, from.Close())
	}
	whole := io.MultiReader(bytes.NewReader(magic[:n]), from)
	packed := &counter{from: whole}
	switch {
	case bytes.Equal(magic[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		return &unpacked{path: path, from: d, packed: packed, close: func() error { d.Close(); return from.Close() }}, nil
	case n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		d, err := gzip.NewReader(packed)
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		return &unpacked{path: path, from: d, packed: packed, close: from.Close}, nil
	}
	if f, ok := from.(*os.File); ok {
		return &plainFile{whole, f}, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{whole, from}, nil
}

// counter counts what is read.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// unpacked is a decompressed stream that refuses to become a bomb.
type unpacked struct {
	path   string
	from   io.Reader
	packed *counter
	n      int64
	close  func() error
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.n += int64(n)
	ratio := int64(smallRatio)
	if u.n > smallUnpacked {
		ratio = maxRatio
	}
	if u.n > headSize && u.n/ratio > u.packed.n {
		return 0, &session.Error{
			Op: "read", Path: u.path, Offset: u.n, At: true, Kind: session.ErrTooLarge,
			Err:  fmt.Errorf("it unpacks to more than %d times its size", ratio),
			Hint: "if you trust it, unpack it yourself and import the result",
		}
	}
	return n, err
}

func (u *unpacked) Close() error { return u.close() }

// Head returns the file's first 64 KiB, or all of it if it has less, or nil if
// it cannot be read.
func (f *File) Head() []byte {
	if f != nil && f.head != nil {
		return f.head
	}
	r, err := f.begin()
	if err != nil {
		return nil
	}
	defer r.Close()
	if f.data != nil {
		f.head = f.data[:min(len(f.data), headSize):min(len(f.data), headSize)]
		return f.head
	}
	head := make([]byte, headSize)
	n, _ := io.ReadFull(r, head)
	f.head = head[:n]
	return f.head
}

// HeadText is Head as text.
func (f *File) HeadText() string {
	if f == nil {
		return ""
	}
	if f.text == "" {
		f.text = string(f.Head())
	}
	return f.text
}

// Seen returns the result of look for a file, and calls look once: many formats ask the
// same questions about a file until one of them recognises it. The result's type
// identifies the question, so each look needs a type of its own.
func Seen[T any](f *File, look func(f *File) T) T {
	if f == nil || look == nil {
		var nothing T
		return nothing
	}
	kind := reflect.TypeFor[T]()
	if answer, ok := f.seen[kind].(T); ok {
		return answer
	}
	answer := look(f)
	if f.seen == nil {
		f.seen = make(map[reflect.Type]any)
	}
	f.seen[kind] = answer
	return answer
}

// Open returns the content from the beginning. Bytes that are read through it are not
// kept: see Lines and ReadAll.
func (f *File) Open() (io.ReadCloser, error) { return f.begin() }

// ReadAll returns all of the content, for formats whose file is one document.
func (f *File) ReadAll() ([]byte, error) {
	r, err := f.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	size := int64(len(f.data))
	if f.info != nil {
		size = f.info.Size()
	}
	data, err := readLimited(f.Path, r, size, maxWhole)
	if err == nil && f.clean != nil {
		data = f.clean(data)
	}
	if err == nil && f.tap != nil {
		f.tap.whole(data)
	}
	return data, err
}

// readLimited reads a document of a known size, or larger if it is packed. A document
// over the limit is refused before it takes up memory.
func readLimited(path string, r io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	err := error(nil)
	if size <= limit {
		buf.Grow(int(size) + bytes.MinRead)
		size, err = buf.ReadFrom(io.LimitReader(r, limit+1))
	}
	if err == nil && size > limit {
		return nil, &session.Error{
			Op: "read", Path: path, Kind: session.ErrTooLarge,
			Err: fmt.Errorf("it is one document of more than %d MiB", limit>>20),
		}
	}
	return buf.Bytes(), err
}

// Beside returns the content of a file beside this one, given by a relative path with
// slashes. It never leaves the file's directory, neither through ".." nor through a
// link. It returns fs.ErrNotExist if there is none.
func (f *File) Beside(path string) ([]byte, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := vfs.OpenIn(root, filepath.FromSlash(path))
	if errors.Is(err, vfs.ErrNotRegular) {
		err = errors.Join(err, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readLimited(file.Name(), file, 0, maxBeside)
}

// Around returns the names of the files in a directory beside this one (its own
// for "."), with the same care as Beside. A directory that is missing is empty.
func (f *File) Around(dir string) ([]fs.DirEntry, error) {
	root, err := f.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(filepath.Clean(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func (f *File) root() (*os.Root, error) {
	if f == nil || f.dir == "" {
		return nil, fs.ErrNotExist
	}
	return os.OpenRoot(f.dir)
}
