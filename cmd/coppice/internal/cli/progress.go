package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
)

// progress is a bar on standard error. It appears only on a terminal, and only
// if there is something to wait for. Several goroutines may use it.
type progress struct {
	mu      sync.Mutex // guards what follows, and the line on the terminal
	talk    *talk
	began   time.Time
	printed time.Time

	doing string // the step that is shown
	since time.Time
	from  int64 // how much of it was done then
}

const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	progressWidth = 30
	// minProgressWidth is how wide a bar must be to have its pace beside it.
	minProgressWidth = 10
	// paceAfter is how long a step must have run before its pace means something.
	paceAfter = time.Second
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
	if doing != p.doing || done < p.from { // a new step
		p.doing, p.since, p.from = doing, now, done
	}
	_ = p.talk.err.Redraw(progressBar(doing, done, total, p.pace(done, total, now), p.talk.columnsOf(p.talk.talkScreen)))
}

// pace says how much is done in a second, and how long the rest takes if it goes on like that; ""
// as long as nobody can know. Work is counted in bytes, but for steps that count files, of which
// there are far fewer.
func (p *progress) pace(done, total int64, now time.Time) string {
	took, did := now.Sub(p.since), done-p.from
	if took < paceAfter || did <= 0 {
		return ""
	}
	left := time.Duration(float64(took) * float64(total-done) / float64(did))
	rest := left.Round(time.Second).String() + " left"
	if total < 1<<20 {
		return rest
	}
	return render.Bytes(int64(float64(did)/took.Seconds())) + "/s, " + rest
}

// progressBar returns the bar, with its pace if there is room for it. A terminal breaks a line that
// is too long into two, and the next drawing would wipe away only one of them.
func progressBar(what string, done, total int64, pace string, columns int) string {
	percent := fmt.Sprintf(" %3d %%", 100*done/total)
	room := progressWidth
	if columns > 0 {
		room = columns - ansi.StringWidth(what) - len(percent) - 2
	}
	if pace = "  " + pace; columns > 0 && room-len(pace) < minProgressWidth || pace == "  " {
		pace = ""
	}
	width := max(min(progressWidth, room-len(pace)), 0)
	if columns == 0 {
		width = progressWidth
	}
	filled := int(int64(width) * done / total)
	return what + " " + strings.Repeat("█", filled) + strings.Repeat("░", width-filled) + percent + pace
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
