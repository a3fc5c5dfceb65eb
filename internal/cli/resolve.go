package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// resolveSession returns the name of the session that a user means: its id, its
// key, or a prefix that no other id has. A key that somebody chose is meant
// before a prefix that happens to be equal.
func resolveSession(ctx context.Context, st store.Store, given string) (string, error) {
	if given == "" {
		return "", usageError{fmt.Errorf("the session's id is empty")}
	}
	var found []string
	ofKey, hasKey := idOfKey(given), false
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return "", err
		}
		if stat.Name == given {
			return given, nil
		}
		hasKey = hasKey || stat.Name == ofKey
		if strings.HasPrefix(stat.Name, given) {
			found = append(found, stat.Name)
		}
	}
	if hasKey {
		return ofKey, nil
	}
	if len(found) == 0 { // imported sessions have keys that their ids are not made of
		var err error
		if found, err = sessionsByKey(ctx, st, given); err != nil {
			return "", err
		}
	}
	return theOne("session", given, found)
}

// idOfKey returns the id that a session of a key has if package keyed or "new
// --key" made it, or "" for what cannot be a key.
func idOfKey(key string) string {
	id, err := keyed.SessionID(key)
	if err != nil {
		return ""
	}
	return id
}

// sessionsByKey returns the sessions that have a key, such as
// "telegram:123456" or "claude-code:" and the id that the session has there.
func sessionsByKey(ctx context.Context, st store.Store, key string) ([]string, error) {
	var found []string
	for stat, err := range st.List(ctx) {
		if err != nil {
			if stat.Name == "" {
				return nil, err
			}
			continue
		}
		log, err := st.Open(ctx, stat.Name)
		if err != nil {
			continue // gone meanwhile, or unreadable: fsck says so
		}
		for line, err := range log.Forward(ctx, 0) {
			var h session.Header
			if err == nil && json.Unmarshal(line.Data, &h) == nil && h.Key == key {
				found = append(found, stat.Name)
			}
			break
		}
		if err := log.Close(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// resolveEntry returns the id of the entry that a user means: its id, a prefix
// that no other id of the session has, its label, or "leaf".
func resolveEntry(s *session.Session, given string) (string, error) {
	if given == "" || given == "leaf" {
		return s.LeafID(), nil
	}
	labels, err := s.Labels()
	if err != nil {
		return "", err
	}
	ids, err := s.EntryIDs()
	if err != nil {
		return "", err
	}
	var found, labelled []string
	for _, id := range ids {
		if id == given {
			return given, nil
		}
		if strings.HasPrefix(id, given) {
			found = append(found, id)
		}
		if labels[id] == given {
			labelled = append(labelled, id)
		}
	}
	if len(found) == 0 {
		found = labelled
	}
	return theOne("entry", given, found)
}

// theOne returns the only candidate, or an error that lists them.
func theOne(what, given string, found []string) (string, error) {
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &session.Error{Op: "find " + what, Name: given, Kind: session.ErrNotExist}
	}
	const most = 8
	more := ""
	short := render.ShortIDs(found) // which are as good: all others begin differently
	for i, id := range found {
		found[i] = render.OneLine(short[id], 0)
	}
	if len(found) > most {
		more = fmt.Sprintf(" and %d more", len(found)-most)
		found = found[:most]
	}
	return "", usageError{fmt.Errorf("%q begins the ids of several: %s%s; give more of it", given, strings.Join(found, ", "), more)}
}
