package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// check returns what is wrong with a directory in which the work was interrupted
// after a step was acknowledged and before the one after the next was.
func check(ctx context.Context, dir, record string, step int) error {
	before, err := load[snapshot](endPath(record, step))
	if err != nil {
		return err
	}
	if before == nil {
		before = &snapshot{}
		if step >= 0 {
			return fmt.Errorf("step %d is not on record", step)
		}
	}
	under, err := load[begin](beginPath(record, step+1))
	if err != nil {
		return err
	}
	next, err := load[snapshot](endPath(record, step+1))
	if err != nil {
		return err
	}
	if err := checkStore(ctx, dir, before, under, next); err != nil {
		return err
	}
	if _, err = goOn(ctx, dir, before, under); err != nil {
		return err
	}
	if out, code, err := runCLI(ctx, dir, "search", "step"); err != nil || code != 0 && code != exitNotFound {
		return fmt.Errorf("search: exit %d, %w\n%s", code, err, out)
	}
	return fsck(ctx, dir, nil)
}

// checkStore holds what is there against what must be.
func checkStore(ctx context.Context, dir string, before *snapshot, under *begin, next *snapshot) error {
	st, err := file.Open(sessionsIn(dir), nil)
	if err != nil {
		return err
	}
	defer st.Close()
	found, err := look(ctx, st)
	if err != nil {
		return err
	}
	return errors.Join(compare(before, under, next, found), found.checkBlobs(ctx, st), fsck(ctx, dir, under))
}

// fsck runs the program's own check, which must find no fault. While a step is
// under way that damages a session, so that it can be repaired, there may be one.
func fsck(ctx context.Context, dir string, under *begin) error {
	out, code, err := runCLI(ctx, dir, "fsck")
	if err != nil || code == exitNotFound { // there is no store yet
		return err
	}
	if code != 0 && (under == nil || !under.Damages) {
		return fmt.Errorf("fsck: exit %d\n%s", code, out)
	}
	return nil
}

// goOn does what somebody does after a crash: works, without any repair. It
// returns what there is then.
func goOn(ctx context.Context, dir string, before *snapshot, under *begin) (*snapshot, error) {
	record, err := os.MkdirTemp("", "crash")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(record)
	w, err := newWorld(dir, "session", record)
	if err != nil {
		return nil, err
	}
	w.state = before.State
	if under != nil && strings.HasSuffix(under.Op, "redact") {
		// One that was cut short is completed by the next.
		said, err := w.cli(ctx, []int{exitPartial}, "redact", "--all", "--apply")
		if err != nil {
			return nil, err
		}
		if _, err := w.cli(ctx, nil, "index", "rebuild"); under.Op == "redact" && err != nil {
			return nil, err
		}
		if err := w.noteRedacted(ctx, said); err != nil {
			return nil, err
		}
	}
	if under != nil && under.Damages {
		// The damage is done, and somebody repairs it.
		if _, err := w.cli(ctx, nil, "repair", under.Targets[0]); err != nil {
			return nil, err
		}
	}
	wrong := []error{
		w.checkContinues(ctx), w.checkKeyed(), w.checkTalk(), w.checkImport(ctx),
		checkSecrets(dir, w.state.Redacted),
	}
	now, err := look(ctx, w.st)
	if err == nil {
		now.State = w.state
	}
	return now, errors.Join(append(wrong, err, w.close())...)
}

// checkContinues appends to the sessions and reads back what it appended.
func (w *world) checkContinues(ctx context.Context) error {
	ordinary, _, err := w.stats(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, stat := range ordinary {
		if err := w.checkAppend(ctx, stat.Name); err != nil {
			wrong = append(wrong, fmt.Errorf("going on with %s: %w", stat.Name, err))
		}
	}
	return errors.Join(wrong...)
}

func (w *world) checkAppend(ctx context.Context, name string) error {
	s, err := session.Open(ctx, w.st, name, w.options())
	if err != nil {
		return err
	}
	defer s.Close()
	say := func() (string, error) {
		return s.AppendMessage(session.RoleUser, []session.Content{session.Text("after the crash")})
	}
	id, err := say()
	if errors.Is(err, session.ErrConflict) { // a repair completed a line
		if _, err := s.Refresh(); err != nil {
			return err
		}
		id, err = say()
	}
	if err != nil {
		return err
	}
	again, err := session.Open(ctx, w.st, name, nil)
	if err != nil {
		return err
	}
	defer again.Close()
	if again.LeafID() != id {
		return fmt.Errorf("after an append the leaf is %q, want %q", again.LeafID(), id)
	}
	return nil
}

// checkSecrets makes sure that secrets are nowhere.
func checkSecrets(dir string, secrets []string) error {
	var wrong []error
	for _, secret := range secrets {
		for _, path := range whereIs(dir, secret) {
			wrong = append(wrong, fmt.Errorf("%s has the redacted secret %s", path, secret))
		}
	}
	return errors.Join(wrong...)
}

// whereIs looks for a secret in every byte of every file, and returns the files.
// What was exported is not among them: that, the user has to think of.
func whereIs(dir, secret string) (paths []string) {
	for _, part := range []string{sessionsIn(dir), filepath.Join(dir, "home")} {
		_ = filepath.WalkDir(part, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			data, _ := os.ReadFile(path)
			if strings.HasSuffix(path, ".zst") {
				if z, err := zstd.NewReader(bytes.NewReader(data)); err == nil {
					data, _ = io.ReadAll(z)
					z.Close()
				}
			}
			if bytes.Contains(data, []byte(secret)) {
				paths = append(paths, path)
			}
			return nil
		})
	}
	return paths
}
