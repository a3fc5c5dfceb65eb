package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// directory is a backend in a directory that all machines have under the same path. Each tenant's
// blobs are those of a store of files that has nothing else, so nothing there refers to them.
type directory struct {
	place string
	root  string // is in place, and says that it is the right directory: see mounted
	files *file.Store
}

func openDirectory(s *Store, row backendRow) (blobBackend, error) {
	root := filepath.Join(row.Place, row.ID)
	files, err := file.Open(filepath.Join(root, s.tenantDir()), nil)
	return &directory{place: row.Place, root: root, files: files}, err
}

func (d *directory) String() string { return d.place }
func (d *directory) close()         { _ = d.files.Close() }

// make makes the root in a directory that must exist.
func (d *directory) make() error {
	info, err := os.Stat(d.place)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	if err == nil {
		err = vfs.Mkdir(vfs.OS{}, d.root, 0o700)
	}
	if err != nil {
		return &store.Error{Op: "keep blobs in", Path: d.place, Err: err, Hint: "make the directory, or mount it, and give its whole path"}
	}
	return nil
}

// mounted returns an error if the directory is not the one that other programs use. Without this,
// blobs would go to the disk of a machine that lacks the mount, where no other finds them.
func (d *directory) mounted(op string) error {
	_, err := os.Lstat(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it has no %s", filepath.Base(d.root))
	}
	if err != nil {
		return &store.Error{Op: op, Path: d.place, Kind: store.ErrUnavailable, Err: err, Hint: "check that the directory is mounted on this machine"}
	}
	return nil
}

func (d *directory) put(ctx context.Context, op string, _ store.Ref, data []byte) error {
	if err := d.mounted(op); err != nil {
		return err
	}
	_, err := d.files.Blobs().Put(ctx, data)
	return err
}

func (d *directory) get(ctx context.Context, op string, ref store.Ref) ([]byte, error) {
	if err := d.mounted(op); err != nil {
		return nil, err
	}
	return d.files.Blobs().Get(ctx, ref)
}

func (d *directory) list(ctx context.Context, op string) iter.Seq2[blob, error] {
	return func(yield func(blob, error) bool) {
		var all []store.Part
		err := d.mounted(op)
		if err == nil {
			all, err = d.files.Blobs().Unreferenced(ctx)
		}
		if err != nil {
			yield(blob{}, err)
			return
		}
		for _, p := range all {
			if !yield(blob{store.Ref(p.Name), p.Size}, nil) {
				return
			}
		}
	}
}

func (d *directory) delete(ctx context.Context, op string, ref store.Ref) (bool, error) {
	if err := d.mounted(op); err != nil {
		return false, err
	}
	done, err := d.files.Blobs().Collect(ctx, ref)
	return len(done.Deleted) > 0, err
}

// leftovers returns what programs that were stopped have left in directories of blobs.
func (s *Store) leftovers(ctx context.Context, op string) (all []store.Part, err error) {
	backends, err := s.blobBackends(ctx, op, false)
	for _, d := range backends {
		d, ok := d.(*directory)
		if !ok {
			continue
		}
		for f, err := range d.files.InspectRest(ctx) {
			if err != nil {
				return all, err
			}
			if f.Kind == store.FaultTemporary {
				all = append(all, store.Part{Kind: store.PartTemp, Place: f.Path, Size: f.Size})
			}
		}
	}
	return all, err
}

// leftIn returns the directory that leftovers has found a part in, or nil.
func (s *Store) leftIn(part store.Part) *directory {
	s.backends.mu.Lock()
	defer s.backends.mu.Unlock()
	for _, d := range s.backends.opened {
		if d, ok := d.(*directory); ok && strings.HasPrefix(part.Place, d.files.Where()+string(filepath.Separator)) {
			return d
		}
	}
	return nil
}
