package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// fillDisk works in a directory, n times on a disk that has become full: until a
// step fails. What was acknowledged must still be there then, the error must tell
// why, and the same step, with the same handles, must work when there is room.
func fillDisk(ctx context.Context, dir string, n int) error {
	w, err := newDiskWorld(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.record)
	failed := make(map[string]int)
	for range n {
		for range 3 {
			if err := w.next(ctx); err != nil {
				return fmt.Errorf("there is room: %w", err)
			}
		}
		if err := w.fill(); err != nil {
			return err
		}
		var stepErr error
		for stepErr == nil {
			stepErr = w.next(ctx)
		}
		if !strings.Contains(stepErr.Error(), syscall.ENOSPC.Error()) {
			return fmt.Errorf("the disk is full: %w", stepErr)
		}
		failed[w.op]++
		// What is there must be there while the disk is still full.
		if err := w.compareFailed(ctx); err != nil {
			return fmt.Errorf("after %w: %w", stepErr, err)
		}
		if err := os.Remove(w.ballast()); err != nil {
			return err
		}
		if err := w.next(ctx); err != nil {
			return fmt.Errorf("there is room again, after %w: %w", stepErr, err)
		}
		under, err := load[begin](beginPath(w.record, w.step-1))
		if err != nil {
			return err
		}
		if err := fsck(ctx, dir, under); err != nil {
			return fmt.Errorf("after %w: %w", stepErr, err)
		}
	}
	if err := w.checkSpecial(ctx); err != nil {
		return err
	}
	fmt.Printf("%d steps, %d of them failed on a full disk and worked when there was room: %v; handles that had to be opened again: %d\n",
		w.step, n, failed, w.refused)
	return w.close()
}

// newDiskWorld keeps its record on another disk.
func newDiskWorld(dir string) (*world, error) {
	record, err := os.MkdirTemp("", "crash")
	if err != nil {
		return nil, err
	}
	return newWorld(dir, "session", record)
}

func (w *world) ballast() string { return filepath.Join(w.dir, "ballast") }

// fill leaves between nothing and some blocks on the disk.
func (w *world) fill() (err error) {
	f, err := os.OpenFile(w.ballast(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for size := 1 << 20; size >= 512; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	left := int64(w.rand.IntN(10)) << 12
	if err := f.Truncate(max(0, end-left)); err != nil {
		return err
	}
	return f.Sync()
}

// compareFailed holds what is there after a step that failed against what was
// there before it.
func (w *world) compareFailed(ctx context.Context) error {
	before, err := load[snapshot](endPath(w.record, w.step-1))
	if err != nil {
		return err
	}
	under, err := load[begin](beginPath(w.record, w.step))
	if err != nil {
		return err
	}
	found, err := look(ctx, w.st)
	if err != nil {
		return err
	}
	return errors.Join(compare(before, under, nil, found), found.checkBlobs(ctx, w.st))
}

func (w *world) checkSpecial(ctx context.Context) error {
	return errors.Join(w.checkKeyed(), w.checkTalk(), w.checkImport(ctx), checkSecrets(w.dir, w.state.Redacted))
}

// failWrites works in a directory until a write to the disk has failed and for
// some steps more, and puts down which entries must be there when the disk is
// mounted again: the page cache may hold more than the disk does. The signal USR1
// makes the process pid fail its next write.
func failWrites(ctx context.Context, dir string, pid int) error {
	record := recordDir()
	w, err := newWorld(dir, "session", record)
	if err != nil {
		return err
	}
	disk, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	k := kept{}
	if old, err := load[kept](keptPath(record)); err != nil {
		return err
	} else if old != nil {
		k = *old
	}
	prev, err := look(ctx, w.st)
	if err != nil {
		return err
	}
	failed, after, quiet := "", 0, 5+rand.IntN(20)
	for i := range 90 {
		if i == quiet {
			if err := disk.Signal(failNext); err != nil {
				return err
			}
		}
		stepErr := w.next(ctx)
		now, err := look(ctx, w.st)
		if err != nil {
			return fmt.Errorf("looking at the store: %w", errors.Join(err, stepErr))
		}
		if stepErr == nil {
			k.add(prev, now)
		} else {
			text := stepErr.Error()
			if !strings.Contains(text, syscall.EIO.Error()) && !strings.Contains(text, syscall.EROFS.Error()) {
				return stepErr
			}
			failed = w.op
			now.State = w.state
			if err := save(endPath(record, w.step), now); err != nil { // go on with the next
				return err
			}
			w.step++
			if strings.Contains(text, syscall.EROFS.Error()) {
				failed += ", and the file system became read-only"
				break
			}
		}
		k.drop(now)
		prev = now
		if failed != "" {
			if after++; after > 10 {
				break
			}
		}
	}
	fmt.Printf("failed in %q, %d steps, %d handles had to be opened again\n", failed, w.step, w.refused)
	if err := save(keptPath(record), k); err != nil {
		return err
	}
	_ = w.close() // it says what had failed
	return nil
}

// kept are the entries that steps which succeeded have added, by log.
type kept map[string][]string

func keptPath(record string) string { return filepath.Join(record, "kept") }

// everything returns the ids of all logs, those in the trash too.
func (s *snapshot) everything() map[string][]string {
	all := make(map[string][]string)
	for name, c := range s.Logs {
		all[name] = append(all[name], whole(c.IDs)...)
	}
	for _, t := range s.Trash {
		all[t.Name] = append(all[t.Name], whole(t.IDs)...)
	}
	return all
}

func (k kept) add(prev, now *snapshot) {
	old := prev.everything()
	for name, ids := range now.everything() {
		for _, id := range ids {
			if !slices.Contains(old[name], id) {
				k[name] = append(k[name], id)
			}
		}
	}
}

// drop forgets the logs that were deleted for good.
func (k kept) drop(now *snapshot) {
	all := now.everything()
	for name := range k {
		if all[name] == nil {
			delete(k, name)
		}
	}
}

// checkKept makes sure, after the disk was mounted again, that what was
// acknowledged is there and that the work can go on.
func checkKept(ctx context.Context, dir string) error {
	record := recordDir()
	k, err := load[kept](keptPath(record))
	if err != nil || k == nil {
		return err
	}
	w, err := newWorld(dir, "session", record)
	if err != nil {
		return err
	}
	now, err := look(ctx, w.st)
	if err != nil {
		return err
	}
	wrong := []error{now.checkBlobs(ctx, w.st)}
	all := now.everything()
	for name, ids := range *k {
		for _, id := range ids {
			if !slices.Contains(all[name], id) {
				wrong = append(wrong, fmt.Errorf("%s: entry %s is lost", name, id))
			}
		}
	}
	wrong = append(wrong, w.checkContinues(ctx), w.checkKeyed(), w.checkTalk(), w.checkImport(ctx), fsck(ctx, dir, nil), w.close())
	return errors.Join(wrong...)
}
