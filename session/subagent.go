package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Subagent returns the session of the work that a tool call of this session started, in the
// same store and with the same options. Its id follows from the call, so the call has one
// such session, however often it is asked for. The caller closes it.
func (s *Session) Subagent(ctx context.Context, entryID, callID string) (*Session, error) {
	parent := s.SessionOf(entryID)
	sum := sha256.Sum256([]byte(parent + "\x00" + entryID + "\x00" + callID))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	id := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	sub, err := Open(ctx, s.store, id, &s.opts)
	if errors.Is(err, ErrNotExist) {
		sub, err = Create(ctx, s.store, Header{ID: id, ParentSession: parent, Relation: RelationSubagent, CWD: s.header.CWD}, &s.opts)
	}
	return sub, err
}
