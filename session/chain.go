package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// continuedTo is the type of the custom entry that names a session's
// continuation.
const continuedTo = "coppice.continued_to"

// Continue starts the session that goes on where this one stops, carrying the
// given entries over (with new ids), and records in this one where it went. Each
// session has at most one continuation: if this one has been continued, Continue
// returns ErrExist.
func (s *Session) Continue(carry ...Entry) (*Session, error) {
	ctx := context.Background()
	s.continuing.Lock()
	defer s.continuing.Unlock()
	if next, err := s.Continuation(); err != nil {
		return nil, err
	} else if next != "" {
		return nil, &Error{Op: "continue", Name: s.name, Kind: ErrExist, Err: fmt.Errorf("it continues in session %q", next)}
	}
	h := Header{
		ParentSession: s.header.ID, Relation: RelationContinuation,
		Continuation: s.header.Continuation + 1, CWD: s.header.CWD,
	}
	next, err := Create(ctx, s.store, h, &s.opts)
	if err != nil {
		return nil, err
	}
	if s.owners != nil {
		s.owners.Add(1)
		next.owners = s.owners
	}
	fresh := slices.Clone(carry)
	for i := range fresh {
		fresh[i].ID = ""
	}
	_, err = next.AppendAll(fresh...)
	if err == nil {
		_, err = s.AppendCustomEntry(continuedTo, map[string]any{"session": next.ID(), "of": s.header.ID})
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// Continuation returns the id of the session that continues this one, or "".
func (s *Session) Continuation() (string, error) {
	return continuation(context.Background(), s.log, s.header.ID)
}

// continuation looks for the latest record of a session's continuation. It
// stands near the end of a log, where reading begins. A record of another
// session came with the history that was copied from there.
func continuation(ctx context.Context, log store.Log, of string) (string, error) {
	end, err := log.End(ctx)
	if err != nil {
		return "", err
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return "", err
		}
		if !bytes.Contains(line.Data, []byte(continuedTo)) {
			continue
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil || e.Custom == nil || e.Custom.CustomType != continuedTo {
			continue
		}
		if e.Custom.Data["of"] == of {
			id, _ := e.Custom.Data["session"].(string)
			return id, nil
		}
	}
	return "", nil
}

// Chain returns the ids of a session and of all the sessions it continues and is
// continued by, the original first.
func Chain(ctx context.Context, st store.Store, id string) ([]string, error) {
	chain := []string{id}
	for {
		parent, err := continues(ctx, st, chain[0])
		if err != nil {
			return nil, err
		}
		if parent == "" || slices.Contains(chain, parent) {
			break
		}
		chain = append([]string{parent}, chain...)
	}
	for {
		next, err := continuedBy(ctx, st, chain[len(chain)-1])
		if err != nil {
			return nil, err
		}
		if next == "" || slices.Contains(chain, next) {
			return chain, nil
		}
		chain = append(chain, next)
	}
}

// continues returns the session that a session continues, or "". One that was
// removed meanwhile ends the chain.
func continues(ctx context.Context, st store.Store, id string) (string, error) {
	log, err := st.Open(ctx, id)
	if err != nil {
		return "", err
	}
	defer log.Close()
	h, err := readHeader(ctx, log)
	if err != nil || h == nil || h.Relation != RelationContinuation {
		return "", err
	}
	return h.ParentSession, checkExists(ctx, st, &h.ParentSession)
}

func continuedBy(ctx context.Context, st store.Store, id string) (string, error) {
	log, err := st.Open(ctx, id)
	if err != nil {
		return "", err
	}
	defer log.Close()
	h, err := readHeader(ctx, log)
	if err == nil && h != nil {
		id = h.ID
	}
	next := ""
	if err == nil {
		next, err = continuation(ctx, log, id)
	}
	if err != nil || next == "" {
		return "", err
	}
	return next, checkExists(ctx, st, &next)
}

// checkExists empties an id that leads nowhere.
func checkExists(ctx context.Context, st store.Store, id *string) error {
	log, err := st.Open(ctx, *id)
	if errors.Is(err, ErrNotExist) || errors.Is(err, ErrInvalid) {
		*id = ""
		return nil
	}
	if err != nil {
		return err
	}
	return log.Close()
}
