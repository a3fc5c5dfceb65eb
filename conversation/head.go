package conversation

import (
	"context"
	"sync/atomic"
	"time"

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
	switch active, err := session.LastSaid(ctx, st, stat.Name); {
	case err != nil:
		h.err = err
	case !active.IsZero():
		h.active = active
	case !h.link.Created.IsZero():
		h.active = h.link.Created
	}
	return h
}
