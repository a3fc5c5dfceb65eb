package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// sessionCheck looks at one session.
type sessionCheck struct {
	*checker
	name      string
	positions map[string]int64 // where each entry is
	// What was imported: entries by id, repeated lines by place and, in a session that was
	// taken over from another program, everything before a place.
	imported     map[string]bool
	repeated     map[int64]bool
	importedUpTo int64
}

// checkSession checks one session: how it is kept, the log, the tree, the tool calls,
// the usage and the blobs. If it cannot be read, that is a finding.
func (c *checker) checkSession(ctx context.Context, name string) error {
	c.result.Sessions++
	s := &sessionCheck{
		checker: c, name: name,
		positions: make(map[string]int64), imported: make(map[string]bool), repeated: make(map[int64]bool),
	}
	for _, check := range []func(context.Context) error{s.checkFiles, s.readLines, s.checkEntries, s.checkEnd, s.checkLinks} {
		err := check(ctx)
		var stop stopped
		switch {
		case errors.As(err, &stop):
			return stop.error
		case err != nil:
			return c.unreadable(name, err) // the other checks would fail too
		}
	}
	return nil
}

// stopped wraps an error of the caller's function, to distinguish it from an error of
// reading the session.
type stopped struct{ error }

func (s *sessionCheck) report(f Finding, imported bool) error {
	f.Session = cmp.Or(f.Session, s.name)
	if err := s.found(f, imported); err != nil {
		return stopped{err}
	}
	return nil
}

// checkFiles asks the store how the session is kept.
func (s *sessionCheck) checkFiles(ctx context.Context) error {
	mender, ok := store.As[store.Mender](s.store)
	if !ok {
		return nil
	}
	for f, err := range mender.InspectLog(ctx, s.name) {
		if err == nil {
			err = s.report(findingOf(f, s.name), false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLines records where the entries of the session are. Package session ignores a
// second line with the same id, so this function must find out whether that line was
// imported.
func (s *sessionCheck) readLines(ctx context.Context) (err error) {
	log, err := s.store.Open(ctx, s.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || string(h.Type) == string(session.TypeSession) {
			continue
		}
		if _, again := s.positions[string(h.ID)]; again {
			var e session.Entry
			s.repeated[int64(line.Pos)] = e.UnmarshalJSON(line.Data) == nil && e.Imported()
			continue
		}
		s.positions[string(h.ID)] = int64(line.Pos)
	}
	return nil
}

// checkEntries looks at each entry by itself, and asks package session how they fit together.
func (s *sessionCheck) checkEntries(ctx context.Context) error {
	opened, err := session.Open(ctx, s.store, s.name, nil)
	if err != nil {
		return err
	}
	defer opened.Close()
	var odd []Finding
	for e, err := range opened.Entries() {
		if err != nil {
			return err
		}
		s.note(&e)
		odd = append(odd, s.oddities(&e)...)
	}
	problems, err := opened.Problems()
	if err != nil {
		return err
	}
	for _, p := range problems {
		f := Finding{Kind: string(p.Kind), Entry: p.EntryID, Offset: int64(p.Pos), Detail: p.Detail}
		if f.Offset == 0 {
			f.Offset = s.positions[p.EntryID] // a problem that shows only in a context has none
		}
		if p.Blob != "" && errors.Is(p.Err, store.ErrCorrupt) {
			f.Kind = KindCorruptBlob
		}
		if err := s.report(f, s.cameByImport(f)); err != nil {
			return err
		}
	}
	for _, f := range odd {
		if err := s.report(f, s.cameByImport(f)); err != nil {
			return err
		}
	}
	return nil
}

// tornWait is how long the end of a log may look torn because a line is being written.
// By then the line has arrived.
const tornWait = 100 * time.Millisecond

// checkEnd looks for bytes after the last whole line that do not go away.
func (s *sessionCheck) checkEnd(ctx context.Context) error {
	end, size, err := s.ends(ctx)
	if err != nil || end == size {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(tornWait):
	}
	again, sizeAgain, err := s.ends(ctx)
	if err != nil || again != end || sizeAgain != size {
		return err
	}
	detail := counted(size-end, "byte", "bytes") + " after the last whole line; the next append moves them to quarantine"
	return s.report(Finding{Kind: string(session.ProblemTail), Offset: end, Detail: detail}, false)
}

// ends returns where the last whole line of the log ends, and where its bytes end. In a
// store that has only whole lines, the two are the same.
func (s *sessionCheck) ends(ctx context.Context) (end, size int64, err error) {
	mender, ok := store.As[store.Mender](s.store)
	if !ok {
		return 0, 0, nil
	}
	raw, err := mender.OpenRaw(ctx, s.name) // before End: what is appended in between must not look torn
	if err != nil {
		return 0, 0, err
	}
	defer raw.Close()
	log, err := s.store.Open(ctx, s.name)
	if err != nil {
		return 0, 0, err
	}
	defer log.Close()
	pos, err := log.End(ctx)
	return int64(pos), max(raw.Size(), int64(pos)), err
}

// checkLinks looks whether damage has parted the session from the one that it continues, or from
// the one that continues it. They are one conversation only if each names the other: see
// session.JoinLinks. A session that is missing, or cannot be read at all, shows elsewhere.
func (s *sessionCheck) checkLinks(ctx context.Context) error {
	link, err := session.ReadLink(ctx, s.store, s.name)
	if err == nil && link.ContinuedTo != "" {
		err = s.checkNext(ctx, link.ContinuedTo)
	}
	if err == nil && link.Continues != "" {
		err = s.checkBefore(ctx, link.Continues)
	}
	return err
}

// checkNext looks at the header of the session that the log names as its continuation.
func (s *sessionCheck) checkNext(ctx context.Context, next string) error {
	log, err := s.store.Open(ctx, next)
	if err != nil {
		return ctx.Err()
	}
	defer log.Close()
	if h, err := session.FindHeader(ctx, log); err != nil || h != nil {
		return ctx.Err()
	}
	return s.report(Finding{Session: next, Kind: KindParted, Detail: fmt.Sprintf(
		"it continues session %q, but its header, which says so, is damaged; repair it to join the two again", s.name)}, false)
}

// checkBefore looks whether the session that the header names has lost the line that names this
// one.
func (s *sessionCheck) checkBefore(ctx context.Context, before string) error {
	link, err := session.ReadLink(ctx, s.store, before)
	if err != nil || link.ContinuedTo == s.name || slices.Contains(link.Replaced, s.name) {
		return ctx.Err()
	}
	opened, err := session.Open(ctx, s.store, before, nil)
	if err != nil {
		return ctx.Err()
	}
	defer opened.Close()
	problems, err := opened.Problems()
	if err != nil || !slices.ContainsFunc(problems, func(p session.Problem) bool { return p.Kind == session.ProblemDamaged }) {
		return ctx.Err()
	}
	remedy := fmt.Sprintf("bring %q back from a backup", before)
	joins, err := rejoins(ctx, s.store, before, s.name)
	if err != nil {
		return err
	}
	if joins {
		remedy = fmt.Sprintf("repair %q", before)
	}
	return s.report(Finding{Kind: KindParted, Detail: fmt.Sprintf(
		"it continues session %q, but the line there that names this one is lost, and they are shown as two conversations; %s to join them again", before, remedy)}, false)
}

// note records whether an entry was imported.
func (s *sessionCheck) note(e *session.Entry) {
	if e.Imported() {
		s.imported[e.ID] = true
	}
	if e.Custom != nil && e.Custom.CustomType == session.CustomKeyed {
		s.importedUpTo = s.positions[e.ID]
	}
}

// cameByImport reports whether a finding is about something that was imported.
func (s *sessionCheck) cameByImport(f Finding) bool {
	if f.Kind == string(session.ProblemDuplicate) {
		return s.repeated[f.Offset]
	}
	return s.imported[f.Entry] || f.Offset < s.importedUpTo
}

// oddities lists the odd things about a single message.
func (s *sessionCheck) oddities(e *session.Entry) []Finding {
	if e.Message == nil {
		return nil
	}
	var odd []Finding
	if detail := badUsage(e.Message); detail != "" {
		odd = append(odd, Finding{Kind: KindUsage, Entry: e.ID, Offset: s.positions[e.ID], Detail: detail})
	}
	if !isKnownRole(e.Message.Role) {
		detail := fmt.Sprintf("%.40q is not a role that messages may have", e.Message.Role)
		odd = append(odd, Finding{Kind: KindRole, Entry: e.ID, Offset: s.positions[e.ID], Detail: detail})
	}
	return odd
}

func isKnownRole(role session.MessageRole) bool {
	switch role {
	case session.RoleBashExecution, session.RoleCustom, session.RoleBranchSummary, session.RoleCompactionSummary:
		return true
	}
	return session.CheckRole(role) == nil
}

// badUsage describes impossible token counts, or returns "".
func badUsage(m *session.MessageEntry) string {
	for _, f := range m.Extra {
		if f.Name == "tokens" { // a sensible count would not have been kept as unknown
			return fmt.Sprintf("it has %.40s tokens", f.Value)
		}
	}
	if m.Usage == nil {
		return ""
	}
	for _, f := range m.Usage.Extra {
		switch f.Name {
		case "input", "output", "cache_read", "cache_write", "reasoning", "cost_micro_usd":
			return fmt.Sprintf("its %s is %.40s", f.Name, f.Value)
		}
	}
	if u := m.Usage; u.Reasoning > u.Output {
		return fmt.Sprintf("%d tokens of reasoning in %d of output", u.Reasoning, u.Output)
	}
	return ""
}
