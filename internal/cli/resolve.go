package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// resolveSession returns the name of the session that a user means: its id, or
// a prefix that no other id has.
func resolveSession(ctx context.Context, st store.Store, given string) (string, error) {
	if given == "" {
		return "", usageError{fmt.Errorf("the session's id is empty")}
	}
	var found []string
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return "", err
		}
		if stat.Name == given {
			return given, nil
		}
		if strings.HasPrefix(stat.Name, given) {
			found = append(found, stat.Name)
		}
	}
	return theOne("session", given, found)
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
	var found, labelled []string
	for e, err := range s.Entries() {
		if err != nil {
			return "", err
		}
		if e.ID == given {
			return given, nil
		}
		if strings.HasPrefix(e.ID, given) {
			found = append(found, e.ID)
		}
		if labels[e.ID] == given {
			labelled = append(labelled, e.ID)
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
	if len(found) > most {
		more = fmt.Sprintf(" and %d more", len(found)-most)
		found = found[:most]
	}
	return "", usageError{fmt.Errorf("%q begins the ids of several: %s%s; give more of it", given, strings.Join(found, ", "), more)}
}

// shortIDs returns for each id the shortest prefix, of at least eight
// characters, that none of the others has.
func shortIDs(ids []string) map[string]string {
	short := make(map[string]string, len(ids))
	taken := make(map[string]int)
	for _, id := range ids {
		for n := minShort; n <= len(id); n++ {
			taken[id[:n]]++
		}
	}
	for _, id := range ids {
		short[id] = id
		for n := minShort; n < len(id); n++ {
			if taken[id[:n]] == 1 {
				short[id] = id[:n]
				break
			}
		}
	}
	return short
}

const minShort = 8
