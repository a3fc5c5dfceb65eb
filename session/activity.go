package session

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Away is how long a conversation may pause until it counts as left alone: who adds up where time
// went leaves out pauses that are longer.
const Away = time.Hour

// LastSaid returns the time of the last message or summary of a session, and the
// zero time if there is none. Tags, pins, names, labels and notes do not count:
// people make them while tidying up, and tidying must not make an old session look
// young. It reads backwards, no further than it must.
func LastSaid(ctx context.Context, st store.Store, name string) (_ time.Time, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end, err := log.End(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return time.Time{}, err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || !EntryType(h.Type).IsSaid() {
			continue
		}
		if e, err := decodeEntry(line.Data); err == nil && !e.Timestamp.IsZero() {
			return e.Timestamp, nil
		}
	}
	return time.Time{}, nil
}

// LatestSaid is LastSaid for logs whose messages may not be in the order of their times, such
// as imports: it reads all of the log and returns the latest time in it.
func LatestSaid(ctx context.Context, st store.Store, name string) (latest time.Time, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return latest, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return latest, err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || !EntryType(h.Type).IsSaid() {
			continue
		}
		if at, ok := parseTime(h.Timestamp); ok && at.After(latest) {
			latest = at
		}
	}
	return latest, nil
}

// lastActive returns when a session was active last: when something was last said in
// it or, if nothing was, when it was made. It is what lists, retention and
// ContinueRecent go by.
func lastActive(ctx context.Context, st store.Store, name string) (time.Time, error) {
	said, err := LastSaid(ctx, st, name)
	if err != nil || !said.IsZero() {
		return said, err
	}
	s, err := Open(ctx, st, name, nil)
	if err != nil {
		return time.Time{}, err
	}
	return s.Header().CreatedAt, s.Close()
}
