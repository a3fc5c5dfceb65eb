package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// HasBackup implements store.Mender.
func (s *Store) HasBackup(name string) (path string, ok bool) {
	path = s.backupPath(name)
	_, err := s.fs.Lstat(path)
	return path, err == nil
}

func (s *Store) backupPath(name string) string { return s.Path(name) + ".bak" }

// RestoreBackup replaces a log by its backup, the file <name>.jsonl.bak beside
// it. The log's file is moved to quarantine first. It returns store.ErrNotExist
// if there is no backup, and store.ErrCorrupt if the backup is no better: its
// first line must be a JSON object.
func (s *Store) RestoreBackup(ctx context.Context, name string) error {
	if err := s.check(ctx, "restore backup", name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return s.fail("restore backup", name, err)
	}
	defer lock.release()
	if err := s.restoreBackupLocked(name); err != nil {
		return s.fail("restore backup", name, err)
	}
	return nil
}

func (s *Store) restoreBackupLocked(name string) error {
	backup, err := s.fs.OpenFile(s.backupPath(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer backup.Close()
	stat, err := backup.Stat()
	if err != nil {
		return err
	}
	content := io.NewSectionReader(backup, 0, stat.Size)
	first, err := bufio.NewReader(content).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !store.Whole(first) {
		return &store.Error{
			Op: "restore backup", Name: name, Path: s.backupPath(name), Kind: store.ErrCorrupt,
			Err: errors.New("its first line is not an entry either"),
		}
	}
	if err := s.quarantineFile(name); err != nil {
		return err
	}
	return s.publish(s.Path(name), func(w io.Writer) error {
		_, err := content.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(w, content)
		}
		return err
	})
}

// quarantineFile copies the log's file to quarantine/.
func (s *Store) quarantineFile(name string) error {
	return s.copyLog(name, s.housePath("quarantine", fmt.Sprintf("%s.0.%d.replaced", name, time.Now().UnixNano())))
}
