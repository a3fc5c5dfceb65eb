package transcript

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Archive is a zip file whose members are sources.
type Archive struct {
	path    string
	members map[string]*zip.File
	names   []string
	close   func() error
}

// maxMembers is how many files an archive may hold.
const maxMembers = 1_000_000

// IsZip reports whether the file begins like a zip archive.
func (f *File) IsZip() bool { return bytes.HasPrefix(f.Head(), []byte("PK\x03\x04")) }

// Zip opens the file as a zip archive. Nothing is ever unpacked to the disk, so names
// that lead elsewhere are harmless; they are refused anyway, because no honest archive
// has them.
func (f *File) Zip() (*Archive, error) {
	at, size, done, err := f.readerAt()
	if err != nil {
		return nil, err
	}
	refuse := func(err error) (*Archive, error) {
		return nil, errors.Join(&session.Error{Op: "read", Path: f.Path, Kind: session.ErrInvalid, Err: err}, done())
	}
	r, err := zip.NewReader(at, size)
	if err != nil {
		return refuse(err)
	}
	if len(r.File) > maxMembers {
		return refuse(fmt.Errorf("the archive holds %d files; at most %d are read", len(r.File), maxMembers))
	}
	a := &Archive{path: f.Path, members: make(map[string]*zip.File), close: done}
	left := uint64(size)
	for _, member := range r.File {
		if member.FileInfo().IsDir() {
			continue
		}
		switch {
		case !fs.ValidPath(member.Name) || !member.Mode().IsRegular():
			return refuse(fmt.Errorf("the archive has a member %q, which is not a regular file inside it", member.Name))
		case a.members[member.Name] != nil:
			return refuse(fmt.Errorf("the archive has two members %q", member.Name))
		case member.CompressedSize64 > left:
			// Members that share their bytes could unpack to any multiple of them.
			return refuse(errors.New("the members of the archive are larger than the archive"))
		}
		left -= member.CompressedSize64
		a.members[member.Name] = member
		a.names = append(a.names, member.Name)
	}
	return a, nil
}

func (f *File) readerAt() (io.ReaderAt, int64, func() error, error) {
	if f == nil || f.dir == "" {
		data, err := f.ReadAll()
		return bytes.NewReader(data), int64(len(data)), func() error { return nil }, err
	}
	file, err := vfs.Open(f.Path)
	if err != nil {
		return nil, 0, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, nil, errors.Join(err, file.Close())
	}
	return file, info.Size(), file.Close, nil
}

// Names returns the names of the members, in the order of the archive.
func (a *Archive) Names() []string {
	if a == nil {
		return nil
	}
	return a.names
}

// File returns a member as a source. The archive must stay open as long as it is
// used.
func (a *Archive) File(name string) (*File, error) {
	if a == nil {
		return nil, errMissing("read", "an archive, as File.Zip returns it")
	}
	member, ok := a.members[name]
	if !ok {
		return nil, &session.Error{Op: "read", Path: a.path + "!" + name, Kind: session.ErrNotExist}
	}
	path := a.path + "!" + name
	return &File{Path: path, open: func() (io.ReadCloser, error) {
		r, err := member.Open()
		if err != nil {
			return nil, err
		}
		packed := &counter{n: int64(member.CompressedSize64)}
		return &unpacked{path: path, from: r, packed: packed, close: r.Close}, nil
	}}, nil
}

// Close releases the archive.
func (a *Archive) Close() error {
	if a == nil || a.close == nil {
		return nil
	}
	return a.close()
}
