package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Quarantined implements store.Mender.
func (s *Store) Quarantined(ctx context.Context) ([]store.Quarantined, error) {
	all, err := listRoom(ctx, s, "quarantine", parseQuarantined, func(q *store.Quarantined, size int64) {
		q.Path, q.Size = s.housePath("quarantine", q.ID), size
	})
	slices.SortFunc(all, func(a, b store.Quarantined) int { return b.Time.Compare(a.Time) })
	return all, err
}

// listRoom lists the files of a room whose names can be read, and has their sizes entered.
func listRoom[T any](ctx context.Context, s *Store, room string, parse func(file string) (T, bool), setSize func(item *T, size int64)) ([]T, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	entries, err := s.fs.ReadDir(s.housePath(room))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, s.fail("list "+room, "", err)
	}
	var all []T
	for _, entry := range entries {
		item, ok := parse(entry.Name())
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, s.fail("list "+room, entry.Name(), err)
		}
		setSize(&item, info.Size())
		all = append(all, item)
	}
	return all, nil
}

// parseQuarantined reads the name of a file in quarantine/: the log's name, a
// position and a time, and why it is there.
func parseQuarantined(file string) (store.Quarantined, bool) {
	parts := strings.Split(strings.TrimSuffix(file, ".zst"), ".")
	n := len(parts) - 3
	if n < 1 || parts[n+2] != "torn" && parts[n+2] != "replaced" || !isNumber(parts[n]) || !isNumber(parts[n+1]) {
		return store.Quarantined{}, false
	}
	nanos, _ := strconv.ParseInt(parts[n+1], 10, 64)
	offset, _ := strconv.ParseInt(parts[n], 10, 64)
	return store.Quarantined{
		ID: file, Name: strings.Join(parts[:n], "."), Time: time.Unix(0, nanos).UTC(),
		Torn: parts[n+2] == "torn", Offset: offset,
	}, true
}

func isNumber(text string) bool {
	return text != "" && !slices.ContainsFunc([]byte(text), func(c byte) bool { return c < '0' || c > '9' })
}

// Readmit implements store.Mender.
func (s *Store) Readmit(ctx context.Context, id string) (name string, err error) {
	const op = "bring back"
	q, ok := parseQuarantined(id)
	if !ok || strings.ContainsAny(id, `/\`) {
		return "", &store.Error{Op: op, Kind: store.ErrNotExist, Err: fmt.Errorf("nothing in quarantine is called %.80q", id)}
	}
	if q.Torn {
		return "", &store.Error{
			Op: op, Name: q.Name, Path: s.housePath("quarantine", id), Kind: store.ErrInvalid,
			Err: errors.New("it is a piece of a line, not a session"), Hint: "read its text in the file",
		}
	}
	if err := s.check(ctx, op, q.Name); err != nil {
		return "", err
	}
	lock, err := s.lockName(ctx, q.Name)
	if err != nil {
		return "", s.fail(op, q.Name, err)
	}
	defer lock.release()
	if err = s.mustNotExist(q.Name); err == nil {
		err = s.readmitLocked(q)
	}
	if err != nil {
		return "", s.fail(op, q.Name, err)
	}
	return q.Name, nil
}

func (s *Store) readmitLocked(q store.Quarantined) error {
	to := s.Path(q.Name)
	if strings.HasSuffix(q.ID, ".zst") {
		to = s.archivePath(q.Name)
		if err := s.mkdir(s.housePath("archive")); err != nil {
			return err
		}
	}
	err := s.moveBack(s.housePath("quarantine", q.ID), to)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing in quarantine is called %q: %w", q.ID, err)
	}
	return err
}
