package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store/file"
)

// withIndex calls f with an index that is up to date.
func (a *app) withIndex(ctx context.Context, f func(ix *index.Index) error) error {
	return a.withStore(func(st *file.Store) error {
		ix, err := a.currentIndex(ctx, st)
		if err != nil {
			return err
		}
		return errors.Join(f(ix), ix.Close())
	})
}

// currentIndex opens the index and brings it up to date: elsewhere if there is no
// room for it beside the sessions. On a full disk one must be able to look what
// could go.
func (a *app) currentIndex(ctx context.Context, st *file.Store) (*index.Index, error) {
	ix, err := a.openIndex(ctx, st)
	if err != nil {
		return nil, err
	}
	if err = a.catchUp(ctx, ix); err == nil {
		return ix, nil
	}
	err = errors.Join(err, ix.Close())
	if !errors.Is(err, syscall.ENOSPC) || ix.Path() != st.IndexPath() {
		return nil, err
	}
	a.say("%s there is no room for the index beside the sessions; one in the cache is used", a.paint(yellow, "warning:"))
	if ix, err = a.openIndexAt(ctx, st, a.cachedIndexPath(st.Dir())); err != nil {
		return nil, err
	}
	if err := a.catchUp(ctx, ix); err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	return ix, nil
}

// openIndex opens the store's index, which is beside the sessions, or in the
// user's cache where one may only read the sessions or the disk is full.
func (a *app) openIndex(ctx context.Context, st *file.Store) (*index.Index, error) {
	ix, err := a.openIndexAt(ctx, st, st.IndexPath())
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
		return a.openIndexAt(ctx, st, a.cachedIndexPath(st.Dir()))
	}
	return ix, err
}

func (a *app) openIndexAt(ctx context.Context, st *file.Store, path string) (*index.Index, error) {
	prices, err := readPrices(filepath.Join(filepath.Dir(configPath(a.getenv)), "prices.toml"))
	if err != nil {
		return nil, err
	}
	return index.Open(ctx, st, path, &index.Options{Prices: prices})
}

// cachedIndexPath is where the index of a store is, if it cannot be beside it.
func (a *app) cachedIndexPath(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(xdg(a.getenv, "XDG_CACHE_HOME", ".cache"), "coppice", hex.EncodeToString(sum[:8])+".db")
}

// readPrices returns the prices that the user has written down, beside the
// others, or nil if he has none.
func readPrices(path string) (*index.Prices, error) {
	prices, err := index.ReadPrices(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return prices, err
}

// catchUp brings the index up to date, with a progress bar if a person waits.
func (a *app) catchUp(ctx context.Context, ix *index.Index) error {
	bar := a.newProgress("indexing")
	report, err := ix.CatchUp(ctx, bar.show)
	bar.done()
	a.sayUnread(report)
	return err
}

// sayUnread reports the sessions that could not be read: they are missing from
// every answer.
func (a *app) sayUnread(report index.Report) {
	for _, unread := range report.Unread {
		a.say("%s %v", a.paint(yellow, "warning:"), unread.Err)
	}
}

// progress is a bar on standard error. It appears only on a terminal, and only
// if there is something to wait for.
type progress struct {
	talk    *talk
	what    string
	wanted  bool
	began   time.Time
	printed time.Time
}

const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

func (t *talk) newProgress(what string) *progress {
	return &progress{talk: t, what: what, wanted: t.talkScreen != nil, began: time.Now()}
}

func (p *progress) show(done, total int64) {
	now := time.Now()
	if !p.wanted || total <= 0 || now.Sub(p.began) < progressAfter || now.Sub(p.printed) < progressEvery {
		return
	}
	p.printed = now
	filled := int(progressWidth * done / total)
	_ = p.talk.err.Redraw(fmt.Sprintf("%s %s%s %3d %%", p.what,
		strings.Repeat("█", filled), strings.Repeat("░", progressWidth-filled), 100*done/total))
}

// showDoing is show for work that has several parts.
func (p *progress) showDoing(doing string, done, total int64) {
	p.what = doing
	p.show(done, total)
}

// done wipes the bar away.
func (p *progress) done() {
	if !p.printed.IsZero() {
		_ = p.talk.err.Redraw("")
	}
}
