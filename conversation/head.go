package conversation

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// head is what the ends of a log say of its session: enough to put lists in order
// and conversations together, without decoding what was said.
type head struct {
	stat   store.Stat   // of the log when it was looked at
	link   session.Link // its place in a chain
	active time.Time    // when something was last said
	err    error        // why it cannot be read

	described atomic.Pointer[described] // what a list says of it, if it was listed
}

// readHead looks at a log.
func readHead(ctx context.Context, st store.Store, stat store.Stat) *head {
	h := &head{stat: stat, active: stat.Modified}
	if h.link, h.err = session.ReadLink(ctx, st, stat.Name); h.err != nil {
		h.link.ID = stat.Name
		return h
	}
	switch active, err := lastSaid(ctx, st, stat.Name); {
	case err != nil:
		h.err = err
	case !active.IsZero():
		h.active = active
	case !h.link.Created.IsZero():
		h.active = h.link.Created
	}
	return h
}

// lastSaid returns the time of the last message or summary in a log. What somebody
// noted about the session later, a title or a tag, is no activity.
func lastSaid(ctx context.Context, st store.Store, name string) (at time.Time, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end, err := log.End(ctx)
	if err != nil {
		return at, err
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return at, err
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || !isSaying(session.EntryType(h.Type)) {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, string(h.Timestamp)); err == nil {
			return at, nil
		}
	}
	return at, nil
}

// isSaying reports whether entries of a type are part of what was said.
func isSaying(t session.EntryType) bool {
	switch t {
	case session.TypeMessage, session.TypeCompaction, session.TypeBranchSummary, session.TypeMerge:
		return true
	}
	return false
}
