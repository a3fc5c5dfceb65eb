package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// importPrinter shows what becomes of an import.
type importPrinter struct {
	*app
	flags    *importFlags
	problems []unread // the first records that could not be read
	more     int      // how many others there were
	failures []*home.ErrorInfo
}

// unread is a record that could not be read: where, and why.
type unread struct{ path, why string }

// maxImportProblems is how many records that could not be read are listed.
const maxImportProblems = 10

// hear takes what an import sends.
func (p *importPrinter) hear(e home.ImportEvent) error {
	if e.File == nil {
		p.found(e.Programs)
		return nil
	}
	if e.Error != nil {
		p.failures = append(p.failures, e.Error)
	}
	return p.each(e.File, e.Error)
}

// found lists what known programs keep on the machine.
func (p *importPrinter) found(programs []discover.Program) {
	if len(programs) == 0 {
		var titles []string
		for _, f := range home.Formats() {
			if f.Placed {
				titles = append(titles, f.Title)
			}
		}
		p.say("found nothing from the programs that are known: %s", strings.Join(titles, ", "))
	}
	for _, program := range programs {
		p.say("found %s of %s, %s", render.Counted(program.Files, "file", "files"), program.Title, render.Bytes(program.Bytes))
	}
}

// each shows what became of a file: to a program as one object, to a person only
// if they asked for details, or wait for something to happen.
func (p *importPrinter) each(f *bulk.File, failed *home.ErrorInfo) error {
	if p.app.flags.json {
		return p.printJSON(f)
	}
	if p.flags.verbose || p.flags.watch {
		p.bar.done()
		if err := p.sessions(f); err != nil {
			return err
		}
		if failed != nil && p.flags.watch {
			p.sayFailure(failed)
		}
	}
	if p.flags.verbose {
		return nil
	}
	for i := range f.Sessions {
		for _, problem := range f.Sessions[i].Problems {
			if len(p.problems) < maxImportProblems {
				p.problems = append(p.problems, unread{f.Path, atLine(problem.Line) + render.OneLine(problem.Reason, 200)})
			}
		}
	}
	p.more += f.Problems
	return nil
}

// sessions prints a line for each session that has something new, and with -v how
// faithful its entries are.
func (p *importPrinter) sessions(f *bulk.File) error {
	for i := range f.Sessions {
		s := &f.Sessions[i]
		if s.New > 0 {
			line := fmt.Sprintf("%s\t%s\t%d\t%s", s.ID, f.Format, s.New, render.OneLine(s.Title, 0))
			if width := p.width(); width > 0 {
				line = ansi.Truncate(fmt.Sprintf("%s  %s: %s  %s", p.paint(cyan, p.shownID(s.ID)), f.Format,
					render.Counted(s.New, "new entry", "new entries"), render.OneLine(s.Title, 0)), width, "…")
			}
			if err := p.printText(line); err != nil {
				return err
			}
		}
		if p.flags.verbose && (s.New > 0 || s.ProblemCount > 0) {
			p.sayFidelity(f.Path, s)
		}
	}
	return nil
}

// sayFidelity says what became of the records of a session, for -v: it is what one needs to
// decide whether to trust an import.
func (p *importPrinter) sayFidelity(path string, s *transcript.SessionReport) {
	state := "an existing session"
	if s.Created {
		state = "a new session"
	}
	p.say("%s: %s in %s (%d known)", path, render.Counted(s.New, "new entry", "new entries"), state, s.Known)
	if s.Revised > 0 {
		p.say("  %s changed in the source: the old and the new versions are on different branches", render.Counted(s.Revised, "record", "records"))
	}
	for _, f := range s.Fidelity {
		p.say("  %d × %s → %s", f.N, f.What, f.Became)
	}
	for _, problem := range s.Problems {
		p.say("  %s %s%s", p.paint(yellow, "skipped:"), atLine(problem.Line), render.OneLine(problem.Reason, 200))
	}
	if more := s.ProblemCount - len(s.Problems); more > 0 {
		p.say("  and %d more that could not be read", more)
	}
}

// atLine says at which line something is, if the source has lines.
func atLine(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", n)
}

// result prints what became of everything: a line for each program, then what went
// wrong, then the sum.
func (p *importPrinter) result(r *bulk.Result, interrupted bool) error {
	if r.Files == 0 && len(r.Failures) == 0 && !interrupted && !p.flags.watch && !p.flags.All {
		p.say("no transcripts there")
		return nil
	}
	if err := p.programs(r); err != nil {
		return err
	}
	p.sayProblems()
	if more := p.more - len(p.problems); more > 0 {
		p.say("and %s that could not be read; -v lists more of them", render.Counted(more, "more record", "more records"))
	}
	if !p.flags.watch {
		for _, failed := range p.failures {
			p.sayFailure(failed)
		}
	}
	p.sayTotal(&r.Total, interrupted)
	if r.IsPartial() && !interrupted && !p.flags.watch {
		return errPartial
	}
	return nil
}

// sayProblems lists records that could not be read. A person reads the path of a file once.
func (p *importPrinter) sayProblems() {
	mark, width, path := p.paint(yellow, "skipped:"), p.columnsOf(p.talkScreen), ""
	for _, one := range p.problems {
		switch {
		case width == 0:
			p.say("%s %s: %s", mark, one.path, one.why)
			continue
		case one.path != path:
			path = one.path
			p.say("%s %s", mark, path)
		}
		p.say("  %s", one.why)
	}
}

// sayFailure reports a file that could not be imported.
func (p *importPrinter) sayFailure(failed *home.ErrorInfo) {
	var err error = failed
	if errors.Is(err, home.ErrNoFormat) {
		err = hinted(err, "--from names the format")
	}
	p.sayError(err)
}

// programs prints a line for each program. Details and JSON have it all already.
func (p *importPrinter) programs(r *bulk.Result) error {
	if p.app.flags.json || p.flags.verbose || p.flags.watch {
		return nil
	}
	t := p.newTable("PROGRAM", "PROGRAM", ">FILES", ">UNCHANGED", ">SESSIONS", ">ENTRIES")
	for _, f := range r.ByFormat {
		name := f.Format
		if p.isTerminal() {
			name = f.Title
		}
		t.add(name, strconv.Itoa(f.Files), strconv.Itoa(f.Unchanged), strconv.Itoa(f.Sessions), strconv.Itoa(f.Entries))
	}
	return t.print()
}

// sayTotal is the receipt.
func (p *importPrinter) sayTotal(r *bulk.Total, interrupted bool) {
	verb := "imported"
	switch {
	case p.flags.DryRun:
		verb = "would import"
	case interrupted:
		verb = "interrupted; imported"
	}
	text := fmt.Sprintf("%s %s into %s from %s", verb, render.Counted(r.Entries, "entry", "entries"),
		render.Counted(r.Sessions, "session", "sessions"), render.Counted(r.Files, "file", "files"))
	if r.Unchanged > 0 {
		text += fmt.Sprintf("; %d unchanged", r.Unchanged)
	}
	if r.Failed > 0 {
		text += fmt.Sprintf("; %d skipped", r.Failed)
	}
	if r.Problems > 0 {
		text += fmt.Sprintf("; %s not understood", render.Counted(r.Problems, "record", "records"))
	}
	p.say("%s", text)
	if interrupted {
		p.say("%s importing again does the rest", p.paint(dim, "hint:"))
	}
}
