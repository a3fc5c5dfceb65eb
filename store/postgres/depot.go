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

// depot keeps the bytes of blobs: the tables, a directory, or a bucket. A depot is the only list of
// the blobs in it. Which lines name a blob, and who holds blobs, is in the tables, so that a deletion
// is safe whatever other machines do meanwhile. A blob is in a depot whole or not at all.
//
// The database says which depots there are, so that all programs agree. Blobs are put into the
// one that was chosen last, and read and deleted in all of them. A program that does not know
// the latest yet puts blobs where others will find them, looks again before it says that one is
// missing, and before it lists or deletes any.
type depot interface {
	fmt.Stringer
	put(ctx context.Context, op string, ref store.Ref, data []byte) error
	// get returns what is there, or store.ErrNotExist. The caller compares it with the name.
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

// known are the depots that a program has seen.
type known struct {
	mu     sync.Mutex
	list   []depot // in the order in which to look; nil before the first use
	opened map[string]depot
}

func (k *known) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.opened {
		d.close()
	}
}

// depots returns where blobs are: the first is where they go. With again, it asks the database.
func (s *Store) depots(ctx context.Context, op string, again bool) ([]depot, error) {
	if err := s.ready(ctx, op, ""); err != nil {
		return nil, err
	}
	s.known.mu.Lock()
	list := s.known.list
	s.known.mu.Unlock()
	if list != nil && !again {
		return list, nil
	}
	var rows []depotRow
	err := s.read(ctx, op, "", func(ctx context.Context) (err error) {
		rows, err = s.depotRows(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	list = nil
	for _, row := range rows {
		d := s.known.opened[row.ID]
		if d == nil {
			if d, err = s.openDepot(row); err != nil {
				return nil, err
			}
			s.known.opened[row.ID] = d
		}
		list = append(list, d)
	}
	s.known.list = list
	return list, nil
}

// depotRow is a depot as the database knows it. The ID is a part of the path or of the key of
// each blob, so that two databases can have the same directory or bucket and never delete each
// other's blobs.
type depotRow struct {
	ID    string
	Place string
}

// depotRows returns the depots, the latest first. The tables are always one of them.
func (s *Store) depotRows(ctx context.Context) ([]depotRow, error) {
	rows, err := s.pool.Query(ctx, s.sql(`SELECT id, place FROM coppice.depots ORDER BY chosen DESC`))
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[depotRow])
	for _, row := range all {
		if row.Place == InDatabase {
			return all, err
		}
	}
	return append(all, depotRow{Place: InDatabase}), err
}

func (s *Store) openDepot(row depotRow) (depot, error) {
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

// join names several depots.
func join(all []depot) string {
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
	rows, err := s.depotRows(ctx)
	if err != nil {
		return "", s.fail(op, "", err)
	}
	row := depotRow{ID: strings.ToLower(rand.Text()[:10]), Place: place}
	for _, old := range rows {
		if old.Place == place && old.ID != "" {
			row = old
		}
	}
	if err := s.tryDepot(ctx, op, row); err != nil {
		return "", err
	}
	return place, s.write(ctx, op, "", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO coppice.depots (place, id, chosen) SELECT $1, $2, coalesce(max(chosen), 0) + 1 FROM coppice.depots
			ON CONFLICT (place) DO UPDATE SET chosen = excluded.chosen`), row.Place, row.ID)
		return err
	})
}

// tryDepot writes a random blob, reads it back and deletes it.
func (s *Store) tryDepot(ctx context.Context, op string, row depotRow) error {
	d, err := s.openDepot(row)
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
