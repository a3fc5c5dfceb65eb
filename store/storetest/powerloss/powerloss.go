// Package powerloss is work on sessions whose every step can be checked after a
// power cut on a real file system. It is the payload of a block-level crash
// harness: a disk that logs each block written and each flush, from which the
// disk is rebuilt as a power cut could have left it (everything before the last
// flush, and some sectors of the rest), mounted, and checked. The harness is not
// part of this module; its protocol is:
//
//	worker DIR MODE     does the work in DIR. After each step it prints
//	                    "acked FILE K" and waits for a line on standard input.
//	check check DIR K   looks at DIR after a cut, K being the last step that was
//	                    acknowledged before it (-1: none). It exits with 1, and
//	                    says what is missing, if anything acknowledged is.
//
// The work is the same every time: ids and times are counted, not drawn. The
// checker does it again in memory, and so knows every byte that must be there.
package powerloss

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Steps is how many steps the work has.
const Steps = 120

// Work does the steps of a mode in a directory and calls acked after each, with
// the log that it was done to. The mode "session" is the store as it is. The
// others leave out a sync and must be caught: "nosync" all of them,
// "nodirsync" those of directories, "renamenosync" that of a file before it is
// renamed into its place.
func Work(dir, mode string, acked func(name string, step int)) error {
	opts := file.Options{FS: vfs.OS{}}
	switch mode {
	case "session":
	case "nosync":
		opts.Sync = file.Never
	case "nodirsync":
		opts.FS = careless{FS: vfs.OS{}, dirs: true}
	case "renamenosync":
		opts.FS = careless{FS: vfs.OS{}, tmp: true}
	default:
		return fmt.Errorf("unknown mode %q", mode)
	}
	p, err := newPlan(filepath.Join(dir, "sessions"), opts)
	if err != nil {
		return err
	}
	for step := range Steps {
		if err := p.step(step); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		acked(p.at.ID(), step)
	}
	return p.store.Close()
}

// careless is a file system that leaves out syncs.
type careless struct {
	vfs.FS
	dirs bool // of directories
	tmp  bool // of files that are about to be renamed
}

func (c careless) SyncDir(name string) error {
	if c.dirs {
		return nil
	}
	return c.FS.SyncDir(name)
}

func (c careless) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil || !c.tmp || filepath.Base(filepath.Dir(name)) != "tmp" {
		return f, err
	}
	return carelessFile{f}, nil
}

type carelessFile struct{ vfs.File }

func (carelessFile) Sync() error { return nil }

// plan is the work in progress.
type plan struct {
	store *file.Store
	at    *session.Session // the one that is worked on
	ids   int
}

func newPlan(dir string, opts file.Options) (*plan, error) {
	st, err := file.Open(dir, &opts)
	return &plan{store: st}, err
}

// options counts ids and times, so that they are the same every time.
func (p *plan) options() *session.Options {
	return &session.Options{
		BlobThreshold: 1 << 10,
		NewID: func(t session.EntryType) string {
			p.ids++
			return fmt.Sprintf("%s-%05d", t, p.ids)
		},
		Now: func() time.Time { return time.Unix(1_700_000_000+int64(p.ids), 0) },
	}
}

// step does the k-th step. Each round of 20 begins with a new session.
func (p *plan) step(k int) error {
	ctx := context.Background()
	switch round := k % 20; round {
	case 0:
		return p.adopt(session.Create(ctx, p.store, session.Header{}, p.options()))
	case 4, 14:
		return p.tools(k)
	case 5:
		leaf := p.at.LeafID()
		_, err := p.at.SetLabel(leaf, fmt.Sprintf("label %d", k))
		return err
	case 6:
		path, err := p.at.PathTo("")
		if err != nil {
			return err
		}
		return p.at.Branch(path[1].ID)
	case 8, 17:
		return p.compact(k)
	case 9:
		_, err := p.at.Undo()
		return err
	case 10:
		return p.adopt(p.at.Fork(ctx, p.store, p.options()))
	case 12:
		_, err := p.at.CreateBranchedSession(p.at.LeafID())
		return err
	case 13:
		return p.store.Archive(ctx, p.at.ID()) // the next step brings it back
	case 15:
		return p.store.Remove(ctx, p.at.ID())
	case 16:
		return p.restore(ctx)
	case 18:
		return p.reopen(ctx)
	default:
		return p.talk(k)
	}
}

// adopt goes on with another session.
func (p *plan) adopt(s *session.Session, err error) error {
	if err != nil {
		return err
	}
	if p.at != nil {
		err = p.at.Close()
	}
	p.at = s
	return err
}

func (p *plan) reopen(ctx context.Context) error {
	return p.adopt(session.Open(ctx, p.store, p.at.ID(), p.options()))
}

func (p *plan) restore(ctx context.Context) error {
	trash, err := p.store.Trash(ctx)
	if err != nil {
		return err
	}
	for _, item := range trash {
		if item.Name == p.at.ID() {
			if err := p.store.Restore(ctx, item.ID); err != nil {
				return err
			}
			return p.reopen(ctx)
		}
	}
	return errors.New("the removed session is not in the trash")
}

// talk appends several messages with one write, from a few bytes to some blocks.
func (p *plan) talk(k int) error {
	_, err := p.at.AppendAll(
		message(session.RoleUser, session.Text(text(k, 40+k*7))),
		message(session.RoleAssistant, session.Text(text(k, 40+k*k))),
	)
	return err
}

// tools appends a call, its result and an image, which become blobs.
func (p *plan) tools(k int) error {
	call := fmt.Sprintf("call-%d", k)
	image := base64.StdEncoding.EncodeToString([]byte(text(-k, 9000)))
	_, err := p.at.AppendAll(
		message(session.RoleAssistant, session.ToolUse(call, "read", map[string]any{"step": k})),
		message(session.RoleTool, session.ToolResult(call, text(k, 5000+k*100), false)),
		message(session.RoleUser, session.Image("image/png", image)),
	)
	return err
}

func (p *plan) compact(k int) error {
	cuts, err := p.at.PlanCompaction(2, func(session.Entry) int { return 1 })
	if err != nil {
		return err
	}
	_, err = p.at.AppendCompaction(text(k, 300), cuts.FirstKept, 1000)
	return err
}

func message(role session.MessageRole, content ...session.Content) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: string(role), Content: content}}
}

// text is text of a length that only this step has.
func text(k, size int) string {
	word := fmt.Sprintf("step %d says so; ", k)
	return strings.Repeat(word, size/len(word)+1)
}

// logs returns the lines of every log, and where it is.
func logs(ctx context.Context, st *file.Store) (map[string]kept, error) {
	all := make(map[string]kept)
	for stat, err := range st.List(ctx) {
		if err != nil {
			return nil, err
		}
		log, err := st.Open(ctx, stat.Name)
		if err != nil {
			return nil, err
		}
		lines, err := read(ctx, log)
		if err := errors.Join(err, log.Close()); err != nil {
			return nil, err
		}
		all[stat.Name] = kept{lines: lines}
	}
	trash, err := st.Trash(ctx)
	for _, item := range trash {
		if _, restored := all[item.Name]; !restored {
			all[item.Name] = kept{trash: item.ID}
		}
	}
	return all, err
}

// kept is a log and where it is.
type kept struct {
	lines []string
	trash string // what restores it, if it is in the trash
}

func read(ctx context.Context, log store.Log) ([]string, error) {
	var lines []string
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(line.Data))
	}
	return lines, nil
}
