package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/store"
)

// blobBackend keeps the bytes of blobs: the tables, a directory, or a bucket. A backend is the only
// list of the blobs in it. Which lines name a blob, and who holds blobs, is in the tables, so that a
// deletion is safe whatever other machines do meanwhile. A blob is in a backend whole or not at all.
//
// The database says which backends there are, so that all programs agree. Blobs are put into the
// one that was chosen last, and read and deleted in all of them. A program that does not know
// the latest yet puts blobs where others will find them, looks again before it says that one is
// missing, and before it lists or deletes any.
type blobBackend interface {
	fmt.Stringer
	put(ctx context.Context, op string, ref store.Ref, data []byte) error
	// get returns the bytes, or store.ErrNotExist. The caller compares it with the name.
	get(ctx context.Context, op string, ref store.Ref) ([]byte, error)
	list(ctx context.Context, op string) iter.Seq2[blob, error]
	// delete reports whether there was one.
	delete(ctx context.Context, op string, ref store.Ref) (bool, error)
	close()
}

type blob struct {
	ref  store.Ref
	size int64
}

// InDatabase is the place of blobs that are kept in the tables.
const InDatabase = "database"

// knownBackends are the backends that a program has opened.
type knownBackends struct {
	mu     sync.Mutex
	list   []blobBackend // in the order in which to look; nil before the first use
	opened map[string]blobBackend
}

func (k *knownBackends) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.opened {
		d.close()
	}
}

// blobBackends returns where blobs are: the first is where they go. With again, it asks the database.
func (s *Store) blobBackends(ctx context.Context, op string, again bool) ([]blobBackend, error) {
	if err := s.ready(ctx, op, ""); err != nil {
		return nil, err
	}
	s.backends.mu.Lock()
	list := s.backends.list
	s.backends.mu.Unlock()
	if list != nil && !again {
		return list, nil
	}
	var rows []backendRow
	err := s.read(ctx, op, "", func(ctx context.Context) (err error) {
		rows, err = s.backendRows(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.backends.mu.Lock()
	defer s.backends.mu.Unlock()
	list = nil
	for _, row := range rows {
		d := s.backends.opened[row.ID]
		if d == nil {
			if d, err = s.openBackend(row); err != nil {
				return nil, err
			}
			s.backends.opened[row.ID] = d
		}
		list = append(list, d)
	}
	s.backends.list = list
	return list, nil
}

// backendRow is a backend as the database knows it. The ID is a part of the path or of the key of
// each blob, so that two databases can have the same directory or bucket and never delete each
// other's blobs.
type backendRow struct {
	ID    string
	Place string
}

// backendRows returns the backends, the latest first. The tables are always one of them.
func (s *Store) backendRows(ctx context.Context) ([]backendRow, error) {
	rows, err := s.pool.Query(ctx, s.sql(`SELECT id, place FROM coppice.blob_backends ORDER BY chosen DESC`))
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[backendRow])
	for _, row := range all {
		if row.Place == InDatabase {
			return all, err
		}
	}
	return append(all, backendRow{Place: InDatabase}), err
}

func (s *Store) openBackend(row backendRow) (blobBackend, error) {
	switch {
	case row.Place == InDatabase:
		return tables{s}, nil
	case filepath.IsAbs(row.Place):
		return openDirectory(s, row)
	}
	return openBucket(s, row)
}

// checkPlace returns the one way to write a place.
func checkPlace(place string) (string, error) {
	switch {
	case place == InDatabase:
		return place, nil
	case filepath.IsAbs(place):
		return filepath.Clean(place), nil
	}
	address, err := parseBucket(place)
	return address.String(), err
}

// tenantDir returns the tenant as a part of a path or a key. Names that a file system might
// confuse are hashed, and "" becomes "_".
func (t target) tenantDir() string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r)
	}
	switch {
	case t.tenant == "":
		return "_"
	case t.tenant[0] == '_' || strings.ContainsFunc(t.tenant, func(r rune) bool { return !plain(r) }):
		return fmt.Sprintf("_%x", sha256.Sum256([]byte(t.tenant)))
	}
	return t.tenant
}

// joinNames names several backends.
func joinNames(all []blobBackend) string {
	var names []string
	for _, d := range all {
		names = append(names, d.String())
	}
	return strings.Join(names, " or ")
}

// KeepBlobs says where the blobs of a store go from now on, those of all its tenants: into a
// directory, if place is an absolute path, into a bucket
// (s3://bucket/prefix?endpoint=https://host&region=…), or into the database (InDatabase). It
// tries the place first. Blobs that are elsewhere stay there, and can be read as before. It needs
// the role that owns the tables, and returns the place as the database has it.
func KeepBlobs(ctx context.Context, where, place string) (string, error) {
	const op = "choose where blobs go"
	place, err := checkPlace(place)
	if err != nil {
		return "", err
	}
	s, err := Open(ctx, where, nil)
	if err != nil {
		return "", err
	}
	defer s.Close()
	s.patience = impatience
	rows, err := s.backendRows(ctx)
	if err != nil {
		return "", s.fail(op, "", err)
	}
	row := backendRow{ID: strings.ToLower(rand.Text()[:10]), Place: place}
	for _, old := range rows {
		if old.Place == place && old.ID != "" {
			row = old
		}
	}
	if err := s.tryBackend(ctx, op, row); err != nil {
		return "", err
	}
	return place, s.write(ctx, op, "", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO coppice.blob_backends (place, id, chosen) SELECT $1, $2, coalesce(max(chosen), 0) + 1 FROM coppice.blob_backends
			ON CONFLICT (place) DO UPDATE SET chosen = excluded.chosen`), row.Place, row.ID)
		return err
	})
}

// tryBackend writes a random blob, reads it back and deletes it.
func (s *Store) tryBackend(ctx context.Context, op string, row backendRow) error {
	d, err := s.openBackend(row)
	if err != nil {
		return err
	}
	defer d.close()
	if d, ok := d.(*directory); ok {
		if err := d.make(); err != nil {
			return err
		}
	}
	data := []byte("coppice tries this: " + rand.Text())
	ref := store.RefOf(data)
	if err := d.put(ctx, op, ref, data); err != nil {
		return err
	}
	got, err := d.get(ctx, op, ref)
	if err == nil && store.RefOf(got) != ref {
		err = &store.Error{Op: op, Path: d.String(), Kind: store.ErrCorrupt, Err: errors.New("what was written there reads differently")}
	}
	_, deleteErr := d.delete(ctx, op, ref)
	return cmp.Or(err, deleteErr)
}
