package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// The operations of the command line, each in a process of its own.

func (w *world) cliAppend(ctx context.Context) error {
	name, err := w.choose(ctx, small, begin{Appends: true})
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "append", name, "--role", "user", w.text(100))
	return err
}

func (w *world) cliBranch(ctx context.Context) error {
	name, id, err := w.earlier(ctx)
	if err == nil {
		err = w.appends(name)
	}
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "branch", name, id)
	return err
}

func (w *world) cliCompact(ctx context.Context) error {
	name, id, err := w.earlier(ctx)
	if err == nil {
		err = w.appends(name)
	}
	if err != nil {
		return err
	}
	// The entry may be one before which there must be no cut: a usage error.
	_, err = w.cli(ctx, []int{1, 2}, "compact", name, "--first-kept", id, "--summary", w.text(50))
	return err
}

func (w *world) cliFork(ctx context.Context) error {
	name, err := w.source(ctx)
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "fork", name)
	return err
}

func (w *world) cliArchive(ctx context.Context) error { return w.cliForm(ctx, "archive", plain) }

func (w *world) cliUnarchive(ctx context.Context) error { return w.cliForm(ctx, "unarchive", archived) }

func (w *world) cliRemove(ctx context.Context) error {
	name, err := w.choose(ctx, anyLog, begin{Moves: true})
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "rm", "--force", name)
	return err
}

func (w *world) cliRestore(ctx context.Context) error {
	item, err := w.removed(ctx)
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "trash", "restore", item.ID)
	return err
}

func (w *world) cliRepair(ctx context.Context) error {
	name, err := w.choose(ctx, plain, begin{Appends: true, Rewrites: true, Damages: true})
	if err != nil {
		return err
	}
	// A line that is none, by somebody who does not know better.
	f, err := os.OpenFile(w.st.Path(name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("this is no entry\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "repair", name)
	return err
}

func (w *world) cliExport(ctx context.Context) error {
	name, err := w.pick(ctx, anyLog)
	if err == nil {
		err = w.begins(begin{Targets: none})
	}
	if err != nil {
		return err
	}
	format := []string{"md", "html", "json", "jsonl"}[w.rand.IntN(4)]
	_, err = w.cli(ctx, nil, "export", name, "--force", "-o", filepath.Join(w.dir, "source", "export."+format))
	return err
}

func (w *world) cliIndex(ctx context.Context) error {
	if _, err := w.pick(ctx, anyLog); err != nil {
		return err
	}
	if err := w.begins(begin{Targets: none}); err != nil {
		return err
	}
	if w.rand.IntN(2) == 0 {
		_, err := w.cli(ctx, nil, "index", "rebuild")
		return err
	}
	// It finds nothing, exit 1, if the worker was killed before it said anything.
	_, err := w.cli(ctx, []int{1}, "search", "step")
	return err
}

func (w *world) cliTag(ctx context.Context) error {
	name, err := w.choose(ctx, small, begin{Appends: true})
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "tag", name, fmt.Sprintf("+cli-%d", w.step))
	return err
}

func (w *world) cliForm(ctx context.Context, command string, want func(store.Stat) bool) error {
	name, err := w.choose(ctx, want, begin{})
	if err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, command, name)
	return err
}

// cliRetain removes the oldest session. The special ones are pinned first.
func (w *world) cliRetain(ctx context.Context) error {
	ordinary, special, err := w.stats(ctx)
	if err != nil {
		return err
	}
	if len(ordinary) < 5 {
		return errNothing
	}
	for _, stat := range special {
		var now session.Remarks
		err := w.with(ctx, stat.Name, func(s *session.Session) (err error) {
			now, err = s.Remarks()
			return err
		})
		if err != nil {
			return err
		}
		if !now.Pinned { // that is a step of its own
			w.op = "pin"
			if err := w.appends(stat.Name); err != nil {
				return err
			}
			return w.with(ctx, stat.Name, func(s *session.Session) error {
				_, err := s.AppendEntry(session.Pinned(true))
				return err
			})
		}
	}
	if err := w.begins(begin{Moves: true}); err != nil {
		return err
	}
	_, err = w.cli(ctx, nil, "retain", "--max-count", fmt.Sprint(len(ordinary)-1))
	return err
}

// cliCollect deletes the blobs that nothing refers to.
func (w *world) cliCollect(ctx context.Context) error {
	if _, err := w.pick(ctx, anyLog); err != nil {
		return err
	}
	if err := w.begins(begin{Targets: none}); err != nil {
		return err
	}
	out, err := w.cli(ctx, []int{exitUsage}, "repair", "--blobs")
	if strings.Contains(out, "unknown flag") {
		return errNothing
	}
	return err
}
