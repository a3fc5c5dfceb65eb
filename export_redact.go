package coppice

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/memory"
)

// redactedCopy returns a copy of a session in memory, without its secrets. Renderers get the
// copy, so that none of them can show a secret that another one would have caught.
func redactedCopy(ctx context.Context, s *session.Session) (*session.Session, error) {
	copied, err := session.Create(ctx, memory.New(nil), s.Header(), &session.Options{Clean: clean.Append, BlobThreshold: -1})
	if err != nil {
		return nil, err
	}
	if err := graftAll(copied.WithContext(ctx), s.WithContext(ctx)); err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	if leaf := s.LeafID(); leaf != "" && leaf != copied.LeafID() {
		if err := copied.Branch(leaf); err != nil {
			return nil, errors.Join(err, copied.Close())
		}
	}
	return copied, nil
}

// graftAll copies the entries of a session one by one, in the order of its log. Gaps are not
// copied: the children of a gap become roots.
func graftAll(to, from *session.Session) error {
	for e, err := range from.Entries() {
		if err != nil {
			return err
		}
		if e.Type == session.TypeGap {
			continue
		}
		if e.ParentID != nil {
			if has, err := to.Has(*e.ParentID); err != nil {
				return err
			} else if !has {
				e.ParentID = nil
			}
		}
		err = to.Graft(e)
		if _, isCut := errors.AsType[*session.CutError](err); isCut { // another program wrote it
			if moved, ok, _ := to.MoveCut(e); ok {
				err = to.Graft(moved)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
