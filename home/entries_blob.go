package home

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// BlobRequest asks for content that a conversation keeps apart from its entries.
type BlobRequest struct {
	Session string    `json:"session"` // as a person names it: see Resolve
	Ref     store.Ref `json:"ref"`     // as the entry has it: sha256: and 64 digits
}

// BlobResult is the content of a blob.
type BlobResult struct {
	Ref  store.Ref `json:"ref"`
	Data []byte    `json:"data"`
}

// Blob returns content that a conversation keeps apart from its entries. A blob that no entry of
// the conversation refers to is session.ErrNotExist, whether or not the home has it.
func (e *Entries) Blob(ctx context.Context, r BlobRequest) (*BlobResult, error) {
	return call(ctx, e.home, "entries.blob", r, e.blob)
}

func (e *Entries) blob(ctx context.Context, r BlobRequest) (*BlobResult, error) {
	if _, ok := r.Ref.Hex(); !ok {
		return nil, wrong("ref", "{ref} is %q; it must be sha256: and 64 hexadecimal digits", r.Ref)
	}
	links, err := e.home.linksOf(ctx, r.Session, false)
	if err != nil {
		return nil, err
	}
	for _, name := range links {
		has, err := refersTo(ctx, e.home.store, name, r.Ref)
		if err != nil {
			return nil, err
		}
		if has {
			data, err := e.home.store.Blobs().Get(ctx, r.Ref)
			if err != nil {
				return nil, err
			}
			return &BlobResult{r.Ref, data}, nil
		}
	}
	return nil, &session.Error{Op: "find blob", Name: r.Session, Kind: session.ErrNotExist, Err: errors.New("no entry refers to it")}
}

// refersTo reports whether a line of a log refers to a blob.
func refersTo(ctx context.Context, st store.Store, name string, ref store.Ref) (found bool, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer log.Close() // it is only read
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return false, err
		}
		store.EachRef(line.Data, func(r store.Ref) { found = found || r == ref })
		if found {
			return true, nil
		}
	}
	return false, nil
}
