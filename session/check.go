package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// Problems reads all of the session and returns every fault in it: damaged
// lines, broken trees, references to nothing, tool calls and results that do not
// match. None of them prevents using the session; none is repaired by looking.
func (s *Session) Problems() ([]Problem, error) {
	ctx := s.context()
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
			problems = append(problems, Problem{Kind: ProblemRoots, EntryID: second.id, Pos: second.pos, Detail: fmt.Sprintf("the session has %d", len(roots))})
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
		seen[p.key()] = true
	}
	more, err := paths.run(ctx)
	return s.locate(append(problems, slices.DeleteFunc(more, func(p Problem) bool { return seen[p.key()] })...)), err
}

// locate says for the problems of a chain which session has the line, and where it is in that.
func (s *Session) locate(problems []Problem) []Problem {
	chain := severalIn(s.log)
	if chain == nil {
		return problems
	}
	parts := chain.joined()
	for i := range problems {
		if p := &problems[i]; p.Pos > 0 {
			part := parts[chain.partAt(p.Pos)]
			p.Session, p.Pos = part.name, p.Pos-part.shift
		}
	}
	return problems
}

// Damage returns the faults of a session that hide entries: lines that are not entries, and
// parents that are not there. It reads only the shape of the session, and so misses what
// Problems finds in the content.
func Damage(s *Session) (damage []Problem, err error) {
	err = s.withWhole(func(t *tree) error {
		for _, p := range t.problems {
			if p.Kind == ProblemDamaged || p.Kind == ProblemDangling {
				damage = append(damage, p)
			}
		}
		return nil
	})
	return s.locate(damage), err
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
				problems = append(problems, Problem{Kind: ProblemDamaged, EntryID: part[i].id, Pos: part[i].pos, Detail: "its first bytes can be read, the rest cannot"})
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

// Get returns no content: a check only has to know whether it is there.
func (b checkedBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	err, ok := b.checked[ref]
	if !ok {
		_, err = b.Blobs.Get(ctx, ref)
		b.checked[ref] = err
	}
	return nil, err
}

// mayBeEarlier reports whether an entry is in a session that this one continues, or might be,
// because one of those cannot be read.
func (s *Session) mayBeEarlier(ctx context.Context, id string) bool {
	seen := map[string]bool{s.name: true}
	for h := s.header; h.Relation == RelationContinuation && !seen[h.ParentSession]; {
		seen[h.ParentSession] = true
		earlier, err := Open(ctx, s.store, h.ParentSession, nil)
		if err != nil {
			return true
		}
		has, err := earlier.Has(id)
		h = earlier.header
		_ = earlier.Close() // it was only read
		if has || err != nil {
			return true
		}
	}
	return false
}

func (s *Session) checkEntry(ctx context.Context, blobs store.Blobs, e *Entry, pos store.Pos) []Problem {
	var problems []Problem
	e.eachRef(func(as ref, id *string) {
		if as != refTarget && as != refPicked {
			return // where it came from is no concern of the context, and not in a copy of a branch
		}
		if _, err := s.find("check", *id); err != nil && !s.mayBeEarlier(ctx, *id) {
			p := targetProblem(e.ID, e.Type, *id)
			p.Pos = pos
			problems = append(problems, p)
		}
	})
	if e.Custom != nil && e.Custom.CustomType == CustomImport && e.Custom.blob() != "" {
		if _, err := blobs.Get(ctx, e.Custom.blob()); err != nil {
			problems = append(problems, blobProblem(e.ID, pos, e.Custom.blob(), err))
		}
	}
	for _, c := range e.blocks() {
		if ref, _ := c.blobRef(); ref != "" {
			if _, err := blobs.Get(ctx, ref); err != nil {
				problems = append(problems, blobProblem(e.ID, pos, ref, err))
			}
		}
	}
	return problems
}
