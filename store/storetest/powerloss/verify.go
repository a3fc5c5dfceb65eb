package powerloss

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

var blobRef = regexp.MustCompile(`"blob":"(sha256:[0-9a-f]{64})"`)

// Check returns what is wrong with a directory in which Work was interrupted
// after the given step was acknowledged and before the one after the next was.
func Check(dir string, step int) error {
	before, after, err := expected(step)
	if err != nil {
		return fmt.Errorf("doing the work again: %w", err)
	}
	ctx := context.Background()
	st, err := file.Open(filepath.Join(dir, "sessions"), nil)
	if err != nil {
		return err
	}
	defer st.Close()
	found, err := logs(ctx, st)
	if err != nil {
		return err
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, known := before[name]
		if err := checkLog(ctx, st, name, was, known, after[name], found); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		delete(found, name)
	}
	for name := range found {
		wrong = append(wrong, fmt.Errorf("%s: nobody made it", name))
	}
	return errors.Join(wrong...)
}

// expected does the work again in memory, and returns the logs after the step
// and after the next one, which was under way.
func expected(step int) (before, after map[string]kept, err error) {
	p, err := newPlan("/sessions", file.Options{FS: vfs.NewMemory()})
	if err != nil {
		return nil, nil, err
	}
	defer p.store.Close()
	for k := range min(step+2, Steps) {
		if err := p.step(k); err != nil {
			return nil, nil, err
		}
		before, after = after, nil
		if k < step {
			continue
		}
		if after, err = logs(context.Background(), p.store); err != nil {
			return nil, nil, err
		}
	}
	if step+1 >= Steps {
		before = after
	}
	return before, after, nil
}

// checkLog holds a log against what it was and what it was about to become.
func checkLog(ctx context.Context, st *file.Store, name string, was kept, known bool, next kept, found map[string]kept) error {
	got, ok := found[name]
	switch {
	case !ok && known:
		return errors.New("it is lost")
	case !ok:
		return nil // it was being made
	case got.trash != "" && was.trash == "" && next.trash == "":
		return errors.New("it is in the trash")
	case got.trash == "" && was.trash != "" && next.trash != "":
		return errors.New("it is out of the trash again")
	case got.trash != "":
		return restoreAndCheck(ctx, st, name, got, was, next)
	}
	// It is made whole or not at all, and moved without a change.
	if !known || was.trash != "" {
		was = next
	}
	if next.trash != "" {
		next = was
	}
	return checkLines(ctx, st, name, got.lines, was.lines, next.lines)
}

func restoreAndCheck(ctx context.Context, st *file.Store, name string, got, was, next kept) error {
	if err := st.Restore(ctx, got.trash); err != nil {
		return err
	}
	log, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close()
	lines, err := read(ctx, log)
	if err != nil {
		return err
	}
	// Nothing is appended while a log is in the trash: the longer one is all.
	want := was.lines
	if len(want) < len(next.lines) {
		want = next.lines
	}
	return checkLines(ctx, st, name, lines, want, want)
}

// checkLines makes sure that the lines are those before the step under way and
// the first few of those it added, that the blobs they name are there, and that
// the session can be continued.
func checkLines(ctx context.Context, st *file.Store, name string, got, was, next []string) error {
	if len(got) < len(was) || len(got) > len(next) {
		return fmt.Errorf("%d lines, want %d to %d", len(got), len(was), len(next))
	}
	for i, line := range got {
		if line != next[i] {
			return fmt.Errorf("line %d is %.80q, want %.80q", i+1, line, next[i])
		}
	}
	for _, line := range got {
		for _, match := range blobRef.FindAllStringSubmatch(line, -1) {
			if _, err := st.Blobs().Get(ctx, store.Ref(match[1])); err != nil {
				return err
			}
		}
	}
	return checkContinues(ctx, st, name)
}

// checkContinues appends to a session and reads it back.
func checkContinues(ctx context.Context, st *file.Store, name string) error {
	s, err := session.Open(ctx, st, name, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	say := func() (string, error) {
		return s.AppendMessage(session.RoleUser, []session.Content{session.Text("after the cut")})
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
	again, err := session.Open(ctx, st, name, nil)
	if err != nil {
		return err
	}
	defer again.Close()
	if again.LeafID() != id {
		return fmt.Errorf("after an append the leaf is %q, want %q", again.LeafID(), id)
	}
	return nil
}
