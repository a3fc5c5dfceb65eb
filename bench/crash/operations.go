package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// operation is something to do to the store. What it is, it says with begins
// before it does it. If there is nothing that it could be done to, it returns
// errNothing and has changed nothing.
type operation struct {
	name string
	do   func(*world, context.Context) error
}

// operations are what steps are chosen from. Those that many others need come
// more than once.
var operations = []operation{
	{"create", (*world).create},
	{"append", (*world).say},
	{"append", (*world).say},
	{"append", (*world).say},
	{"batch", (*world).batch},
	{"batch", (*world).batch},
	{"blobs", (*world).tools},
	{"blobs", (*world).tools},
	{"label", (*world).label},
	{"tag", (*world).tag},
	{"branch", (*world).branch},
	{"compact", (*world).compact},
	{"compact", (*world).compact},
	{"undo", (*world).undo},
	{"fork", (*world).fork},
	{"fork-from", (*world).forkFrom},
	{"branched-session", (*world).branchedSession},
	{"archive", (*world).archive},
	{"archive", (*world).archive},
	{"unarchive", (*world).unarchive},
	{"append-to-archived", (*world).sayArchived},
	{"remove", (*world).remove},
	{"restore", (*world).restore},
	{"restore", (*world).restore},
	{"empty-trash", (*world).emptyTrash},
	{"secret", (*world).plant},
	{"secret", (*world).plant},
	{"redact", (*world).redact},
	{"rewrite", (*world).rewrite},
	{"flush", (*world).flush},
	{"flush", (*world).flush},
	{"keyed-add", (*world).keyedAdd},
	{"keyed-save", (*world).keyedSave},
	{"keyed-summary", (*world).keyedSummary},
	{"conversation", (*world).talk},
	{"conversation", (*world).talk},
	{"import", (*world).importMore},
	{"import-again", (*world).importAgain},
	{"cli-append", (*world).cliAppend},
	{"cli-branch", (*world).cliBranch},
	{"cli-compact", (*world).cliCompact},
	{"cli-fork", (*world).cliFork},
	{"cli-archive", (*world).cliArchive},
	{"cli-unarchive", (*world).cliUnarchive},
	{"cli-rm", (*world).cliRemove},
	{"cli-restore", (*world).cliRestore},
	{"cli-redact", (*world).cliRedact},
	{"cli-repair", (*world).cliRepair},
	{"cli-import", (*world).cliImport},
	{"cli-export", (*world).cliExport},
	{"cli-index", (*world).cliIndex},
	{"cli-tag", (*world).cliTag},
	{"cli-retain", (*world).cliRetain},
	{"cli-collect-blobs", (*world).cliCollect},
}

const maxSessions = 14 // ordinary ones

// room returns errNothing if there are sessions enough.
func (w *world) room(ctx context.Context) error {
	ordinary, _, err := w.stats(ctx)
	if err == nil && len(ordinary) >= maxSessions {
		err = errNothing
	}
	return err
}

func (w *world) create(ctx context.Context) error {
	if err := w.room(ctx); err != nil {
		return err
	}
	if err := w.begins(begin{Targets: none, Creates: true}); err != nil {
		return err
	}
	s, err := session.Create(ctx, w.st, session.Header{}, w.options())
	if err != nil {
		return err
	}
	w.open[s.ID()] = s
	return nil
}

// to picks a session that one may append to, and calls do with it.
func (w *world) to(ctx context.Context, do func(*session.Session) error) error {
	name, err := w.choose(ctx, small, begin{Appends: true})
	if err != nil {
		return err
	}
	return w.with(ctx, name, do)
}

func (w *world) say(ctx context.Context) error {
	text := w.text(40 + w.rand.IntN(400))
	return w.to(ctx, func(s *session.Session) error {
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		return err
	})
}

// batch appends several messages with one write, from a few bytes to some blocks.
func (w *world) batch(ctx context.Context) error {
	user, assistant := w.text(40+w.rand.IntN(1000)), w.text(40+w.rand.IntN(16_000))
	return w.to(ctx, func(s *session.Session) error {
		_, err := s.AppendAll(
			session.Message(session.RoleUser, session.Text(user)),
			session.Message(session.RoleAssistant, session.Text(assistant)),
			session.Message(session.RoleUser, session.Text(user)),
		)
		return err
	})
}

// tools appends a call, its result and an image, which become blobs. The image is
// one of a few, so that often its blob is there already.
func (w *world) tools(ctx context.Context) error {
	call, result := fmt.Sprintf("call-%d", w.step), w.text(5000+w.rand.IntN(8000))
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fmt.Sprintf("image %d ", w.rand.IntN(5)), 1200)))
	return w.to(ctx, func(s *session.Session) error {
		_, err := s.AppendAll(
			session.Message(session.RoleAssistant, session.ToolUse(call, "read", map[string]any{"step": w.step})),
			session.Message(session.RoleTool, session.ToolResult(call, result, false)),
			session.Message(session.RoleUser, session.Image("image/png", image)),
		)
		return err
	})
}

// flush appends through a store that does not sync by itself, then flushes it.
func (w *world) flush(ctx context.Context) error {
	if w.lazily != nil { // what it wrote was flushed
		err := w.lazily.Close()
		if w.lazily = nil; err != nil {
			return err
		}
	}
	name, err := w.choose(ctx, small, begin{Appends: true})
	if err != nil {
		return err
	}
	if w.lazily, err = session.Open(ctx, w.lazy, name, w.options()); err != nil {
		return err
	}
	for range 3 {
		if _, err := w.lazily.AppendMessage(session.RoleUser, []session.Content{session.Text(w.text(300))}); err != nil {
			return err
		}
	}
	return w.lazily.Flush(ctx)
}

func (w *world) label(ctx context.Context) error {
	return w.to(ctx, func(s *session.Session) error {
		if s.LeafID() == "" {
			_, err := s.AppendSessionInfo(w.text(10))
			return err
		}
		_, err := s.SetLabel(s.LeafID(), w.text(10))
		return err
	})
}

func (w *world) tag(ctx context.Context) error {
	return w.to(ctx, func(s *session.Session) error {
		_, err := s.AppendEntry(session.Tags(fmt.Sprintf("tag-%d", w.step)))
		return err
	})
}

// earlier picks a session with a path that is long enough to go back on, and an
// entry on it.
func (w *world) earlier(ctx context.Context) (name, id string, err error) {
	if name, err = w.pick(ctx, small); err != nil {
		return "", "", err
	}
	err = w.with(ctx, name, func(s *session.Session) error {
		shape, err := s.Shape()
		if err != nil {
			return err
		}
		path := shape.Path(shape.Leaf())
		if len(path) < 3 {
			return errNothing
		}
		id = shape.ID(path[1])
		return nil
	})
	return name, id, err
}

func (w *world) branch(ctx context.Context) error {
	name, id, err := w.earlier(ctx)
	if err != nil {
		return err
	}
	if err := w.appends(name); err != nil {
		return err
	}
	return w.with(ctx, name, func(s *session.Session) error { return s.Branch(id) })
}

func (w *world) compact(ctx context.Context) error {
	summary := w.text(300)
	return w.to(ctx, func(s *session.Session) error {
		plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 2, Count: func(session.Entry) int { return 1 }})
		if errors.Is(err, session.ErrNothingToCompact) {
			return errNothing
		}
		if err == nil {
			_, err = s.AppendCompaction(summary, plan.FirstKept, 1000)
		}
		return err
	})
}

func (w *world) undo(ctx context.Context) error {
	name, err := w.choose(ctx, small, begin{Appends: true})
	if err != nil {
		return err
	}
	return w.with(ctx, name, func(s *session.Session) error {
		_, err := s.Undo()
		if errors.Is(err, session.ErrNotExist) { // no compaction is in force
			_, err = s.AppendSessionInfo(w.text(10))
		}
		return err
	})
}

// source picks a session to make another of.
func (w *world) source(ctx context.Context) (string, error) {
	if err := w.room(ctx); err != nil {
		return "", err
	}
	name, err := w.pick(ctx, anyLog)
	if err == nil {
		err = w.begins(begin{Targets: none, Creates: true})
	}
	return name, err
}

func (w *world) fork(ctx context.Context) error {
	name, err := w.source(ctx)
	if err != nil {
		return err
	}
	return w.with(ctx, name, func(s *session.Session) error {
		fork, err := s.Fork(ctx, w.st, &session.ForkOptions{Options: w.options()})
		if err == nil {
			w.open[fork.ID()] = fork
		}
		return err
	})
}

func (w *world) forkFrom(ctx context.Context) error {
	name, err := w.source(ctx)
	if err != nil {
		return err
	}
	s, err := session.ForkFrom(w.st.Path(name), w.st.Where())
	if err != nil {
		return err
	}
	return s.Close()
}

func (w *world) branchedSession(ctx context.Context) error {
	name, id, err := w.earlier(ctx)
	if err != nil {
		return err
	}
	if err := w.begins(begin{Targets: none, Creates: true}); err != nil {
		return err
	}
	return w.with(ctx, name, func(s *session.Session) error {
		_, err := s.CreateBranchedSession(id)
		return err
	})
}

func (w *world) archive(ctx context.Context) error {
	name, err := w.choose(ctx, plain, begin{})
	if err != nil {
		return err
	}
	return w.st.Archive(ctx, name)
}

func (w *world) unarchive(ctx context.Context) error {
	name, err := w.choose(ctx, archived, begin{})
	if err != nil {
		return err
	}
	return w.st.Unarchive(ctx, name)
}

// sayArchived appends to an archived session, which brings the plain file back.
func (w *world) sayArchived(ctx context.Context) error {
	name, err := w.choose(ctx, archived, begin{Appends: true})
	if err != nil {
		return err
	}
	return w.with(ctx, name, func(s *session.Session) error {
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(w.text(100))})
		return err
	})
}

func (w *world) remove(ctx context.Context) error {
	name, err := w.choose(ctx, anyLog, begin{Moves: true})
	if err != nil {
		return err
	}
	return w.st.Remove(ctx, name)
}

// removed picks a removal that can be restored.
func (w *world) removed(ctx context.Context) (store.Trashed, error) {
	trash, err := w.st.Trash().List(ctx)
	if err != nil {
		return store.Trashed{}, err
	}
	for _, item := range trash {
		if log, err := w.st.Open(ctx, item.Name); err == nil {
			log.Close()
			continue // an interrupted removal left it in both places
		}
		return item, w.begins(begin{Targets: []string{item.Name}, Moves: true})
	}
	return store.Trashed{}, errNothing
}

func (w *world) restore(ctx context.Context) error {
	item, err := w.removed(ctx)
	if err != nil {
		return err
	}
	return w.st.Trash().Restore(ctx, item.ID)
}

func (w *world) emptyTrash(ctx context.Context) error {
	trash, err := w.st.Trash().List(ctx)
	if err == nil && len(trash) == 0 {
		err = errNothing
	}
	if err == nil {
		err = w.begins(begin{Targets: none, Empties: true})
	}
	if err != nil {
		return err
	}
	_, err = w.st.Trash().Empty(ctx, time.Now())
	return err
}

// rewrite replaces the log by a copy of itself with a different first line.
func (w *world) rewrite(ctx context.Context) error {
	name, err := w.choose(ctx, anyLog, begin{Rewrites: true})
	if err != nil {
		return err
	}
	raw, err := w.st.OpenRaw(ctx, name)
	if err != nil {
		return err
	}
	defer raw.Close()
	_, err = raw.Rewrite(ctx, func(yield func(store.Piece, error) bool) {
		first := true
		for line, err := range raw.Lines(ctx) {
			data := append([]byte(nil), line.Data...)
			if first { // positions of older handles are void
				data = append(data[:len(data)-1], fmt.Sprintf(`,"rewritten_%d":true}`, w.step)...)
			}
			first = false
			if !yield(store.Piece{Line: data}, err) || err != nil {
				return
			}
		}
	})
	return err
}
