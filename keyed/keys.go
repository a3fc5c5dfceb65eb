package keyed

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// storedKeys returns the keys of the sessions in a store that have one.
func storedKeys(ctx context.Context, st store.Store) ([]string, error) {
	var keys []string
	names, err := store.Names(ctx, st)
	if errors.Is(err, session.ErrNotExist) {
		return nil, nil // there is no directory yet
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		key, err := keyIn(ctx, st, name)
		if err != nil {
			return nil, err
		}
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// keyIn returns the key in a session's header, or "" if it has none, like a log of
// picoclaw's, or if the session was removed in the meantime.
func keyIn(ctx context.Context, st store.Store, name string) (string, error) {
	log, err := st.Open(ctx, name)
	if errors.Is(err, session.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer log.Close()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return "", err
		}
		var h session.Header
		if h.UnmarshalJSON(line.Data) != nil || h.Type != session.TypeSession {
			return "", nil
		}
		// A key under another id belongs to another program's session, or to a copy.
		if id, err := session.KeyID(h.Key); err != nil || id != name {
			return "", nil
		}
		return h.Key, nil
	}
	return "", nil
}
