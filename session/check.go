package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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
		if s.strange != "" {
			problems = append(problems, Problem{Kind: ProblemHeader, EntryID: s.strange, Detail: fmt.Sprintf("the header's id is not the session's name, %q", s.name)})
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
	paths := newPathCheck(s, nodes)
	if problems, err = s.checkEntries(ctx, nodes, problems, paths); err != nil {
		return nil, err
	}
	seen := make(map[Problem]bool)
	for _, p := range problems {
		seen[p] = true
	}
	more, err := paths.run(ctx)
	return append(problems, slices.DeleteFunc(more, func(p Problem) bool { return seen[p] })...), err
}

// checkEntries decodes every entry and follows its references.
func (s *Session) checkEntries(ctx context.Context, nodes []node, problems []Problem, paths *pathCheck) ([]Problem, error) {
	blobs := checkedBlobs{s.store.Blobs(), make(map[store.Ref]error)}
	for from, some := 0, 0; from < len(nodes); from += some {
		some = someNodes(nodes[from:])
		part := nodes[from : from+some]
		entries, err := s.entriesAt(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, e := range entries {
			switch {
			case part[i].kind == kindGap:
				paths.noteDamage(int32(from + i))
			case e == nil:
				paths.noteDamage(int32(from + i))
				problems = append(problems, Problem{ProblemDamaged, part[i].id, part[i].pos, "its first bytes can be read, the rest cannot"})
			default:
				paths.note(int32(from+i), e)
				problems = append(problems, s.checkEntry(ctx, blobs, e, part[i].pos)...)
			}
		}
	}
	return problems, nil
}

// checkedBlobs looks at each blob once, however many entries have it.
type checkedBlobs struct {
	store.Blobs
	checked map[store.Ref]error
}

// Get returns no content: whoever checks wants to know only whether it is there.
func (b checkedBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	err, ok := b.checked[ref]
	if !ok {
		_, err = b.Blobs.Get(ctx, ref)
		b.checked[ref] = err
	}
	return nil, err
}

func (s *Session) checkEntry(ctx context.Context, blobs store.Blobs, e *Entry, pos store.Pos) []Problem {
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
	return append(problems, resolve(ctx, blobs, &c, pos)...)
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
