package conversation

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// head is what a log says about its session without being decoded: enough to sort lists and
// to join conversations. It must agree with the catalogue of package index, so it uses the
// same rules.
type head struct {
	stat   store.Stat   // of the log when it was read
	link   session.Link // its place in a chain
	active time.Time    // when something was last said
	err    error        // why it cannot be read

	messages int         // on all branches
	copies   int         // how many of these it begins with, as copies
	first    index.Title // its title, unless the user gives it a name
	named    *string     // the latest name; nil if none was ever given or taken away
	tags     session.TagSet

	described atomic.Pointer[described] // what a list says about it, if it was listed
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
	if h.err == nil {
		h.err = h.count(ctx, st)
	}
	return h
}

// count counts the messages and finds the title and the tags. It decodes few lines.
func (h *head) count(ctx context.Context, st store.Store) (err error) {
	log, err := st.Open(ctx, h.stat.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	begins := h.link.Continues != "" // with copies, until its marker
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		scan, ok := rawjson.ScanHead(line.Data)
		if !ok || line.Cut {
			continue
		}
		var e session.Entry
		decoded := func() bool { return e.UnmarshalJSON(line.Data) == nil }
		switch session.EntryType(scan.Type) {
		case session.TypeSessionInfo:
			if decoded() && e.SessionInfo != nil {
				h.named = new(index.NameTitle(e.SessionInfo.Name))
			}
		case session.TypeCustom:
			if bytes.Contains(line.Data, []byte(session.CustomTags)) && decoded() && e.Custom != nil {
				h.tags.Apply(e.Custom)
			}
		case session.TypeContinues:
			if begins {
				h.copies, begins = h.messages, false
			}
		case session.TypeMessage:
			h.messages++
			if !h.first.IsSettled() && decoded() {
				h.first = index.BetterTitle(h.first, index.TitleIn(&e))
			}
		}
	}
	return nil
}
