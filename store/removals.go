package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// RemovedNote is the note, in the room "", with the IDs of the removals that are not in the trash
// any more: their logs were restored or deleted for good. The note outlives the logs, so that a
// copy of the store, made before, does not bring them back.
const RemovedNote = "removals.json"

// removedList is the content of the note.
type removedList struct {
	Removals []string `json:"removals"` // sorted
}

// removalTime is how the ID of a removal ends, after the name of the log and a dot.
const removalTime = "20060102T150405.000000000Z"

// ParseRemoval reads the ID of a removal: the name of the log, and when it was removed.
func ParseRemoval(id string) (name string, removed time.Time, ok bool) {
	at := len(id) - len(removalTime) - 1
	if at <= 0 || id[at] != '.' {
		return "", removed, false
	}
	removed, err := time.Parse(removalTime, id[at+1:])
	return id[:at], removed, err == nil && CheckName(id[:at]) == nil
}

// NoteRemovals adds removals to the RemovedNote. A store calls it before it restores or deletes
// them: one that is noted too early does no harm, one that is missing does.
func NoteRemovals(ctx context.Context, s Store, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.Notes("").Change(ctx, RemovedNote, func(old []byte) ([]byte, error) {
		known, err := parseRemoved(s, old)
		if err != nil {
			return nil, err
		}
		known = append(known, ids...)
		slices.Sort(known)
		return json.Marshal(removedList{slices.Compact(known)})
	})
}

func parseRemoved(s Store, data []byte) ([]string, error) {
	var list removedList
	if len(data) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, &Error{
			Op: "read note", Name: RemovedNote, Path: s.Parts().Where(PartNote, RemovedNote), Kind: ErrCorrupt, Err: err,
			Hint: "remove the note: then a copy that was made earlier can bring back what was deleted for good",
		}
	}
	return list.Removals, nil
}

// Removals are the removals that a store knows of.
type Removals struct {
	Trash []Trashed           // what is in the trash, the latest removal first
	Known map[string][]string // the IDs of all, those that are not in the trash any more included, by the name of the log
}

// RemovalsOf returns the removals that a store knows of.
func RemovalsOf(ctx context.Context, s Store) (*Removals, error) {
	r := &Removals{Known: make(map[string][]string)}
	var err error
	// The trash is read first: what leaves it after that is noted already.
	if r.Trash, err = s.Trash().List(ctx); err != nil {
		return nil, err
	}
	data, err := s.Notes("").Read(ctx, RemovedNote)
	if err != nil && !errors.Is(err, ErrNotExist) {
		return nil, err
	}
	noted, err := parseRemoved(s, data)
	if err != nil {
		return nil, err
	}
	for _, item := range r.Trash {
		r.Known[item.Name] = append(r.Known[item.Name], item.ID)
	}
	for _, id := range noted {
		if name, _, ok := ParseRemoval(id); ok && !slices.Contains(r.Known[name], id) {
			r.Known[name] = append(r.Known[name], id)
		}
	}
	return r, nil
}

// News returns the removals of a log that another store does not know of, the latest first.
func (r *Removals) News(name string, other *Removals) []string {
	var news []string
	for _, id := range r.Known[name] {
		if !slices.Contains(other.Known[name], id) {
			news = append(news, id)
		}
	}
	slices.SortFunc(news, func(a, b string) int { return cmp.Compare(b, a) }) // the names are the same
	return news
}

// RemovalIDs returns the IDs of removals.
func RemovalIDs(all []Trashed) []string {
	var ids []string
	for _, item := range all {
		ids = append(ids, item.ID)
	}
	return ids
}
