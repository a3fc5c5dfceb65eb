package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// progress is a bar on standard error. It appears only on a terminal, and only
// if there is something to wait for. Several goroutines may use it.
type progress struct {
	mu      sync.Mutex // guards what follows, and the line on the terminal
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

func (p *progress) draw(done, total int64) {
	now := time.Now()
	if !p.wanted || total <= 0 || now.Sub(p.began) < progressAfter || now.Sub(p.printed) < progressEvery {
		return
	}
	p.printed = now
	filled := int(progressWidth * done / total)
	_ = p.talk.err.Redraw(fmt.Sprintf("%s %s%s %3d %%", p.what,
		strings.Repeat("█", filled), strings.Repeat("░", progressWidth-filled), 100*done/total))
}

// show draws how far the work at hand has come.
func (p *progress) show(doing string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = doing
	p.draw(done, total)
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
