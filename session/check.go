package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Problems reads all of the session and returns every fault in it: damaged
// lines, broken trees, references to nothing, tool calls and results that do not
// match. None of them prevents using the session; none is repaired by looking.
func (s *Session) Problems() ([]Problem, error) {
	ctx := context.Background()
	nodes, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	var problems []Problem
	err = s.withWhole(func(t *tree) error {
		problems = append(problems, t.problems...)
		if s.header.ID != s.name {
			problems = append(problems, Problem{Kind: ProblemHeader, EntryID: s.header.ID, Detail: fmt.Sprintf("the header's id is not the session's name, %q", s.name)})
		}
		if roots := t.roots(); len(roots) > 1 {
			second := t.nodes[roots[1]]
			problems = append(problems, Problem{ProblemRoots, second.id, second.pos, fmt.Sprintf("the session has %d", len(roots))})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if problems, err = s.checkEntries(ctx, nodes, problems); err != nil {
		return nil, err
	}
	return s.checkLeaves(problems)
}

// checkEntries decodes every entry and follows its references.
func (s *Session) checkEntries(ctx context.Context, nodes []node, problems []Problem) ([]Problem, error) {
	const chunk = 256
	for from := 0; from < len(nodes); from += chunk {
		part := nodes[from:min(from+chunk, len(nodes))]
		entries, err := s.entriesAt(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, e := range entries {
			switch {
			case part[i].kind == kindGap:
			case e == nil:
				problems = append(problems, Problem{ProblemDamaged, part[i].id, part[i].pos, "its first bytes can be read, the rest cannot"})
			default:
				problems = append(problems, s.checkEntry(ctx, e, part[i].pos)...)
			}
		}
	}
	return problems, nil
}

func (s *Session) checkEntry(ctx context.Context, e *Entry, pos store.Pos) []Problem {
	var problems []Problem
	refer := func(id string) {
		if _, err := s.find("check", id); err != nil {
			problems = append(problems, Problem{ProblemTarget, e.ID, pos, fmt.Sprintf("%s of %q, which is not in the session", e.Type, id)})
		}
	}
	switch {
	case e.Label != nil:
		refer(e.Label.TargetID)
	case e.ContextEdit != nil:
		refer(e.ContextEdit.TargetID)
	case e.Revert != nil:
		refer(e.Revert.TargetID)
	case e.Merge != nil:
		refer(e.Merge.FromID)
		for _, id := range e.Merge.EntryIDs {
			refer(id)
		}
	}
	c := e.clone()
	return append(problems, resolve(ctx, s.store.Blobs(), &c, pos)...)
}

// checkLeaves builds the context of every branch and collects what it meets.
func (s *Session) checkLeaves(problems []Problem) ([]Problem, error) {
	leaves, err := s.Leaves()
	if err != nil {
		return nil, err
	}
	seen := make(map[Problem]bool)
	for _, p := range problems {
		seen[p] = true
	}
	for _, leaf := range leaves {
		sel, err := s.selectPath(context.Background(), leaf)
		if err != nil {
			return nil, err
		}
		for _, p := range assemble(sel).Problems {
			if p.Kind != ProblemDamaged && !seen[p] {
				seen[p] = true
				problems = append(problems, p)
			}
		}
	}
	return problems, nil
}

// LoadOrRecover loads the session file at a path and, if that is beyond reading,
// takes its place as well as it can: with the backup beside it (path + ".bak"),
// which is copied over the file after the file was moved to quarantine; or else
// with a new session that says which one could not be read. The session then
// has another id, and the unreadable file stays where it is.
func LoadOrRecover(path string) (*Session, error) {
	s, err := Load(path)
	if err == nil || !errors.Is(err, ErrCorrupt) {
		return s, err
	}
	cause := err
	d := NewManager(filepath.Dir(path))
	name, err := d.nameOf(path)
	if err != nil {
		return nil, err
	}
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	s, err = recoverFrom(st, name, cause, &d.Options)
	return s.owning(st, err)
}

func recoverFrom(st *file.Store, name string, cause error, o *Options) (*Session, error) {
	ctx := context.Background()
	err := st.RestoreBackup(ctx, name)
	if err == nil {
		s, openErr := Open(ctx, st, name, o)
		if !errors.Is(openErr, ErrCorrupt) {
			return s, openErr
		}
		err = openErr // the backup is no better
	}
	if !errors.Is(err, ErrNotExist) && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	s, err := Create(ctx, st, Header{ParentSession: name, Relation: RelationRecovery}, o)
	if err != nil {
		return nil, err
	}
	notice := fmt.Sprintf("This is a recovery session. The original session %q could not be read: %v", name, cause)
	_, err = s.AppendMessage(RoleSystem, []Content{Text(notice)})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
