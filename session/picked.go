package session

import (
	"context"
	"errors"
	"fmt"
)

// readPicked reads the messages that merges on the path bring. Messages that are on the
// path, or that an earlier merge has picked, are skipped: nothing is in a context twice.
func (s *Session) readPicked(ctx context.Context, sel *selection) error {
	var named []string
	for _, e := range sel.entries {
		if e.Merge != nil && !sel.reverted[e.ID] {
			named = append(named, e.Merge.EntryIDs...)
		}
	}
	if len(named) == 0 {
		return nil
	}
	wanted, err := s.messagesAmong(named)
	if err != nil {
		return err
	}
	there, err := s.alreadyThere(ctx, sel, wanted)
	if err != nil {
		return err
	}
	sel.picked = make(map[string][]*Entry)
	for _, e := range sel.entries {
		if e.Merge == nil || sel.reverted[e.ID] {
			continue
		}
		for _, id := range e.Merge.EntryIDs {
			if there[id] != "" {
				sel.problems = append(sel.problems, repeatedProblem(e.ID, id, there[id]))
				continue
			}
			picked, err := s.readPickedEntry(ctx, id)
			if err != nil && !errors.Is(err, ErrNotExist) && !errors.Is(err, ErrCorrupt) {
				return err
			}
			if err != nil {
				sel.problems = append(sel.problems, pickedProblem(e.ID, id, err))
				continue
			}
			if picked.Message != nil {
				there[id] = "merge " + e.ID + " brings it"
				sel.picked[e.ID] = append(sel.picked[e.ID], picked)
			}
		}
	}
	return nil
}

// messagesAmong returns which of the ids belong to messages.
func (s *Session) messagesAmong(ids []string) (map[string]bool, error) {
	messages := make(map[string]bool)
	err := s.withWhole(func(t *tree) error {
		for _, id := range ids {
			if at, ok := t.at(id); ok && t.nodes[at].kind == kindMessage {
				messages[id] = true
			}
		}
		return nil
	})
	return messages, err
}

// alreadyThere returns which of the wanted entries are on the path, or were picked by a
// merge before the first entry that counts, and why.
func (s *Session) alreadyThere(ctx context.Context, sel *selection, wanted map[string]bool) (map[string]string, error) {
	there := make(map[string]string)
	note := func(id, why string) {
		if wanted[id] && there[id] == "" {
			there[id] = why
		}
	}
	for _, e := range sel.entries {
		note(e.ID, "it is on the path")
	}
	older := sel.older
	for n := older.next(); n != nil; n = older.next() {
		note(n.id, "it is on the path")
	}
	if sel.older.at == none {
		return there, nil
	}
	p, err := s.pastOf(ctx, sel)
	if err != nil {
		return nil, err
	}
	reverted := make(reverts)
	for i := range p.acts {
		a := &p.acts[i]
		if sel.reverted[a.id] || reverted[a.id] {
			continue
		}
		if a.kind == kindRevert {
			reverted.add(a.id, a.target)
		}
		for _, id := range a.picks {
			note(id, "merge "+a.id+" brings it")
		}
	}
	return there, nil
}

func (s *Session) readPickedEntry(ctx context.Context, id string) (*Entry, error) {
	var n node
	err := s.withWhole(func(t *tree) error {
		at, ok := t.at(id)
		if !ok {
			return s.errNoEntry("merge", id)
		}
		n = t.nodes[at]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.entryAt(ctx, &n)
}

func pickedProblem(mergeID, id string, err error) Problem {
	if errors.Is(err, ErrNotExist) {
		return targetProblem(mergeID, TypeMerge, id)
	}
	return Problem{Kind: ProblemTarget, EntryID: mergeID, Detail: err.Error()}
}

// targetProblem describes an entry that names another one which is not there.
func targetProblem(entryID string, t EntryType, id string) Problem {
	return Problem{Kind: ProblemTarget, EntryID: entryID, Detail: fmt.Sprintf("%s of %q, which is not in the session", t, id)}
}

func repeatedProblem(mergeID, id, why string) Problem {
	return Problem{Kind: ProblemRepeated, EntryID: mergeID, Detail: "it names entry " + id + ", but " + why + "; it is not repeated"}
}
