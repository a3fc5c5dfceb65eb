package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// progress is a bar on standard error. It appears only on a terminal, and only
// if there is something to wait for. Several goroutines may use it.
type progress struct {
	mu      sync.Mutex // guards what follows, and the line on the terminal
	talk    *talk
	began   time.Time
	printed time.Time
}

const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
)

// newProgress returns a bar that does not show until there was something to wait for.
func (t *talk) newProgress() *progress { return &progress{talk: t, began: time.Now()} }

// show draws how far the work at hand has come.
func (p *progress) show(doing string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.talk.talkScreen == nil || total <= 0 || now.Sub(p.began) < progressAfter || now.Sub(p.printed) < progressEvery {
		return
	}
	p.printed = now
	_ = p.talk.err.Redraw(progressBar(doing, done, total, p.talk.columnsOf(p.talk.talkScreen)))
}

// progressBar returns the bar. A terminal breaks a line that is too long into two, and the
// next drawing would wipe away only one of them.
func progressBar(what string, done, total int64, columns int) string {
	percent := fmt.Sprintf(" %3d %%", 100*done/total)
	width := progressWidth
	if columns > 0 {
		width = min(width, max(columns-ansi.StringWidth(what)-len(percent)-2, 0))
	}
	filled := int(int64(width) * done / total)
	return what + " " + strings.Repeat("█", filled) + strings.Repeat("░", width-filled) + percent
}

// done wipes the bar away.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.printed.IsZero() {
		_ = p.talk.err.Redraw("")
		p.printed = time.Time{}
	}
}
