package session

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// OpenSubagent opens the session of the work that a tool call started, or makes it, in the
// same store and with the same options. Its id follows from the call, so each call has one
// such session, however often you open it. The caller closes it.
func OpenSubagent(ctx context.Context, s *Session, entryID, callID string) (*Session, error) {
	parent := s.SessionOf(entryID)
	sum := sha256.Sum256([]byte(parent + "\x00" + entryID + "\x00" + callID))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	id := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	sub, err := Open(ctx, s.store, id, &s.opts)
	if errors.Is(err, ErrNotExist) {
		h := Header{ID: id, ParentSession: parent, Relation: RelationSubagent, CWD: s.header.CWD}
		call, _ := json.Marshal(callID) // a string
		h.Extra = Fields{{Name: parentCallField, Value: call}}
		sub, err = Create(ctx, s.store, h, &s.opts)
	}
	return sub, err
}

// starter returns the session whose call started the work that this session is part of, perhaps
// over several subagents, and closes this one. It returns this one if no call did, or if that
// session cannot be opened.
func (s *Session) starter(ctx context.Context) *Session {
	name, seen := "", make(map[string]bool)
	for h := &s.header; h != nil && !seen[h.ParentSession]; {
		if h.Relation == RelationSubagent {
			name = h.ParentSession
		} else if h.Relation != RelationContinuation {
			break
		}
		seen[h.ParentSession] = true
		log, err := s.store.Open(ctx, h.ParentSession)
		if err != nil {
			break
		}
		h, _ = FindHeader(ctx, log) // nil ends the search
		_ = log.Close()             // it was only read
	}
	if name == "" {
		return s
	}
	by, err := Open(ctx, s.store, name, &s.opts)
	if err != nil {
		return s
	}
	_ = s.Close() // nothing was written
	return by
}
