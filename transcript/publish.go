package transcript

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Publish writes prepared files below a directory and returns their paths. Each is
// written under another name, synced and renamed; a replaced file is kept as .bak.
// Without force, an existing conversation is replaced only if this session wrote it,
// and everything that its program has added since was imported. An Output that Prepare
// did not make is ErrInvalid.
func (x *Exporter) Publish(ctx context.Context, out *Output, base string, force bool) ([]string, error) {
	if x == nil || out == nil || out.format == nil {
		return nil, errMissing("export", "an exporter, and what it has prepared")
	}
	var paths []string
	for i := range out.Files {
		path, err := filepath.Abs(filepath.Join(base, filepath.FromSlash(out.Files[i].Path)))
		if err != nil {
			return nil, err
		}
		if err := x.mayReplace(ctx, path, out.Files[i].of(out).Session, &out.Files[i], force); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	// The conversation itself comes after what belongs to it, so that it is never
	// incomplete. A list of conversations comes last, so that everything it names
	// exists.
	for _, shared := range []bool{false, true} {
		for i := len(paths) - 1; i >= 0; i-- {
			if shared != (out.Files[i].Merge != nil) {
				continue
			}
			if err := replaceWithBackup(paths[i], out.Files[i].Data); err != nil {
				return nil, err
			}
		}
	}
	for i, path := range paths {
		if err := x.remember(ctx, out.format, path, out.Files[i].of(out)); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// of returns the conversation that a file holds.
func (f *OutputFile) of(out *Output) *OutputOf {
	if f.Of != nil {
		return f.Of
	}
	return &OutputOf{Session: out.of, Native: out.Native, Records: out.wrote}
}

// mayReplace refuses to overwrite a file that may be the user's only copy.
func (x *Exporter) mayReplace(ctx context.Context, path, id string, f *OutputFile, force bool) error {
	have, err := vfs.ReadFile(path, 0)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (force || f.Merge != nil || bytes.Equal(have, f.Data)) {
		return nil
	}
	if err != nil {
		return err
	}
	known := x.Ledger.Get(ctx, path)
	if known == nil || known.Exported != id || slices.ContainsFunc(known.Sessions, func(in string) bool { return in != id }) {
		return &session.Error{
			Op: "export", Path: path, Kind: session.ErrExist,
			Err: errors.New("the file holds another conversation, or an older state of this one"),
		}
	}
	if known.isAll(path) {
		return nil
	}
	return &session.Error{
		Op: "export", Path: path, Kind: session.ErrExist,
		Err:  errors.New("the file has changed since it was exported or imported"),
		Hint: "import the file first",
	}
}

// isAll reports whether a file is what was last exported to it or imported from it, so
// that the session has everything that is in the file. A file that was imported just
// after its program wrote to it may have changed within the same time stamp: then its
// bytes are compared.
func (s *Source) isAll(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || s.unchanged(info) {
		return err == nil
	}
	f, err := OpenFile(path)
	return err == nil && f.has(s.Chunks, info.Size())
}

// replaceWithBackup writes a file under another name, copies the existing one to .bak,
// and then renames the new file.
func replaceWithBackup(path string, data []byte) error {
	disk := vfs.OS{KeepOwner: true}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link stays a link, and leads to the new file
	}
	if err := vfs.Mkdir(disk, filepath.Dir(path), 0o700); err != nil {
		return err
	}
	have, err := vfs.ReadFile(path, 0)
	var how vfs.Replacement
	switch {
	case err == nil && bytes.Equal(have, data):
		return nil
	case err == nil:
		how.Before = func() error { return vfs.Replace(disk, path+".bak", vfs.Replacement{}, vfs.Data(have)) }
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return vfs.Replace(disk, path, how, vfs.Data(data))
}

// remember notes that a file is ours, and so is its conversation, even if the program
// moves it.
func (x *Exporter) remember(ctx context.Context, format *Format, path string, of *OutputOf) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	src := Source{
		Path: path, Format: format.Name, Size: info.Size(), Modified: info.ModTime(),
		Exported: of.Session, Native: of.Native, Sessions: []string{of.Session}, Wrote: of.Records,
	}
	if err := x.Ledger.Put(ctx, &src); err != nil || of.Native == "" {
		return err
	}
	src.Path = exportPath(format.Name, of.Native)
	return x.Ledger.Put(ctx, &src)
}
