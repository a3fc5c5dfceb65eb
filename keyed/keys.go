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
	for stat, err := range st.List(ctx) {
		if errors.Is(err, session.ErrNotExist) {
			return nil, nil // there is no directory yet
		}
		if err != nil && stat.Name == "" {
			return nil, err
		}
		key, err := keyIn(ctx, st, stat.Name)
		if err != nil {
			return nil, err
		}
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// keyIn returns the key in a session's header. A log that has no header, such as
// one of picoclaw's, has no key; nor has one that was removed meanwhile.
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
		// The key of another program's session, or of a copy, is not ours.
		if id, err := SessionID(h.Key); err != nil || id != name {
			return "", nil
		}
		return h.Key, nil
	}
	return "", nil
}
