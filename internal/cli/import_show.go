package cli

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/transcript"
)

// importedJSON is a file in the output for programs.
type importedJSON struct {
	Path      string                `json:"path"`
	Format    string                `json:"format,omitempty"`
	Bytes     int64                 `json:"bytes"`
	Unchanged bool                  `json:"unchanged,omitempty"`
	Sessions  []importedSessionJSON `json:"sessions"`
	Error     string                `json:"error,omitempty"`
}

type importedSessionJSON struct {
	ID           string                `json:"id"`
	Key          string                `json:"key"`
	Title        string                `json:"title,omitempty"`
	Created      bool                  `json:"created"`
	New          int                   `json:"new"`
	Known        int                   `json:"known"`
	Revised      int                   `json:"revised,omitempty"`
	Fidelity     []transcript.Fidelity `json:"fidelity"`
	ProblemCount int                   `json:"problem_count"`
	Problems     []problemJSON         `json:"problems,omitempty"`
}

type problemJSON struct {
	Line   int64  `json:"line,omitempty"`
	Pos    int64  `json:"pos"`
	Reason string `json:"reason"`
}

// show says what came of a file: to a program as one object, to a person as one
// line for each session, with what the formats made of it as talk.
func (r *importRun) show(src importSource, report *transcript.Report, failed error) error {
	if r.app.flags.json {
		return r.printJSON(asJSON(src, report, failed))
	}
	if report == nil {
		return nil
	}
	for i := range report.Sessions {
		s := &report.Sessions[i]
		if s.New == 0 && s.ProblemCount == 0 {
			continue
		}
		r.bar.clear()
		if s.New > 0 {
			if err := r.print("%s\t%s\t%d\t%s", s.ID, report.Format, s.New, oneLine(s.Title, 0)); err != nil {
				return err
			}
		}
		r.sayFidelity(src.path, s)
	}
	return nil
}

func (r *importRun) sayFidelity(path string, s *transcript.SessionReport) {
	state := "more of a session"
	if s.Created {
		state = "a new session"
	}
	r.say("%s: %s of %s (%d known)", path, counted(s.New, "entry", "entries"), state, s.Known)
	if s.Revised > 0 {
		r.say("  %s changed in the source: other versions on other branches", counted(s.Revised, "record", "records"))
	}
	for _, f := range s.Fidelity {
		r.say("  %d × %s → %s", f.N, f.What, f.Became)
	}
	for _, p := range s.Problems {
		where := ""
		if p.Line > 0 {
			where = fmt.Sprintf("line %d: ", p.Line)
		}
		r.say("  %s %s%s", r.paint(yellow, "not read:"), where, oneLine(p.Reason, 200))
	}
	if more := s.ProblemCount - len(s.Problems); more > 0 {
		r.say("  and %d more that could not be read", more)
	}
}

func asJSON(src importSource, report *transcript.Report, failed error) importedJSON {
	out := importedJSON{Path: src.path, Sessions: []importedSessionJSON{}}
	if failed != nil {
		out.Error = strings.ReplaceAll(failed.Error(), "\n", "; ")
	}
	if report == nil {
		return out
	}
	out.Format, out.Bytes, out.Unchanged = report.Format, report.Bytes, report.Unchanged
	for i := range report.Sessions {
		s := &report.Sessions[i]
		one := importedSessionJSON{
			ID: s.ID, Key: report.Format + ":" + s.Native, Title: s.Title, Created: s.Created,
			New: s.New, Known: s.Known, Revised: s.Revised, Fidelity: s.Fidelity, ProblemCount: s.ProblemCount,
		}
		if one.Fidelity == nil {
			one.Fidelity = []transcript.Fidelity{}
		}
		for _, p := range s.Problems {
			one.Problems = append(one.Problems, problemJSON{Line: p.Line, Pos: p.Pos, Reason: p.Reason})
		}
		out.Sessions = append(out.Sessions, one)
	}
	return out
}

// sayTotal is the receipt.
func (r *importRun) sayTotal() {
	verb := "imported"
	if r.flags.dryRun {
		verb = "would import"
	}
	text := fmt.Sprintf("%s %s into %s from %s", verb, counted(r.entries, "entry", "entries"),
		counted(r.sessions, "session", "sessions"), counted(r.files, "file", "files"))
	if r.same > 0 {
		text += fmt.Sprintf("; %d unchanged", r.same)
	}
	if r.failed > 0 {
		text += fmt.Sprintf("; %d not read", r.failed)
	}
	if r.problems > 0 {
		text += fmt.Sprintf("; %s not understood", counted(r.problems, "record", "records"))
	}
	r.say("%s", text)
}

// importBar is a bar on a terminal, and nothing elsewhere.
type importBar struct {
	app   *app
	total int64
	done  atomic.Int64
	begun time.Time
	end   chan struct{}
	ended sync.WaitGroup
	shown bool
	mu    sync.Mutex // guards the terminal line
}

func newImportBar(a *app, sources []importSource) *importBar {
	p := &importBar{app: a, begun: time.Now(), end: make(chan struct{})}
	for _, src := range sources {
		p.total += src.size
	}
	if p.total == 0 || a.talkScreen == nil {
		return p
	}
	p.ended.Go(p.draw)
	return p
}

func (p *importBar) add(n int64) { p.done.Add(n) }

// draw redraws the bar from time to time.
func (p *importBar) draw() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.end:
			p.clear()
			return
		case <-tick.C:
			p.mu.Lock()
			p.shown = true
			_ = p.app.err.Redraw(barText(p.done.Load(), p.total, time.Since(p.begun)))
			p.mu.Unlock()
		}
	}
}

// barText shows how much of a whole is done.
func barText(done, total int64, took time.Duration) string {
	const width = 30
	share := min(float64(done)/float64(max(total, 1)), 1)
	filled := int(share * width)
	speed := int64(float64(done) / max(took.Seconds(), 0.001))
	return fmt.Sprintf("%s%s %3.0f %%  %s of %s  %s/s", strings.Repeat("█", filled), strings.Repeat("░", width-filled),
		share*100, humanBytes(done), humanBytes(total), humanBytes(speed))
}

// clear takes the bar away, so that something else can be said.
func (p *importBar) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_ = p.app.err.Redraw("")
		p.shown = false
	}
}

func (p *importBar) stop() {
	close(p.end)
	p.ended.Wait()
}
