package home

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
)

const (
	// idleEvery is how often KeepUp looks for sessions that have become idle.
	idleEvery = 24 * time.Hour
	// quietFor is how long nobody has written to a session that is archived on the side, not even
	// an import or a tag: whoever does so will soon do it again, and that would unpack it.
	quietFor = 24 * time.Hour
)

// KeepUp does, until ctx ends, what the settings ask for on the side: it archives idle sessions,
// at once and then every day. It is for programs that run for long; Retain and Tidy do it, too.
func (h *Home) KeepUp(ctx context.Context) {
	if h.archiveAfter() == 0 {
		return
	}
	again := time.NewTicker(idleEvery)
	defer again.Stop()
	for {
		h.archiveIdle(ctx)
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// archiveAfter returns after what time of idleness sessions are archived, or 0 for never.
func (h *Home) archiveAfter() time.Duration {
	after, err := ParseAge(h.settings.Get(SettingArchiveAfter).Value)
	if err != nil {
		return 0 // never
	}
	return after
}

// archiveIdle compresses conversations that were idle for as long as the settings say,
// unless somebody has them open, follows them, works on them or has just written to them. What it
// did, and what failed, is in a notice: it happens beside something else.
func (h *Home) archiveIdle(ctx context.Context) {
	after := h.archiveAfter()
	archiver, ok := store.As[store.Archiver](h.store)
	if after == 0 || !ok { // a home on another machine is archived by its server
		return
	}
	result := &ArchiveResult{}
	stats, err := h.stats(ctx)
	if err == nil && anyQuiet(stats) {
		err = h.archiveIdleOf(ctx, archiver, stats, after, result)
	}
	if ctx.Err() != nil {
		err = nil // the caller goes away, and the rest is done the next time
	}
	note := Notice{Kind: IdleArchived, Count: len(result.Sessions), Error: described(err)}
	if err == nil && len(result.Failed) > 0 {
		note.Session, note.Error = result.Failed[0].Session, result.Failed[0].Cause
	}
	if note.Count > 0 || note.Error != nil {
		h.notify(ctx, note)
	}
}

// anyQuiet reports whether any session may be idle. Finding the time of the last message takes
// much longer.
func anyQuiet(stats map[string]store.Stat) bool {
	for _, stat := range stats {
		if isQuiet(stat) {
			return true
		}
	}
	return false
}

func isQuiet(stat store.Stat) bool { return !stat.Archived && time.Since(stat.Modified) > quietFor }

func (h *Home) archiveIdleOf(ctx context.Context, archiver store.Archiver, stats map[string]store.Stat, after time.Duration, result *ArchiveResult) error {
	h.beforeWriting(ctx)
	unread := &ArchiveResult{} // which a check reports
	names, err := h.inactive(ctx, after, stats, unread)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isQuiet(stats[name]) || h.isBusy(ctx, name) {
			continue
		}
		// One at a time: somebody may have opened the next one in the meantime.
		if err := h.archiveAll(ctx, archiver, []string{name}, stats, result); err != nil {
			return err
		}
	}
	return nil
}

// isBusy reports whether somebody has the conversation of a session open or follows it in this
// program, or works on it in any. If that cannot be told, it counts as used.
func (h *Home) isBusy(ctx context.Context, name string) bool {
	chain, err := h.chainOf(ctx, name)
	if err != nil || h.uses.has(name) || slices.ContainsFunc(chain.Links, h.uses.has) {
		return true
	}
	holder, err := lease.At(h.store, cmp.Or(chain.ID, name)).Holder(ctx)
	return holder != nil || err != nil
}
