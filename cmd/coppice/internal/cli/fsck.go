package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// fsckCommand only looks. Repairing is another command, so that looking is safe on any machine
// and at any time.
func fsckCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "fsck [ID…]",
		Short: "Look for faults in the store",
		Long: "Reads sessions, or without an ID all of them, the trash and everything else in the\n" +
			"store, and prints every fault by name and place. It changes nothing.\n\n" +
			"A fault is damage: something that Coppice itself never leaves behind. If there is\n" +
			"one, the exit code is 12. A note is worth knowing, but is not damage: a tool call\n" +
			"that was interrupted, or a mistake that was already in the file a session was\n" +
			"imported from.",
		RunE: a.onHome(a.runFsck),
	})
}

// runFsck checks the named sessions one after the other: one whose name is wrong must not keep
// the others from being checked.
func (a *app) runFsck(ctx context.Context, h *home.Home, given []string) error {
	var sum upkeep.CheckResult
	check := func(sessions ...string) error {
		found := a.newFindings(ctx, h)
		result, err := h.Upkeep.Check(ctx, home.CheckRequest{Sessions: sessions}, found.print)
		if err = errors.Join(err, found.fold()); err != nil {
			return err
		}
		sum.Sessions += result.Sessions
		sum.Faults += result.Faults
		sum.Warnings += result.Warnings
		sum.Notes += result.Notes
		sum.Damaged = append(sum.Damaged, result.Damaged...)
		return nil
	}
	var err error
	if len(given) == 0 {
		err = check()
	} else {
		err = a.eachSession(ctx, h, home.DistinctRequest{Sessions: given, Link: true}, func(id string) error { return check(id) })
	}
	if err != nil {
		return err
	}
	return a.fsckVerdict(ctx, h, &sum)
}

// fsckVerdict says how it went. What was found has been printed.
func (a *app) fsckVerdict(ctx context.Context, h *home.Home, r *upkeep.CheckResult) error {
	warnings := ""
	if r.Warnings > 0 {
		warnings = ", " + render.Counted(r.Warnings, "warning", "warnings")
	}
	notes := render.Counted(r.Notes, "note", "notes")
	if r.Faults == 0 {
		a.say("%s checked: no faults%s, %s", render.Counted(r.Sessions, "session", "sessions"), warnings, notes)
		return nil
	}
	hint := ""
	for _, id := range r.Damaged { // a session may have nothing that can be repaired
		done, err := h.Upkeep.Repair(ctx, home.RepairRequest{Session: id, DryRun: true})
		if err == nil && len(done.Actions) > 0 {
			hint = a.command("repair", []string{a.nameOf(ctx, h, id)}, "--dry-run") + " shows what can be done"
			break
		}
	}
	return &session.Error{
		Op: "fsck", Path: h.Dir(), Kind: session.ErrCorrupt, Hint: hint,
		Err: fmt.Errorf("%s%s and %s in %s", render.Counted(r.Faults, "fault", "faults"), warnings, notes,
			render.Counted(r.Sessions, "session", "sessions")),
	}
}

// maxAlike is how many notes of one kind are listed for a session: an agent that is killed
// often leaves hundreds of calls without results.
const maxAlike = 3

// findings prints what a check finds. Of notes that are alike in one session it prints the
// first few and the number of the others.
type findings struct {
	app      *app
	sessions render.Names                      // none where whole ids are printed
	entries  func(session string) render.Names // asks for the names of a session's entries
	named    render.Names                      // those of session, once they are needed

	session string
	kinds   []string // of its notes, in the order in which they came
	notes   map[string]int
}

// newFindings returns what prints findings. A person reads short names, as far as they are known:
// what is damaged may have none.
func (a *app) newFindings(ctx context.Context, h *home.Home) *findings {
	p := &findings{app: a}
	if a.width() == 0 || a.flags.json {
		return p
	}
	p.sessions, _ = sessionNames(ctx, h, home.SessionNamesRequest{All: true})
	p.entries = func(session string) render.Names {
		names, _ := namesOf(ctx, h, home.EntryNamesRequest{Sessions: []string{session}, Link: true})
		return names
	}
	return p
}

// print counts notes by their kind as they come, because they come from a stream that may be
// long.
func (p *findings) print(f upkeep.Finding) error {
	if f.Session != p.session {
		if err := p.fold(); err != nil {
			return err
		}
		p.session, p.named, p.notes = f.Session, nil, make(map[string]int)
	}
	if p.app.flags.json || f.Severity != upkeep.Note || f.Session == "" {
		return p.printOne(f)
	}
	if p.notes[f.Kind]++; p.notes[f.Kind] == 1 {
		p.kinds = append(p.kinds, f.Kind)
	}
	if p.notes[f.Kind] > maxAlike {
		return nil
	}
	return p.printOne(f)
}

// fold prints how many notes of the session were not listed.
func (p *findings) fold() error {
	for _, kind := range p.kinds {
		if more := p.notes[kind] - maxAlike; more > 0 {
			if err := p.app.printHanging(fmt.Sprintf("%s: %s: %s more like these; --json lists all", p.sessions.Shown(p.session), p.app.paint(dim, "note: "+kind), render.Thousands(more))); err != nil {
				return err
			}
		}
	}
	p.kinds, p.notes, p.session = nil, nil, ""
	return nil
}

// printAction prints what a repair did, or would do.
func (p *findings) printAction(act upkeep.Action) error {
	if p.app.flags.json {
		return p.app.printJSON(act)
	}
	size := ""
	if act.Size > 0 {
		size = " (" + render.Bytes(act.Size) + ")"
	}
	return p.app.printHanging(fmt.Sprintf("%s: %s: %s%s", p.place(act.Session, "", act.Path, act.Offset, act.Entry), act.Action, render.OneLine(act.Detail, 0), size))
}

// printOne prints a finding in the form of a compiler's message: where, what kind, what, and
// what to do about it.
func (p *findings) printOne(f upkeep.Finding) error {
	a := p.app
	if a.flags.json {
		return a.printJSON(f)
	}
	kind := a.paint(red, f.Kind)
	switch f.Severity {
	case upkeep.Note:
		kind = a.paint(dim, "note: "+f.Kind)
	case upkeep.Warning:
		kind = a.paint(yellow, "warning: "+f.Kind)
	}
	return p.app.printHanging(fmt.Sprintf("%s: %s: %s%s", p.place(f.Session, f.Removal, f.Path, f.Offset, f.Entry), kind, render.OneLine(f.Detail, 0), a.advice(f)))
}

// advice names the command that deals with a finding, if there is one besides
// repair ID.
func (a *app) advice(f upkeep.Finding) string {
	size := ""
	if f.Size > 0 {
		size = " (" + render.Bytes(f.Size) + ")"
	}
	if f.Removal != "" {
		return "; " + a.command("trash restore", []string{f.Removal}) + " brings it back, for repair"
	}
	switch f.Kind {
	case string(store.FaultTemporary), string(store.FaultLock):
		return size + "; " + a.command("repair --stale", nil) + " deletes it"
	case string(store.FaultPermissions):
		return "; " + a.command("repair", nil) + " narrows it"
	case upkeep.KindUnreferenced:
		return size + "; " + a.command("repair --blobs", nil) + " deletes it"
	case upkeep.KindIndex:
		return "; " + a.command("index rebuild", nil) + " makes a new one from the sessions"
	}
	return size
}

// place says where in a store something is.
func (p *findings) place(session, removal, path string, offset int64, entry string) string {
	if entry != "" && p.named == nil && p.entries != nil {
		p.named = p.entries(session)
	}
	where := p.sessions.Shown(session)
	if where == "" {
		where = path
	}
	if removal != "" {
		where += " in the trash"
	}
	if offset > 0 {
		where += fmt.Sprintf(" at byte %d", offset)
	}
	if entry != "" {
		where += " entry " + p.named.Shown(entry)
	}
	return where
}
